#!/bin/bash
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=8
#SBATCH --gpus-per-node=8
#SBATCH --partition=standard-g
cat > select_gpu <<'E'
#!/bin/bash
export ROCR_VISIBLE_DEVICES=$SLURM_LOCALID
export CUDA_VISIBLE_DEVICES=$SLURM_LOCALID
exec $*
E
chmod +x select_gpu
srun ./select_gpu python train.py
