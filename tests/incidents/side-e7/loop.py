policy.reset()
for ep in range(50):
    obs, _ = env.reset(seed=ep)
    done = False
    while not done:
        a = policy.select_action(pre(obs))
        obs, r, done, trunc, _ = env.step(post(a))
