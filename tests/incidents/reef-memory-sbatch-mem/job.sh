#!/bin/bash
#SBATCH --gpus=1
#SBATCH --mem=8G
srun python load_model.py
