python -m lerobot.async_inference.robot_client --server_address=localhost:8080 --robot.type=so101_follower \
  --robot.cameras="{ phone: {type: opencv, index_or_path: 0, width: 640, height: 480, fps: 30}, laptop: {type: opencv, index_or_path: 2, width: 640, height: 480, fps: 30}}" \
  --policy_type=smolvla --pretrained_name_or_path=lerobot/smolvla_base
