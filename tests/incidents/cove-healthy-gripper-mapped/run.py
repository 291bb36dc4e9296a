action = policy.infer(obs)["actions"]
action[..., -1] = 2 * action[..., -1] - 1
