def rollout(policy, env, horizon):
    obs = env.reset()
    policy.reset()
    for t in range(horizon):
        action_chunk = policy.get_action(to_policy(obs))
        action = _convert_to_libero_action(action_chunk, 0)
        obs, reward, done, info = env.step(action)
        if done:
            return True
    return False
