#!/usr/bin/env python3
"""Real LeRobot reads the dataset that the built-in workload records: every episode, action chunks, pictures, statistics.

    FIRSTFAULT=build/dev/firstfault VENV/bin/python tests/long/lerobot_reference_dataset.py WORK_DIRECTORY

Needs lerobot from 0.4 on (format v3.0).
"""
import json, os, pathlib, shutil, subprocess, sys

import numpy as np
import torch
from lerobot.datasets.lerobot_dataset import LeRobotDataset

work = pathlib.Path(sys.argv[1])
shutil.rmtree(work, ignore_errors=True)
work.mkdir(parents=True)
done = subprocess.run([os.environ["FIRSTFAULT"], "check", "--workload", "reference", "--rung", "dataset", "--json", "--runs", work / "runs"], capture_output=True, text=True)
assert done.returncode == 0, done.stdout + done.stderr
root = pathlib.Path(json.loads(done.stdout)["run"]) / "artifacts/dataset"

dataset = LeRobotDataset("local/reference", root=root, delta_timestamps={"action": [i / 10 for i in range(8)]})
assert (dataset.num_episodes, dataset.fps) == (200, 10), (dataset.num_episodes, dataset.fps)
first = dataset[0]
assert first["observation.images.top"].shape == (3, 12, 12) and first["action"].shape == (8, 4), {k: getattr(v, "shape", v) for k, v in first.items()}
assert first["task"] == "put the object on the goal"
for row in (0, 1, 4000, len(dataset) - 9):
    here, ahead = dataset[row], dataset[row + 3]
    if here["episode_index"] == ahead["episode_index"]:
        assert torch.equal(here["action"][3], ahead["action"][0]), row
# The statistics that a policy normalises with are those of the pictures that the loader gives.
rows = torch.stack([dataset[i]["observation.images.front"] for i in range(0, len(dataset), 40)])
mean = np.asarray(dataset.meta.stats["observation.images.front"]["mean"]).reshape(3)
assert np.abs(rows.mean((0, 2, 3)).numpy() - mean).max() < 0.004, (rows.mean((0, 2, 3)), mean)
loader = torch.utils.data.DataLoader(dataset, batch_size=16, shuffle=True)
batch = next(iter(loader))
assert batch["observation.state"].shape == (16, 4) and torch.isfinite(batch["action"]).all()
print(f"{len(dataset)} rows, {dataset.num_episodes} episodes read by lerobot; a batch: {tuple(batch['observation.images.top'].shape)}")
