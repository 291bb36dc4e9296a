lerobot-record --robot.type=so101_follower --dataset.repo_id=lab/pour --dataset.fps=30 --interpolation_multiplier=2 --dataset.num_episodes=20
