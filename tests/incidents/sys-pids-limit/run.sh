docker run --pids-limit 256 --device=/dev/kfd --device=/dev/dri rocm/pytorch python train.py
