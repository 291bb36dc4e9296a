policy = DiffusionPolicy.from_pretrained("lab/diffusion_pusht_cup")
while not done:
    obs = robot.get_observation()
    action = policy.select_action(prepare(obs))
    robot.send_action(action)
