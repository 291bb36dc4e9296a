import mujoco
os.environ["MUJOCO_GL"] = "egl"
class A:
    def start(self):
        self._init_state_id = 0
        self.env.set_init_state(self.s[self._init_state_id])
        obs = self.env.reset()
for episode in range(3):
    a = policy.select_action(obs["image"][::-1, ::-1])
    env.step(a)
