"""Loads a model with the framework of this interpreter: on the CPU, then on the device, and tells what arrived.

Started by FirstFault in a child process with the path of one JSON file:
  {"root": directory or "", "kind": "lerobot"|"transformers"|"plain", "device": "cpu"|"cuda"|"auto",
   "files": [{"path", "name", "format": "safetensors"|"torch"}]}
Records one object after the other; the last one tells how far it came. Nothing is downloaded, no code of the model is run,
pickles are read with weights_only=True. CRC-32 is that of zlib over the tensor's elements in row-major order.
"""
import ctypes
import faulthandler
import json
import os
import sys
import time
import traceback
import zlib

import ff_probe


def say(event, **fields):
    ff_probe.record(event=event, **fields)


def host_peak():
    try:
        with open("/proc/self/status") as f:
            for line in f:
                if line.startswith("VmHWM:"):
                    return int(line.split()[1]) * 1024
    except OSError:
        pass
    return -1


def host_now():
    try:
        with open("/proc/self/statm") as f:
            return int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return -1


class Stage:
    """One stage: its name goes out before it begins, so that a crash can be placed."""
    def __init__(self, name):
        self.name = name

    def __enter__(self):
        say("begin", stage=self.name)
        self.at = time.monotonic()
        return self

    def __exit__(self, kind, error, trace):
        if error is not None and not isinstance(error, SystemExit):
            say("error", stage=self.name, type=f"{kind.__module__}.{kind.__qualname__}" if kind.__module__ != "builtins" else kind.__qualname__,
                text=str(error)[:4000], trace="".join(traceback.format_exception(kind, error, trace))[-6000:], **memory())
            sys.exit(0)
        say("end", stage=self.name, seconds=time.monotonic() - self.at, **memory())
        return False


torch = None


def memory():
    out = {"host_peak_bytes": host_peak(), "host_bytes": host_now()}
    try:
        if torch is not None and torch.cuda.is_available() and torch.cuda.is_initialized():
            out["device_peak_bytes"] = torch.cuda.max_memory_allocated()
            out["device_reserved_bytes"] = torch.cuda.max_memory_reserved()
    except Exception:
        pass
    return out


def crc(tensor):
    t = tensor.detach()
    if t.device.type != "cpu":
        t = t.cpu()
    t = t.contiguous()
    size = t.numel() * t.element_size()
    if size == 0:
        return 0
    return zlib.crc32((ctypes.c_char * size).from_address(t.data_ptr()))


def finite(tensor):
    """True, False, or None for types that cannot be asked."""
    if not (tensor.is_floating_point() or tensor.is_complex()):
        return True
    try:
        return bool(torch.isfinite(tensor).all())
    except (RuntimeError, NotImplementedError):
        try:
            return bool(torch.isfinite(tensor.float()).all())
        except (RuntimeError, NotImplementedError):
            return None


def dtype_of(tensor):
    return str(tensor.dtype).replace("torch.", "")


def flatten(value, name, out, depth=0):
    """Tensors of a nested state, by the key in the innermost dictionary."""
    if depth > 64:
        return
    if isinstance(value, torch.Tensor):
        out.append((name, value))
    elif isinstance(value, dict):
        for k, v in value.items():
            flatten(v, k if isinstance(k, str) else str(k), out, depth + 1)
    elif isinstance(value, (list, tuple)):
        for v in value:
            flatten(v, name, out, depth + 1)


def read_file(entry):
    """The tensors of one file, as the framework's own reader gives them."""
    if entry["format"] == "safetensors":
        from safetensors import safe_open
        with safe_open(entry["path"], framework="pt", device="cpu") as f:
            for name in f.keys():
                yield name, f.get_tensor(name)
    else:
        options = {"map_location": "cpu", "weights_only": True}
        try:
            value = torch.load(entry["path"], **options)
        except TypeError:  # torch before 1.13
            raise RuntimeError(f"torch {torch.__version__} cannot load a pickle without executing it (weights_only is missing)")
        out = []
        flatten(value, "", out)
        yield from out


