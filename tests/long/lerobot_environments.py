#!/usr/bin/env python3
"""The whole upper half of the ladder on real LeRobot with real simulators, on the CPU: episodes are recorded in the
simulator, a small ACT policy is trained on them for 8 steps (twice, and again from its checkpoint), and evaluated there.

    FIRSTFAULT=build/dev/firstfault MUJOCO_GL=egl VENV/bin/python tests/long/lerobot_environments.py WORK_DIRECTORY [pusht aloha so101]

Needs lerobot with a CPU torch, and gym-pusht, gym-aloha, mujoco or lerobot-env-so101. A policy of 8 steps succeeds never, so
what must hold is everything but that: rungs 3 to 7, and at rung 8 every check but the success itself. A failed save's torn directory under
its final name is a warning (lerobot writes in place); the restores must all come back.
"""
import importlib.metadata, json, os, pathlib, shutil, subprocess, sys, time

import gymnasium
import numpy as np
try:
    from lerobot.datasets.lerobot_dataset import LeRobotDataset
except ImportError:  # lerobot 0.3
    from lerobot.common.datasets.lerobot_dataset import LeRobotDataset

HERE = pathlib.Path(__file__).resolve().parent
FIRSTFAULT = pathlib.Path(os.environ["FIRSTFAULT"]).resolve()
SMALL = ["--policy.chunk_size=8", "--policy.n_action_steps=8", "--policy.dim_model=64", "--policy.n_heads=2", "--policy.dim_feedforward=64", "--policy.n_encoder_layers=1",
         "--policy.n_vae_encoder_layers=1", "--policy.pretrained_backbone_weights=null"]
# name: (module, gymnasium id, arguments, fps, picture of an observation, state of it, camera's name, lerobot-eval's words)
SIMULATORS = {
    "pusht": ("gym_pusht", "gym_pusht/PushT-v0", {"obs_type": "pixels_agent_pos"}, 10,
              lambda o: o["pixels"], lambda o: o["agent_pos"], "observation.image", ["--env.type=pusht", "--env.episode_length=12"]),
    "aloha": ("gym_aloha", "gym_aloha/AlohaInsertion-v0", {"obs_type": "pixels_agent_pos"}, 50,
              lambda o: o["pixels"]["top"], lambda o: o["agent_pos"], "observation.images.top", ["--env.type=aloha", "--env.episode_length=12", "--batch_size=1"]),
    "so101": ("so101_plugin", "lerobot_env_so101/SO101PickCube-v0", {}, 10, None, lambda o: (o["agent_pos"], o["environment_state"]), None,
              ["--env.discover_packages_path=so101_plugin", "--env.type=so101", "--env.episode_length=12", "--eval.batch_size=1"]),
}


def record(name, root):
    module, identity, arguments, fps, picture, state, camera, _ = SIMULATORS[name]
    __import__(module)
    env = gymnasium.make(identity, render_mode="rgb_array", **arguments)
    observation, _ = env.reset(seed=0)
    vector = lambda n: {"dtype": "float32", "shape": (n,), "names": [f"v{i}" for i in range(n)]}
    features = {"action": vector(env.action_space.shape[0])}
    if camera:
        features["observation.state"] = vector(len(state(observation)))
        features[camera] = {"dtype": "image", "shape": picture(observation).shape, "names": ["height", "width", "channels"]}
    else:
        for key, value in zip(("observation.state", "observation.environment_state"), state(observation)):
            features[key] = vector(len(value))
    dataset = LeRobotDataset.create("local/firstfault", fps=fps, root=root, use_videos=False, features=features)
    rng = np.random.default_rng(0)
    low, high = np.nan_to_num(env.action_space.low, neginf=-1), np.nan_to_num(env.action_space.high, posinf=1)
    for episode in range(3):
        observation, _ = env.reset(seed=episode)
        action = rng.uniform(low, high)
        for _ in range(20):
            action = np.clip(action + rng.normal(0, 0.05, low.shape) * (high - low), low, high).astype("float32")
            frame = {"action": action}
            if camera:
                frame |= {"observation.state": np.asarray(state(observation), "float32"), camera: picture(observation)}
            else:
                frame |= {key: np.asarray(value, "float32") for key, value in zip(("observation.state", "observation.environment_state"), state(observation))}
            try:
                dataset.add_frame(frame | {"task": "try"})
            except (TypeError, ValueError):  # lerobot 0.3 takes the task beside the frame
                dataset.add_frame(frame, task="try")
            observation, *_ = env.step(action)
        dataset.save_episode()
    if hasattr(dataset, "finalize"):
        dataset.finalize()
    env.close()


def climb(name, work):
    began = time.time()
    done = subprocess.run([FIRSTFAULT, "check", "--workload", "lerobot", "--python", sys.prefix, "--dataset", work / "dataset", "--device", "cpu", "--json", "--keep-going", "--runs", work / "runs", "--",
                           *SMALL, *SIMULATORS[name][-1]], capture_output=True, text=True, env=os.environ | {"PYTHONPATH": str(HERE), "HF_HUB_OFFLINE": "1"})
    document = json.loads(done.stdout)
    print(f"{name}: {time.time() - began:.0f} s, run {document['run']}")
    checks = {}
    for rung in document["rungs"]:
        print(f"  {rung['rung']}: {rung['status']} {rung.get('reason', '')}")
        for check in rung["checks"]:
            checks[check["id"]] = check
            if check["status"] != "skip" and rung["rung"] not in ("device", "compute"):
                print("     ", check["status"], check["id"], "-", check["summary"])
    return document, checks


os.environ.setdefault("MUJOCO_GL", "egl")
sys.path.insert(0, str(HERE))
place = pathlib.Path(sys.argv[1])
print("lerobot", importlib.metadata.version("lerobot"))
for name in sys.argv[2:] or SIMULATORS:
    work = place / name
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    record(name, work / "dataset")
    sys.stdout.flush()
    document, checks = climb(name, work)
    for identity in ("step.runs", "step.metrics", "step.reproducible", "resume.continues", "resume.state-complete", "episode.present", "evaluation.present", "evaluation.results"):
        assert checks[identity]["status"] in ("pass", "warn"), checks[identity]
    for identity in ("resume.torn-save", "resume.restore-rate"):
        assert checks[identity]["status"] in ("pass", "warn"), checks[identity]
    assert checks["resume.restore-rate"]["measured"]["rate"] == 1, checks["resume.restore-rate"]
    for identity in ("step.performance", "episode.performance"):
        told = checks[identity]["measured"]
        assert told["versions"]["lerobot"] == importlib.metadata.version("lerobot") and "not stated" not in (told["device"], told["batch"]), told
    assert checks["evaluation.success-interval"]["measured"]["episodes"] == 4, checks["evaluation.success-interval"]
    wrong = [c for c in checks.values() if c["status"] in ("fail", "error") and c["id"].split(".")[0] in ("step", "resume", "episode", "evaluation")]
    assert all(c["id"] == "evaluation.success-interval" for c in wrong), wrong
