"""Runs operators of one group in the user's own PyTorch: ops.py SPEC (JSON text).

SPEC: {"device", "repeats", "limit_s", "cases": [[operator, dtype, route], ...]}, route "" or "DEVICE/DTYPE" ("cpu/", "/float64")
Records: hello (versions), start, variant, result, dead (the device's context is gone; exit 70), unavailable, end.
A case that does not end within limit_s ends this process: faulthandler prints all stacks to stderr and exits.
"""
import faulthandler
import json
import os
import sys
import time

from ff_probe import record


def describe(torch, device):
    facts = {"torch": torch.__version__, "python": sys.version.split()[0], "hip": getattr(torch.version, "hip", None), "cuda": torch.version.cuda,
             "api": "cpu" if device == "cpu" else "hip" if getattr(torch.version, "hip", None) else "cuda", "threads": torch.get_num_threads()}
    if device != "cpu":
        properties = torch.cuda.get_device_properties(0)
        facts["name"] = torch.cuda.get_device_name(0)
        facts["target"] = properties.gcnArchName if facts["hip"] else "sm_%d%d" % torch.cuda.get_device_capability(0)
        facts["devices"] = torch.cuda.device_count()
    return facts


def open_device(device):
    """Imports torch and puts one number on the device. Returns the engine, or None when there is no such device."""
    import ops_engine as engine
    torch = engine.torch
    if device != "cpu":
        if not torch.cuda.is_available():
            record(event="unavailable", torch=torch.__version__, detail="torch.cuda.is_available() is False")
            return None
        torch.set_num_threads(1)  # the references are small
        torch.zeros(1, device=device).cpu()
    record(event="hello", **describe(torch, device))
    engine.strict()
    return engine


def main():
    spec = json.loads(sys.argv[1])
    faulthandler.enable()
    limit = float(spec.get("limit_s", 30))
    faulthandler.dump_traceback_later(float(spec.get("start_limit_s", 120)), exit=True)
    engine = open_device(spec["device"])
    if engine is None:
        return 3
    import ops_catalogue
    known = ops_catalogue.by_name()
    for name, dtype, path in spec["cases"]:
        where = dict(name=name, dtype=dtype, route=path)
        route = dict(zip(("device", "dtype"), path.split("/"))) if path else None
        record(event="start", **where)
        faulthandler.dump_traceback_later(limit, exit=True)
        started = time.perf_counter()
        try:
            result = engine.run_operator(known[name], dtype, spec["device"], int(spec.get("repeats", 1)), route,
                                         lambda variant: record(event="variant", variant=variant, **where))
        except engine.Dead as error:
            record(event="dead", detail=str(error), **where)
            sys.stderr.write(str(error) + "\n")
            sys.stderr.flush()
            os._exit(70)
        faulthandler.cancel_dump_traceback_later()
        record(event="result", family=known[name].family, wall_ms=(time.perf_counter() - started) * 1000, **where, **result)
    record(event="end")
    return 0


if __name__ == "__main__":
    sys.exit(main())