def build_lerobot(root):
    config_class = policy_class = None
    for package in ("lerobot", "lerobot.common"):
        try:
            module = __import__(f"{package}.policies.factory", fromlist=["get_policy_class"])
            config_class = __import__("lerobot.configs.policies", fromlist=["PreTrainedConfig"]).PreTrainedConfig
            break
        except ModuleNotFoundError as e:
            if not (e.name or "").startswith("lerobot"):
                raise
            module = None
    if module is None:
        return None
    config = config_class.from_pretrained(root)
    config.device = "cpu"
    if hasattr(config, "pretrained_backbone_weights"):
        config.pretrained_backbone_weights = None  # would be downloaded, and the checkpoint's are loaded over them
    policy_class = module.get_policy_class(config.type)
    return policy_class.from_pretrained(root, config=config), None, f"lerobot {policy_class.__name__}"


def build_transformers(root):
    try:
        import transformers
    except ModuleNotFoundError:
        return None
    config = transformers.AutoConfig.from_pretrained(root, trust_remote_code=False)
    name = (getattr(config, "architectures", None) or [None])[0]
    wanted = getattr(transformers, name, None) if name else None
    if wanted is None:
        wanted = transformers.AutoModel
    try:
        model, info = wanted.from_pretrained(root, output_loading_info=True, dtype="auto")
    except TypeError:
        model, info = wanted.from_pretrained(root, output_loading_info=True, torch_dtype="auto")
    return model, info, f"transformers {type(model).__name__}"


def compare(model, info, files, device):
    """Each tensor of the model against that of the file: equal, equal after a cast, tied, different, missing."""
    state = dict(model.state_dict(keep_vars=True))
    owners = {}
    for name, t in state.items():
        if t.numel():
            owners.setdefault((t.data_ptr(), tuple(t.shape), t.dtype), []).append(name)
    tied_to = {name: names for names in owners.values() if len(names) > 1 for name in names}
    prefix = getattr(model, "base_model_prefix", "") or ""
    # What the loader itself says about keys that it renamed is not to be doubted; without it the names are compared.
    def variants(name):
        yield name
        for p in (prefix + ".", "model.", "module.", "_orig_mod."):
            if p != ".":
                yield name[len(p):] if name.startswith(p) else p + name
    by_variant = {}
    for name in state:
        by_variant.setdefault(name, name)
    for name in state:
        for v in variants(name):
            by_variant.setdefault(v, name)
    seen, unexpected, counts = set(), [], {"equal": 0, "cast": 0}
    elsewhere = {}  # file tensors under names that the model does not have, by content
    casts = {}
    for entry in files:
        for name, t in read_file(entry):
            target = name if name in state else by_variant.get(name)
            if target is None:
                unexpected.append(name)
                elsewhere.setdefault((tuple(t.shape), dtype_of(t), crc(t)), []).append(name)
                continue
            have = state[target].detach()
            if tuple(have.shape) != tuple(t.shape):
                say("different", tensor=name, why="shape", file_shape=list(t.shape), model_shape=list(have.shape))
                seen.add(target)
                continue
            seen.add(target)
            mine = have.cpu() if have.device.type != "cpu" else have
            if mine.dtype == t.dtype:
                if crc(mine) == crc(t):
                    counts["equal"] += 1
                else:
                    say("different", tensor=name, why="value", dtype=dtype_of(t))
            elif crc(t.to(mine.dtype)) == crc(mine):
                counts["cast"] += 1
                key = f"{dtype_of(t)} -> {dtype_of(mine)}"
                casts[key] = casts.get(key, 0) + 1
            else:
                say("different", tensor=name, why="cast", file_dtype=dtype_of(t), model_dtype=dtype_of(mine))
    missing, tied = [], []
    for name in state:
        if name in seen:
            continue
        source = next((n for n in tied_to.get(name, ()) if n in seen), None)
        if source is not None:
            tied.append([name, source])
        else:
            missing.append(name)
    renamed, converted = 0, []
    if info is not None:
        # The loader's own lists win: it knows modules that it renames, splits or joins, and keys that may be left out.
        said_missing, said_unexpected = set(info.get("missing_keys", ())), set(info.get("unexpected_keys", ()))
        for name in missing:
            if name in said_missing:
                continue
            have = state[name].detach()
            if elsewhere.get((tuple(have.shape), dtype_of(have), crc(have))):
                renamed += 1
            else:
                converted.append(name)
        missing = [n for n in missing if n in said_missing]
        unexpected = [n for n in unexpected if n in said_unexpected]
        for item in info.get("mismatched_keys", ()):
            say("different", tensor=str(item[0] if isinstance(item, (list, tuple)) else item), why="shape", file_shape=[], model_shape=[])
    say("keys", device=device, model_tensors=len(state), **counts, casts=casts, renamed=renamed, converted=converted, tied=tied, missing=missing, unexpected=unexpected)
    return state


