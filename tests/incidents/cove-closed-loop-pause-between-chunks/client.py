while True:
    obs = robot.get_observation()
    chunk = client.get_action(obs)["action.single_arm"]
    for i in range(len(chunk)):
        robot.send_action(chunk[i])
        time.sleep(0.02)
