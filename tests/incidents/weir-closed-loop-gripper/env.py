class LiberoEnv(gym.Env):
    def __init__(self, task):
        # last value: gripper, -1 open, +1 close
        self.action_space = gym.spaces.Box(low=-1, high=1, shape=(7,))
    def step(self, action):
        return self._env.step(action)
