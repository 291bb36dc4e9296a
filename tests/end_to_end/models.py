"""Writes small models: safetensors, PyTorch zips, Hugging Face and LeRobot directories. Standard library only."""
import json, pickle, random, struct, zipfile, io

SIZES = {"F64": 8, "F32": 4, "F16": 2, "BF16": 2, "F8_E4M3": 1, "F8_E5M2": 1, "I64": 8, "I32": 4, "U8": 1, "BOOL": 1}


def floats(*values):
    return struct.pack(f"<{len(values)}f", *values)


def safetensors(tensors, metadata=None):
    """{name: (dtype, shape, bytes)} as the bytes of a file, in the given order."""
    header, data = {}, b""
    if metadata:
        header["__metadata__"] = metadata
    for name, (dtype, shape, content) in tensors.items():
        header[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [len(data), len(data) + len(content)]}
        data += content
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + data


def f32(*shape, rng=random.Random(1)):
    n = 1
    for s in shape:
        n *= s
    return ("F32", shape, floats(*(rng.uniform(-1, 1) for _ in range(n))))


def weights(action=7, chunk=10, state=7, width=16, hidden=24, latent=4):
    """Every tensor of a tiny ACT policy, by lerobot's names (policies/act/modeling_act.py); the backbone is some other network."""
    out = {}

    def linear(name, rows, columns):
        out[name + ".weight"], out[name + ".bias"] = f32(rows, columns), f32(rows)

    def layer(name, attentions, norms):
        for a in attentions:
            out[f"{name}.{a}.in_proj_weight"], out[f"{name}.{a}.in_proj_bias"] = f32(3 * width, width), f32(3 * width)
            linear(f"{name}.{a}.out_proj", width, width)
        linear(f"{name}.linear1", hidden, width)
        linear(f"{name}.linear2", width, hidden)
        for n in range(1, norms + 1):
            out[f"{name}.norm{n}.weight"], out[f"{name}.norm{n}.bias"] = f32(width), f32(width)
    out["model.action_head.weight"], out["model.action_head.bias"] = f32(action, width), f32(action)
    out["model.decoder_pos_embed.weight"] = f32(chunk, width)
    linear("model.encoder_robot_state_input_proj", width, state)
    out["model.backbone.conv1.weight"] = f32(4, 3, 3, 3)
    layer("model.vae_encoder.layers.0", ["self_attn"], 2)
    out["model.vae_encoder_cls_embed.weight"], out["model.vae_encoder_pos_enc"] = f32(1, width), f32(1, chunk + 2, width)
    linear("model.vae_encoder_robot_state_input_proj", width, state)
    linear("model.vae_encoder_action_input_proj", width, action)
    linear("model.vae_encoder_latent_output_proj", 2 * latent, width)
    layer("model.encoder.layers.0", ["self_attn"], 2)
    layer("model.decoder.layers.0", ["self_attn", "multihead_attn"], 3)
    out["model.decoder.norm.weight"], out["model.decoder.norm.bias"] = f32(width), f32(width)
    linear("model.encoder_latent_input_proj", width, latent)
    out["model.encoder_img_feat_input_proj.weight"], out["model.encoder_img_feat_input_proj.bias"] = f32(width, 4, 1, 1), f32(width)
    out["model.encoder_1d_feature_pos_embed.weight"] = f32(2, width)
    return out


SIZES_OF_ACT = {"dim_model": 16, "dim_feedforward": 24, "n_heads": 2, "n_encoder_layers": 1, "n_decoder_layers": 1, "n_vae_encoder_layers": 1, "latent_dim": 4, "use_vae": True, "vision_backbone": "tiny"}


FEATURES_IN = {"observation.state": {"type": "STATE", "shape": [7]}, "observation.images.top": {"type": "VISUAL", "shape": [3, 48, 64]}}
FEATURES_OUT = {"action": {"type": "ACTION", "shape": [7]}}
MODES = {"VISUAL": "MEAN_STD", "STATE": "MEAN_STD", "ACTION": "MEAN_STD"}


