def to_env(action):
    # policy: absolute joint targets, radians
    env.step(env.qpos + action[:7])
