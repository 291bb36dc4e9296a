"""A program that trains nothing and behaves as one that does: OUT STEPS SAVE_EVERY [--resume] [--wrong KIND].

Checkpoints as HF Trainer lays them out. Wrong kinds: head-stands (a trained group never moves), frozen-moves, hides-failure (a save
that fails is passed over, its directory stays and "last" points to it), torn-name (a failed save ends the program and stays under
its final name), flaky (every second restore begins elsewhere), says-done (nothing can be saved and it ends regularly).
lerobot (with lerobot-no-sampler): as lerobot lays them out, and the losses after a resumption are as large, not the same.
no-steps is none: records as HF Trainer prints them, without their step.
"""
import json, os, pathlib, shutil, sys

from models import floats, safetensors

out, steps, every = pathlib.Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
wrong = sys.argv[sys.argv.index("--wrong") + 1] if "--wrong" in sys.argv else ""
SIZES = {"body.weight": 3000, "head.weight": 500, "frozen.weight": 40}


def weights(step):
    value = {name: [0.5 + i / size for i in range(size)] for name, size in SIZES.items()}
    for name in value:
        if name != "frozen.weight" and not (name == "head.weight" and wrong == "head-stands") or wrong == "frozen-moves":
            value[name] = [v * 0.99**step for v in value[name]]
    return value


def save_as_lerobot(step):
    model, state = (out / f"checkpoints/{step:06d}" / name for name in ("pretrained_model", "training_state"))
    for place in (model, state):
        place.mkdir(parents=True)
    tensor = safetensors({"x": ("F32", (4,), floats(1, 2, 3, 4))})
    (model / "model.safetensors").write_bytes(safetensors({name: ("F32", (len(v),), floats(*v)) for name, v in weights(step).items()}))
    for name, value in (("config.json", {"type": "act"}), ("train_config.json", {"steps": steps})):
        (model / name).write_text(json.dumps(value))
    (state / "training_step.json").write_text(json.dumps({"step": step, **({"batch_size": 2, "num_processes": 1} if wrong == "lerobot" else {})}))
    (state / "scheduler_state.json").write_text(json.dumps({"last_epoch": step}))
    (state / "optimizer_param_groups.json").write_text("[]")
    for name in ("optimizer_state", "rng_state"):
        (state / f"{name}.safetensors").write_bytes(tensor)


def save(step):
    if wrong.startswith("lerobot"):
        return save_as_lerobot(step)
    final = out / f"checkpoint-{step}"
    place = final if wrong in ("torn-name", "hides-failure") else out / "saving"
    shutil.rmtree(place, ignore_errors=True)
    try:
        place.mkdir(parents=True)
        state = {"optimizer.pt": b"moments" * 100, "scheduler.pt": b"scheduler", "rng_state.pth": b"random",
                 "trainer_state.json": json.dumps({"global_step": step, "max_steps": steps, "log_history": []}).encode(), "model.safetensors": safetensors({name: ("F32", (len(v),), floats(*v)) for name, v in weights(step).items()})}
        for name, content in state.items():
            with open(place / name, "wb", buffering=0) as file:
                for at in range(0, len(content), 4096):
                    assert file.write(content[at:at + 4096]) == len(content[at:at + 4096]), "a short write"
        if place != final:
            os.rename(place, final)
    except Exception:
        if wrong not in ("hides-failure", "says-done"):
            raise
    if wrong == "hides-failure":
        (out / "last").unlink(missing_ok=True)
        (out / "last").symlink_to(final.name)


out.mkdir(parents=True, exist_ok=True)
step = 0
if "--resume" in sys.argv:
    step = max(int(p.name.removeprefix("checkpoint-")) for p in [*out.glob("checkpoint-*"), *out.glob("checkpoints/0*")])
    print(f"Resumed training from step {step}")
print(f"num_learnable_params={SIZES['body.weight'] + SIZES['head.weight']}\nnum_total_params={sum(SIZES.values())}")
shift = 0.08 if wrong.startswith("lerobot") and step else 0
if wrong == "flaky" and step:
    counter = pathlib.Path(os.environ["TOY_COUNTER"])
    count = int(counter.read_text()) if counter.exists() else 0
    counter.write_text(str(count + 1))
    shift = count % 2
while step < steps:
    step += 1
    loss, rate = (1 + shift) / (step + 1), 1e-3 * (1 - step / (steps + 1))
    if wrong == "no-steps":
        print({"loss": round(loss, 6), "grad_norm": 1.25, "learning_rate": rate, "epoch": step / 10}, flush=True)
    else:
        print(f"step={step} loss={loss:.6f} lr={rate:.6e} grad_norm=1.25", flush=True)
    if step % every == 0:
        save(step)
print("End of training")
