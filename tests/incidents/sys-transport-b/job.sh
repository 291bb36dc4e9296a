#!/bin/bash
#SBATCH -N 2
export NCCL_SOCKET_IFNAME=lo
srun torchrun --nnodes 2 --nproc-per-node 8 train.py
