    def step(self, action):
        action = np.clip(action, self.action_space.low, self.action_space.high)   # Box(-1, 1)
        return self._sim.step(action)
