AITER_CUSTOM_AR_MAX_SIZE=1048576 VLLM_ROCM_USE_AITER=1 vllm serve zai-org/GLM-5.3 -tp 4 --max-num-batched-tokens 8192
