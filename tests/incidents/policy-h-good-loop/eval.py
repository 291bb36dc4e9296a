import collections
import numpy as np
def run(env, policy, states, n=50):
    plan = collections.deque()
    for k in range(n):
        env.reset()
        obs = env.set_init_state(states[k])
        plan.clear()
        policy.reset()
        for t in range(400):
            img = np.ascontiguousarray(obs["agentview_image"][::-1, ::-1])
            if not plan:
                chunk = policy.infer({"observation/image": img, "prompt": "x"})["actions"]
                plan.extend(chunk[:5])
            obs, reward, done, info = env.step(plan.popleft().tolist())
            if done:
                break
