def eval_policy(cfg):
    env = make_robot_env(cfg.env)
    policy = make_policy(cfg=cfg.policy, env_cfg=cfg.env)
    policy.from_pretrained(cfg.env.pretrained_policy_name_or_path)
    policy.eval()
    successes = 0
    for ep in range(cfg.n_episodes):
        obs, _ = env.reset()
        done = False
        while not done:
            action = policy.select_action(obs)
            obs, reward, term, trunc, info = env.step(action)
            done = term or trunc
        successes += info.get("is_success", False)
    print(f"pick rate {successes / cfg.n_episodes:.2f}")
