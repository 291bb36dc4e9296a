#!/bin/bash
#SBATCH --gpus=1
source venv/bin/activate
srun lerobot-eval --policy.path=outputs/last --env.type=aloha
