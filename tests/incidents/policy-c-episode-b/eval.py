obs_history = deque(maxlen=2)
for trial in range(20):
    obs = env.reset()
    for t in range(400):
        obs_history.append(obs)
        action = agent.predict_action(stack(obs_history))
        obs, r, done, info = env.step(action)
        if done: break
