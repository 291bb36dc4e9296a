docker run --device=/dev/kfd --device=/dev/dri rocm/vllm
