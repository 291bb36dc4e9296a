from safetensors.torch import load_file
stats = load_file("stats.safetensors")
obs = (obs - stats["obs.mean"]) / stats["obs.std"]
with torch.no_grad():
    action = model(obs)
robot.send_action(action.squeeze(0).tolist())
