#!/bin/bash
#SBATCH --nodes=8 --ntasks-per-node=8
export HOME=/nfs/home/u
srun -n 64 python train.py
