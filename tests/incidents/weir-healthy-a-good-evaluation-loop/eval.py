policy = ACTPolicy.from_pretrained(path).to("cuda").eval()
for ep in range(n):
    policy.reset()
    obs, info = env.reset(seed=ep)
    done = False
    while not done:
        with torch.inference_mode():
            action = postprocessor(policy.select_action(preprocessor(obs)))
        obs, r, term, trunc, info = env.step(action.cpu().numpy())
        done = term or trunc
    print(ep, info["is_success"])
