self.action_space = gym.spaces.Box(low=-1, high=1, shape=(7,))
