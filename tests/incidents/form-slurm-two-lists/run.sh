#!/bin/bash
#SBATCH --gres=gpu:8
#SBATCH --ntasks-per-node=8
export HIP_VISIBLE_DEVICES=$SLURM_LOCALID
export ROCR_VISIBLE_DEVICES=$SLURM_LOCALID
srun python train.py
