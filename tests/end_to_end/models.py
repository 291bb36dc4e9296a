"""Writes small models: safetensors, PyTorch zips, Hugging Face and LeRobot directories. Standard library only."""
import json, pickle, random, struct, zipfile, io, zlib

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


def weights(action=7, chunk=10):
    """A few of an ACT policy's tensors, small."""
    return {"model.action_head.weight": f32(action, 16), "model.action_head.bias": f32(action), "model.decoder_pos_embed.weight": f32(chunk, 16),
            "model.encoder_robot_state_input_proj.weight": f32(16, 7), "model.backbone.conv1.weight": f32(4, 3, 3, 3)}


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
    config = {"type": "act", "n_obs_steps": 1, "input_features": FEATURES_IN, "output_features": FEATURES_OUT, "chunk_size": 10, "n_action_steps": 10, "normalization_mapping": MODES}
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


def sharded(root):
    """A Hugging Face model in two shards."""
    root.mkdir(parents=True, exist_ok=True)
    (root / "config.json").write_text(json.dumps({"model_type": "llama", "hidden_size": 16}))
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
