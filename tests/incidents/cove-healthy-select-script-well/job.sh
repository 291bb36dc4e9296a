#!/bin/bash
#SBATCH --gpus-per-node=8
srun ./select_gpu python train.py
