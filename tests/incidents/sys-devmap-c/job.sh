#!/bin/bash
#SBATCH --gpus=1
apptainer exec pytorch_rocm.sif python train.py
