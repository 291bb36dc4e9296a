action = policy.select_action(obs)
action = postprocessor(action).clamp(-1.0, 1.0)
obs, reward, done, info = env.step(action.cpu().numpy())
