def control(policy, robot, stats):
    while True:
        obs = robot.get_observation()
        action = policy.select_action(preprocess(obs))
        action = action * stats["action"]["std"] + stats["action"]["mean"]
        action = postprocessor(action)
        robot.send_action(action)
