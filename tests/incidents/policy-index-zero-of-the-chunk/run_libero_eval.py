def _convert_to_libero_action(self, action_chunk, idx=0):
    action_components = [
        np.atleast_1d(action_chunk[f"action.{key}"][idx])[0]
        for key in self.action_keys
    ]
    return np.array(action_components, dtype=np.float32)

while t < max_steps:
    action_chunk = self.policy.get_action(obs_dict)
    obs, reward, done, info = env.step(self._convert_to_libero_action(action_chunk).tolist())
    t += 1
