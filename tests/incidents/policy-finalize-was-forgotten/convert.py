for h5 in files:
    for t in range(n):
        dataset.add_frame({"observation.state": s[t], "action": a[t], "task": "pour"})
    dataset.save_episode()
dataset = LeRobotDataset("lab/pour", root=out)
