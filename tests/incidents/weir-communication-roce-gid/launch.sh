mpirun -np 16 -N 8 -x NCCL_IB_HCA=bnxt_re0,bnxt_re1 -x NCCL_IB_GID_INDEX=0 ./build/all_reduce_perf -b 8M -e 8G -f 2 -g 1
