"""Deviation and memory of a user's model, and of each of its modules, in every precision."""
import copy
import math

from ff_probe import record
from nan_helpers import changed, off_autocast, tensors_in


def relative(torch, got, want):
    got, want = got.detach().double(), want.detach().double()
    if not bool(torch.isfinite(want).all()):
        return 0.0  # the module's inputs are bad, not its precision
    if not bool(torch.isfinite(got).all()):
        return float("inf")
    return float((got - want).norm() / want.norm().clamp(min=1e-30))


def precision_plan(watch):
    """Deviation and memory of each part in each precision, by running it on the inputs that it had in float32."""
    torch = watch.torch
    root, arguments, keywords = watch.first_root
    watch.quiet = True
    to32 = lambda t: t.detach().float() if t.is_floating_point() else t  # noqa: E731
    base = copy.deepcopy(root).float().eval()
    arguments, keywords = changed(arguments, to32), changed(keywords, to32)
    names = {module: name for name, module in base.named_modules()}
    parts, handles = {}, []
    types = {"bfloat16": torch.bfloat16, "float16": torch.float16}

    def look(module, args, out):
        if any(True for _ in module.children()):
            return
        for want in tensors_in(out)[:1]:
            row = parts.setdefault(names.get(module, "?"), {"type": type(module).__name__, "output_bytes": 0, "parameter_bytes": sum(p.numel() * 4 for p in module.parameters()),
                                                            "largest": 0.0, "bfloat16": 0.0, "float16": 0.0})
            row["output_bytes"] += want.numel() * 4
            row["largest"] = max(row["largest"], float(want.abs().max()) if want.numel() else 0.0)
            for name, dtype in types.items():
                try:
                    twin = copy.deepcopy(module).to(dtype)
                    twin._forward_hooks.clear()
                    got = tensors_in(watch.original_call(twin, *changed(args, lambda t: t.to(dtype) if t.is_floating_point() else t)))[0]
                    row[name] = max(row[name] or 0.0, relative(torch, got, want)) if row[name] is not None else None
                except Exception:  # noqa: BLE001: no such kernel
                    row[name] = None

    for module in base.modules():
        handles.append(module.register_forward_hook(look))
    with torch.no_grad(), off_autocast(torch):
        wanted = tensors_in(watch.original_call(base, *arguments, **keywords))
    for handle in handles:
        handle.remove()
    device = wanted[0].device.type if wanted else "cpu"
    whole = {"float32": {"deviation": 0.0, "parameter_bytes": sum(p.numel() * 4 for p in base.parameters()), "activation_bytes": sum(p["output_bytes"] for p in parts.values())}}
    for name, dtype in types.items():
        try:
            twin = copy.deepcopy(base).to(dtype)
            change = lambda t: t.to(dtype) if t.is_floating_point() else t  # noqa: E731
            with torch.no_grad():
                got = tensors_in(watch.original_call(twin, *changed(arguments, change), **changed(keywords, change)))
            whole[name] = {"deviation": max(relative(torch, g, w) for g, w in zip(got, wanted)), "parameter_bytes": whole["float32"]["parameter_bytes"] // 2,
                           "activation_bytes": whole["float32"]["activation_bytes"] // 2}
        except Exception as error:  # noqa: BLE001
            whole[name] = {"deviation": None, "error": " ".join(str(error).split())[:200]}
        try:
            with torch.no_grad(), torch.autocast(device, dtype=dtype):
                got = tensors_in(watch.original_call(base, *arguments, **keywords))
            whole["autocast " + name] = {"deviation": max(relative(torch, g, w) for g, w in zip(got, wanted)), "parameter_bytes": whole["float32"]["parameter_bytes"]}
        except Exception as error:  # noqa: BLE001
            whole["autocast " + name] = {"deviation": None, "error": " ".join(str(error).split())[:200]}
    keep = {}
    for name, dtype in types.items():
        known = sorted(p[name] for p in parts.values() if p[name] is not None and math.isfinite(p[name]))
        typical = known[len(known) // 2] if known else 0.0
        limit = max(8 * typical, 16 * float(torch.finfo(dtype).eps))
        keep[name] = [n for n, p in parts.items() if p[name] is not None and p[name] > limit]
    rows = [dict(p, module=n) for n, p in parts.items()]
    rows.sort(key=lambda p: -max(v for v in (p["bfloat16"] or 0.0, p["float16"] or 0.0)))
    record(event="plan", whole=whole, keep_in_float32=keep, modules=rows[:200], parts=len(rows))
