def rollout(client, task_env, instruction):
    obs = task_env.get_obs()
    left_grip = obs["endpose"]["left_gripper"]     # 0 closed .. 1 open
    right_grip = obs["endpose"]["right_gripper"]
    left_grip = 1 - left_grip * 2
    right_grip = 1 - right_grip * 2
    proprio = np.concatenate([left_xyz, left_rot6d, [left_grip], right_xyz, right_rot6d, [right_grip]])
    return client.step(images, proprio, instruction)