def check_finite(state):
    bad = []
    for name, t in state.items():
        if finite(t.detach()) is False:
            bad.append(name)
    say("finite", tensors=len(state), nonfinite=bad[:50], nonfinite_count=len(bad))


def main():
    global torch
    faulthandler.enable()
    try:
        with open("/proc/self/oom_score_adj", "w") as f:
            f.write("1000")  # when memory ends, this process is the one to go
    except OSError:
        pass
    with open(sys.argv[1]) as f:
        spec = json.load(f)
    with Stage("import"):
        import torch as module
        torch = module
        if any(entry["format"] == "safetensors" for entry in spec["files"]):
            import safetensors  # noqa: F401  without it this interpreter cannot read them: its fault, not the model's
        versions = {"python": ".".join(map(str, sys.version_info[:3])), "torch": torch.__version__, "hip": getattr(torch.version, "hip", None),
                    "cuda": getattr(torch.version, "cuda", None)}
        for package in ("safetensors", "transformers", "lerobot"):
            try:
                from importlib import metadata
                versions[package] = metadata.version(package)
            except Exception:
                pass
        say("versions", **versions)
    base = host_now()
    device = spec["device"]
    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    if device != "cpu":
        with Stage("device"):
            if not torch.cuda.is_available():
                raise RuntimeError("torch.cuda.is_available() is False")
            say("device", name=torch.cuda.get_device_name(0), total_bytes=torch.cuda.get_device_properties(0).total_memory)
    kept, seen = [], 0
    built = None
    with Stage("read"):
        for entry in spec["files"]:
            for name, t in read_file(entry):
                seen += 1
                say("tensor", file=entry["name"], tensor=name, dtype=dtype_of(t), shape=list(t.shape), crc=crc(t), finite=finite(t))
                if spec["kind"] == "plain":
                    kept.append((f"{entry['name']}:{name}", t))
    if spec["kind"] != "plain":
        with Stage("build"):
            built = {"lerobot": build_lerobot, "transformers": build_transformers}[spec["kind"]](spec["root"])
            if built is None:
                say("plain", why=f"{spec['kind']} is not installed in this Python")
        if built is not None:
            say("built", what=built[2])
            with Stage("compare"):
                state = compare(built[0], built[1], spec["files"], "cpu")
                check_finite(state)
    if built is None and not kept and device != "cpu":
        for entry in spec["files"]:
            kept += [(f"{entry['name']}:{name}", t) for name, t in read_file(entry)]
    say("loaded", host_base_bytes=base)
    if device == "cpu":
        return
    with Stage("transfer"):
        if built is not None:
            before = {name: (crc(t), dtype_of(t)) for name, t in built[0].state_dict().items()}
            model = built[0].to(device)
            torch.cuda.synchronize()
        else:
            before = {name: (crc(t), dtype_of(t)) for name, t in kept}
            kept = [(name, t.to(device)) for name, t in kept]
            torch.cuda.synchronize()
    with Stage("back"):
        after = model.state_dict().items() if built is not None else kept
        equal = 0
        for name, t in after:
            if crc(t) == before[name][0] and dtype_of(t) == before[name][1]:
                equal += 1
            else:
                say("altered", tensor=name)
        bad = [name for name, t in after if finite(t.detach()) is False]
        say("transferred", tensors=len(before), equal=equal, nonfinite=bad[:50], nonfinite_count=len(bad), **memory())


main()
