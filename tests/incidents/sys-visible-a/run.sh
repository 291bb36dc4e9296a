#!/bin/bash
#SBATCH --gpus-per-node=1
export CUDA_VISIBLE_DEVICES=3
srun python train.py
