export CUDA_VISIBLE_DEVICES=1,2,3
accelerate launch --num_machines=1 --num_processes=3 src/lerobot/scripts/lerobot_train.py --policy.device=cuda:0 --policy.type=smolvla --batch_size=4