def statistics():
    out = {}
    for name, shape in (("action", (7,)), ("observation.images.top", (3, 1, 1)), ("observation.state", (7,))):
        n = shape[0]
        out[f"{name}.mean"] = ("F32", shape, floats(*(0.1 * i for i in range(n))))
        out[f"{name}.std"] = ("F32", shape, floats(*(0.5 + 0.1 * i for i in range(n))))
    return out


def policy(root, old=False):
    """A LeRobot ACT policy as lerobot from 0.4 writes it; `old`: as before 0.4, statistics in the weights."""
    root.mkdir(parents=True, exist_ok=True)
    config = {"type": "act", "n_obs_steps": 1, "input_features": FEATURES_IN, "output_features": FEATURES_OUT, "chunk_size": 10, "n_action_steps": 10, "normalization_mapping": MODES, **SIZES_OF_ACT}
    (root / "config.json").write_text(json.dumps(config))
    (root / "train_config.json").write_text(json.dumps({"steps": 100}))
    tensors = weights()
    if old:
        for name, t in statistics().items():
            feature, stat = name.rsplit(".", 1)
            module = "unnormalize_outputs" if feature == "action" else "normalize_inputs"
            tensors[f"{module}.buffer_{feature.replace('.', '_')}.{stat}"] = t
    else:
        def step(name, features, file):
            return {"registry_name": name, "config": {"eps": 1e-8, "features": features, "norm_map": MODES}, "state_file": file}
        pre, post = "policy_preprocessor_step_1_normalizer_processor.safetensors", "policy_postprocessor_step_0_unnormalizer_processor.safetensors"
        (root / "policy_preprocessor.json").write_text(json.dumps({"name": "policy_preprocessor", "steps": [
            {"registry_name": "rename_observations_processor", "config": {"rename_map": {}}}, step("normalizer_processor", {**FEATURES_IN, **FEATURES_OUT}, pre)]}))
        (root / "policy_postprocessor.json").write_text(json.dumps({"name": "policy_postprocessor", "steps": [step("unnormalizer_processor", FEATURES_OUT, post)]}))
        for file in (pre, post):
            (root / file).write_bytes(safetensors(statistics()))
    (root / "model.safetensors").write_bytes(safetensors(tensors))
    return root


def training_state(root, step, optimizer_step=None, scheduler_step=None, written_step=0, accumulation=1, processes=1, negative=False, behind=0, rate=None, optimizer=True, still=False):
    """LeRobot's training_state/ for three parameters; the arguments make it not fit together."""
    root.mkdir(parents=True, exist_ok=True)
    steps = step if optimizer_step is None else optimizer_step
    written = step if written_step == 0 else written_step
    (root / "training_step.json").write_text(json.dumps({} if written is None else {"step": written, "dp_world_size": processes, "grad_accum_steps": accumulation}))
    (root / "scheduler_state.json").write_text(json.dumps({"last_epoch": step if scheduler_step is None else scheduler_step, "_last_lr": [1e-4 if rate is None else rate]}))
    (root / "optimizer_param_groups.json").write_text(json.dumps([{"lr": 1e-4, "betas": [0.9, 0.999], "params": [0, 1, 2]}]))
    tensors = {}
    for i in range(3):
        tensors[f"state/{i}/step"] = ("F32", (), floats(steps - (behind if i == 1 else 0)))
        tensors[f"state/{i}/exp_avg"] = f32(4)
        tensors[f"state/{i}/exp_avg_sq"] = ("F32", (4,), floats(0.1, -0.2 if negative and i == 2 else 0.2, 0.3, 0.4) if not still else floats(0, 0, 0, 0))
    if optimizer:
        (root / "optimizer_state.safetensors").write_bytes(safetensors(tensors))
    (root / "rng_state.safetensors").write_bytes(safetensors({"torch_rng_state": ("U8", (4,), b"abcd")}))


