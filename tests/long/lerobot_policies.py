#!/usr/bin/env python3
"""Policies of real LeRobot with random weights, saved by it, against firstfault: `model check` finds nothing but what random
weights give away, `model load` loads them with their own classes with every tensor equal, and seeded mismatches with a dataset are named.

    FIRSTFAULT=build/dev/firstfault VENV/bin/python tests/long/lerobot_policies.py WORK_DIRECTORY

Runs with lerobot 0.4.4 and 0.6.1; needs a CPU torch, diffusers, and transformers for SmolVLA and Pi0. FIRSTFAULT_LONG_PI0=1 builds Pi0 in its smallest
variant too (1.6 billion parameters: 8 GB of memory and minutes).
"""
import importlib.metadata, json, os, pathlib, shutil, subprocess, sys

import numpy as np
import torch

from lerobot.configs.types import FeatureType, PolicyFeature
from lerobot.policies.factory import get_policy_class, make_policy_config
try:
    from lerobot.policies.factory import make_pre_post_processors
except ImportError:
    make_pre_post_processors = None

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import lerobot_datasets  # noqa: E402  record()

FIRSTFAULT = os.environ["FIRSTFAULT"]
OLD = make_pre_post_processors is None
VERSION = importlib.metadata.version("lerobot")
TRANSFORMERS = True
try:
    importlib.metadata.version("transformers")
except importlib.metadata.PackageNotFoundError:
    TRANSFORMERS = False


def firstfault(*arguments):
    process = subprocess.run([FIRSTFAULT, *map(str, arguments), "--json"], capture_output=True, text=True)
    assert process.stdout, process.stderr
    return process.returncode, json.loads(process.stdout)


def by_id(value):
    return {c["id"]: c for c in value["checks"]}


