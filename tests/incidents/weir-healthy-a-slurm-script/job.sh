#!/bin/bash
#SBATCH --nodes=2
#SBATCH --gpus-per-node=8
#SBATCH --ntasks-per-node=8
#SBATCH --time=02:00:00
module load rocm/6.3.3
export NCCL_SOCKET_IFNAME=hsn0,hsn1,hsn2,hsn3
srun python train.py