def sharded(root):
    """A Hugging Face model in two shards."""
    root.mkdir(parents=True, exist_ok=True)
    (root / "config.json").write_text(json.dumps({"model_type": "sharded-for-tests", "hidden_size": 16}))
    names, total = {}, 0
    for i in (1, 2):
        file = f"model-0000{i}-of-00002.safetensors"
        tensors = {f"model.layers.{i}.{part}.weight": f32(16, 16) for part in ("q", "k", "v")}
        (root / file).write_bytes(safetensors(tensors, {"format": "pt"}))
        names.update({n: file for n in tensors})
        total += sum(len(t[2]) for t in tensors.values())
    (root / "model.safetensors.index.json").write_text(json.dumps({"metadata": {"total_size": total}, "weight_map": names}))
    return root


def tensor_pickle(name, elements, extra=b""):
    """The data.pkl that torch.save writes for {name: FloatTensor of `elements`}; `extra`: instructions before STOP."""
    def text(s):
        return b"X" + struct.pack("<I", len(s)) + s.encode()
    return (b"\x80\x02}" + text(name) + b"ctorch._utils\n_rebuild_tensor_v2\n((" + text("storage") + b"ctorch\nFloatStorage\n" + text("0") + text("cpu") +
            b"J" + struct.pack("<i", elements) + b"tQK\x00J" + struct.pack("<i", elements) + b"\x85K\x01\x85\x89ccollections\nOrderedDict\n)RtRs" + extra + b".")


def torch_zip(content, pickled=None, top="archive"):
    """A PyTorch zip with one float tensor "w"; members stored, as torch.save does."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as z:
        for name, data in (("data.pkl", pickled or tensor_pickle("w", len(content) // 4)), ("byteorder", b"little"), ("data/0", content), ("version", b"3\n")):
            z.writestr(zipfile.ZipInfo(f"{top}/{name}", (1980, 1, 1, 0, 0, 0)), data)
    return out.getvalue()


def evil(command="os", function="system"):
    """Instructions that call a function when the pickle is loaded."""
    return f"c{command}\n{function}\n".encode() + b"X\x02\x00\x00\x00hi\x85R0"


def write_corpus(directory):
    """tests/fuzz/corpus/{safetensors,torch_zip}."""
    a, b = directory / "safetensors", directory / "torch_zip"
    for d in (a, b):
        d.mkdir(parents=True, exist_ok=True)
    (a / "types.safetensors").write_bytes(safetensors({f"t.{d}": (d, (2, 2), b"\x01" * 4 * n) for d, n in SIZES.items()}, {"format": "pt"}))
    (a / "nonfinite.safetensors").write_bytes(safetensors({"a": ("F32", (3,), floats(1, float("nan"), float("inf"))), "b": ("F16", (2,), b"\x00\x7c\x01\xfc")}))
    (a / "escapes.safetensors").write_bytes(safetensors({"\u00e9\n\U0001f600\"": ("U8", (0,), b"")}, {"\\": "\t"}))
    (a / "header-only").write_bytes(struct.pack("<Q", 2) + b"{}")
    (b / "one.pt").write_bytes(torch_zip(floats(1, 2, 3)))
    (b / "evil.pt").write_bytes(torch_zip(floats(1), tensor_pickle("w", 1, evil())))
    (b / "protocol0.pkl").write_bytes(b"cos\nsystem\n(S'x'\ntR.")
    (b / "protocol4.pkl").write_bytes(pickle.dumps({"a": [1, 2.5, "x", None, (True, {3})], "b": b"y" * 10, "c": 1 << 80, "d": complex(1, 2)}, 4))
    (b / "protocol5.pkl").write_bytes(pickle.dumps({"a": bytearray(b"x"), "b": frozenset([1])}, 5))
    (b / "legacy.pt").write_bytes(pickle.dumps(0x1950a86a20f9469cfc6c, 2) + pickle.dumps(1001, 2) + pickle.dumps({"little_endian": True}, 2) + tensor_pickle("w", 2).replace(b"tQK\x00", b"NtQK\x00") +
                                  pickle.dumps(["0"], 2) + struct.pack("<Q", 2) + floats(1, 2))


if __name__ == "__main__":
    import pathlib
    write_corpus(pathlib.Path(__file__).resolve().parents[1] / "fuzz/corpus")
