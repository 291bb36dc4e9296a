"""Finds what first was not finite in a user's script: nan.py SPEC. SPEC: {"script", "arguments", "plan"}.

The script runs as it would by itself. Every call of a torch.nn.Module is watched by one sum over its outputs, every backward pass by one sum over what
arrives at each module and one norm over each parameter's gradient; the device is waited for once a pass (nan_watch.py). When a value is not finite the
script is stopped and the culprit is looked at (nan_closer.py). With "plan" the first model that it called is tried in each precision (nan_precision.py)
and its operators are compared with themselves (nan_repeats.py).

Records: hello, step counts, one "found" or "clean", "plan" (precision by module), "deterministic".
"""
import faulthandler
import json
import os
import runpy
import sys
import time

from ff_probe import record
from nan_helpers import Found
from nan_precision import precision_plan
from nan_repeats import determinism
from nan_watch import Watch

spec = json.loads(sys.argv[1]) if __name__ == "__main__" else {}


def main():
    faulthandler.enable()
    started = time.perf_counter()
    try:
        import torch
    except ImportError as error:
        record(event="no-torch", detail=str(error))
        return 3
    record(event="hello", torch=torch.__version__, python=sys.version.split()[0], hip=getattr(torch.version, "hip", None), cuda=torch.version.cuda)
    watch = Watch(torch)
    watch.install()
    sys.argv = [spec["script"]] + list(spec.get("arguments", []))
    sys.path.insert(0, os.path.dirname(os.path.abspath(spec["script"])))
    begun = time.perf_counter()
    ended, code = "", 0
    try:
        try:
            runpy.run_path(spec["script"], run_name="__main__")
        except SystemExit as leave:
            code = leave.code if isinstance(leave.code, int) else 0 if leave.code is None else 1
        except Exception as error:  # noqa: BLE001: the script's own failure is told, not ours
            import traceback
            traceback.print_exc()
            ended, code = "%s: %s" % (type(error).__name__, " ".join(str(error).split())[:300]), 1
        try:
            watch.settle_forward()  # what was made last and not yet looked at; a script may have ended because of it
        except RuntimeError as error:  # the device's context is gone
            ended = ended or "%s: %s" % (type(error).__name__, " ".join(str(error).split())[:300])
    except Found:
        ended = "found"
    except BaseException as error:  # noqa: BLE001: interrupted
        ended, code = type(error).__name__, 1
    seconds = time.perf_counter() - begun
    if ended != "found":
        record(event="clean", forward_steps=watch.forward_calls, backward_steps=watch.backward_calls, masked=watch.masked, scaler_skips=watch.skipped, raised=ended, exit_code=code, modules=watch.first_root is not None)
    record(event="time", script_s=seconds, start_s=begun - started, checks=watch.checks)
    if spec.get("plan") and watch.first_root is not None:
        for work in (precision_plan, determinism):
            try:
                work(watch)
            except Exception as error:  # noqa: BLE001
                record(event="not-done", what=work.__name__, detail="%s: %s" % (type(error).__name__, " ".join(str(error).split())[:300]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