def small_vlm(root):
    """A SmolVLM of toy size with a processor of its own, as a directory that from_pretrained takes."""
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast, SmolVLMConfig, SmolVLMImageProcessor, SmolVLMProcessor, SmolVLMVideoProcessor
    special = ["<unk>", "<pad>", "<fake_token_around_image>", "<image>", "<global-img>", "<end_of_utterance>"]
    tokenizer = Tokenizer(models.WordLevel({w: i for i, w in enumerate(special + ["pick", "place", "the", "cube"])}, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, unk_token="<unk>", pad_token="<pad>", eos_token="<end_of_utterance>", extra_special_tokens={
        "fake_image_token": "<fake_token_around_image>", "image_token": "<image>", "global_image_token": "<global-img>", "end_of_utterance_token": "<end_of_utterance>"})
    SmolVLMProcessor(image_processor=SmolVLMImageProcessor(), tokenizer=fast, video_processor=SmolVLMVideoProcessor(), chat_template="{{ messages }}").save_pretrained(root)
    config = SmolVLMConfig(image_token_id=3, scale_factor=2, text_config={"model_type": "llama", "hidden_size": 60, "intermediate_size": 128, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16,
                           "num_hidden_layers": 4, "vocab_size": 64, "pad_token_id": 1},
                           vision_config={"hidden_size": 32, "intermediate_size": 64, "num_attention_heads": 2, "num_hidden_layers": 2, "image_size": 32, "patch_size": 8})
    config.save_pretrained(root)
    return root


def save(root, kind, dataset, **options):
    """What a training run leaves: weights, config.json and processors with the dataset's statistics."""
    meta = lerobot_datasets.LeRobotDataset("local/test", root=dataset, video_backend="pyav").meta
    features = {}
    for name, feature in meta.features.items():
        shape = tuple(feature["shape"])
        if feature["dtype"] in ("video", "image"):
            features[name] = PolicyFeature(FeatureType.VISUAL, (shape[2], shape[0], shape[1]))
        elif name == "observation.state":
            features[name] = PolicyFeature(FeatureType.STATE, shape)
    config = make_policy_config(kind, input_features=features, output_features={"action": PolicyFeature(FeatureType.ACTION, tuple(meta.features["action"]["shape"]))}, device="cpu", push_to_hub=False, **options)
    torch.manual_seed(0)
    if OLD:  # before 0.4 the statistics are buffers of the model
        get_policy_class(kind)(config, dataset_stats={k: {s: torch.as_tensor(v, dtype=torch.float32) for s, v in d.items() if s != "count"} for k, d in meta.stats.items()}).save_pretrained(root)
        return root
    policy = get_policy_class(kind)(config)
    policy.save_pretrained(root)
    before, after = make_pre_post_processors(config, dataset_stats=meta.stats)
    before.save_pretrained(root)
    after.save_pretrained(root)
    return root


def expect_clean(root, dataset, name):
    code, value = firstfault("model", "check", root, "--dataset", dataset)
    noted = [(c["id"], c["summary"]) for c in value["checks"] if c["status"] in ("fail", "error") or (c["status"] == "warn" and "freshly initialised" not in c["summary"] and "the statistics stand in the weights" not in c["summary"])]
    # Images of ACT and Diffusion are normalised with ImageNet's numbers where the dataset has none that fit; nothing else may be noted.
    assert code == 0 and not noted, (name, code, noted)
    code, value = firstfault("model", "load", root, "--python", sys.executable, "--device", "cpu")
    checks = by_id(value)
    assert code == 0, (name, [(c["id"], c["status"], c["summary"]) for c in value["checks"]])
    keys = checks["model.load-keys"]
    assert keys["status"] == "pass" and keys["measured"]["missing"] == [] and keys["measured"]["unexpected"] == [], keys
    print(f"ok   {name}: no fault; {keys['summary']}", flush=True)


def expect_fault(root, dataset, cause, word, name):
    code, value = firstfault("model", "check", root, "--dataset", dataset)
    found = [c for c in value["checks"] if c["status"] in ("fail", "warn") and cause in c["causes"] and word in json.dumps(c)]
    assert found, (name, [(c["id"], c["status"], c["causes"], c["summary"]) for c in value["checks"] if c["status"] not in ("pass", "skip")])
    print(f"ok   {name}: {found[0]['id']} {found[0]['status']}: {found[0]['summary'][:150]}", flush=True)


def edit(path, change):
    value = json.loads(path.read_text())
    change(value)
    path.write_text(json.dumps(value))


def mismatches(policy, dataset, work):
    """What users of LeRobot trip over, each on a copy."""
    number = 0

    def copy(of):
        nonlocal number
        number += 1
        return pathlib.Path(shutil.copytree(of, work / f"m{number}"))

    def rename(root, old, new):
        def change(info):
            info["features"] = {new if k == old else k: v for k, v in info["features"].items()}
        edit(root / "meta/info.json", change)
        return root

    def resize(root, name, shape):
        edit(root / "meta/info.json", lambda info: info["features"][name].update(shape=shape))
        return root

    expect_fault(policy, rename(copy(dataset), "observation.images.top", "observation.images.front"), "model.key-mismatch", "observation.images.top", "the camera has another name")
    expect_fault(policy, rename(copy(dataset), "observation.state", "observation.states"), "model.key-mismatch", "observation.state", "the state has another name")
    expect_fault(policy, rename(copy(dataset), "action", "actions"), "model.key-mismatch", "action", "the action has another name")
    expect_fault(policy, resize(copy(dataset), "action", [7]), "model.shape-mismatch", "action", "the dataset's action is wider")
    expect_fault(policy, resize(copy(dataset), "observation.state", [2]), "model.shape-mismatch", "observation.state", "the dataset's state is narrower")
    expect_fault(policy, resize(copy(dataset), "observation.images.top", [96, 128, 3]), "model.shape-mismatch", "observation.images.top", "pictures of another size")
    other = copy(dataset)
    if OLD:
        path = other / "meta/episodes_stats.jsonl"
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        for line in lines:
            line["stats"]["action"]["mean"] = [x + 1 for x in line["stats"]["action"]["mean"]]
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    else:
        edit(other / "meta/stats.json", lambda s: s["action"].update(mean=[x + 1 for x in s["action"]["mean"]]))
    expect_fault(policy, other, "model.normalization-missing", "normalised with other data", "statistics of another dataset")
    bad = copy(policy)
    edit(bad / "config.json", lambda c: c["output_features"]["action"].update(shape=[9]))
    expect_fault(bad, dataset, "model.shape-mismatch", "action", "config.json of another robot")
    bad = copy(policy)
    edit(bad / "config.json", lambda c: c.update(chunk_size=c["chunk_size"] * 2))
    expect_fault(bad, dataset, "model.shape-mismatch", "", "another chunk length than the weights have")
    bad = copy(policy)
    edit(bad / "config.json", lambda c: c.update(n_action_steps=c["chunk_size"] + 1))
    expect_fault(bad, dataset, "model.shape-mismatch", "n_action_steps", "more executed actions than predicted ones")
    if OLD:
        return
    bad = copy(policy)
    (bad / "policy_preprocessor.json").unlink()
    expect_fault(bad, dataset, "model.normalization-missing", "policy_preprocessor.json", "no preprocessor")
    bad = copy(policy)
    next(bad.glob("policy_postprocessor*unnormalizer*.safetensors")).unlink()
    expect_fault(bad, dataset, "model.normalization-missing", "unnormalizer", "no statistics of the action")
    bad = copy(policy)
    edit(bad / "policy_preprocessor.json", lambda p: p.update(steps=[s for s in p["steps"] if "normalizer" not in s.get("registry_name", "")]))
    expect_fault(bad, dataset, "model.normalization-missing", "normalizer", "a preprocessor that does not normalise")


def main():
    work = pathlib.Path(sys.argv[1]).resolve()
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    print(f"lerobot {VERSION}, torch {torch.__version__}", flush=True)
    data = lerobot_datasets.record(work / "data", (12, 9, 15), 1, ["pick the cube", "place the cube"], grid=False, image=False)
    act = save(work / "act", "act", data, pretrained_backbone_weights=None, dim_model=64, n_heads=4, dim_feedforward=128, n_encoder_layers=2, n_vae_encoder_layers=2, chunk_size=8, n_action_steps=8)
    expect_clean(act, data, "ACT")
    expect_clean(save(work / "act50", "act", data, vision_backbone="resnet50", pretrained_backbone_weights=None, dim_model=64, n_heads=4, dim_feedforward=128, n_encoder_layers=1, use_vae=False, chunk_size=8, n_action_steps=8), data, "ACT with a ResNet-50")
    expect_clean(save(work / "diffusion", "diffusion", data, pretrained_backbone_weights=None, use_group_norm=True, down_dims=(64, 128, 256), crop_shape=(40, 40), horizon=16), data, "Diffusion Policy")
    mismatches(act, data, work)
    if TRANSFORMERS:
        vlm = small_vlm(work / "vlm")
        smolvla = save(work / "smolvla", "smolvla", data, vlm_model_name=str(vlm), load_vlm_weights=False, num_vlm_layers=4, chunk_size=8, n_action_steps=8)
        expect_clean(smolvla, data, "SmolVLA over a small language model")
        if os.environ.get("FIRSTFAULT_LONG_PI0"):
            expect_clean(save(work / "pi0", "pi0", data, paligemma_variant="gemma_300m", dtype="bfloat16", chunk_size=8, n_action_steps=8), data, "Pi0, smallest variant")
    print("all passed")


if __name__ == "__main__":
    main()
