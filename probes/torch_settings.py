"""One setting of PyTorch that no environment variable has, made when torch is imported: for `firstfault isolate`, which puts this file as
sitecustomize.py first on PYTHONPATH. FIRSTFAULT_TORCH_SETTING names it. A sitecustomize of the user's own still runs.
"""
import importlib.machinery
import importlib.util
import os
import sys


def deterministic(torch):
    torch.use_deterministic_algorithms(True, warn_only=True)
    torch.backends.cudnn.benchmark = False


def sdpa_math(torch):
    for name in ("flash", "mem_efficient", "cudnn"):
        getattr(torch.backends.cuda, "enable_%s_sdp" % name, lambda on: None)(False)
    torch.backends.cuda.enable_math_sdp(True)


def full_precision(torch):
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    for kind in ("fp16", "bf16"):
        if hasattr(torch.backends.cuda.matmul, "allow_%s_reduced_precision_reduction" % kind):
            setattr(torch.backends.cuda.matmul, "allow_%s_reduced_precision_reduction" % kind, False)


def no_dnn(torch):
    torch.backends.cudnn.enabled = False


SETTINGS = {"deterministic": deterministic, "sdpa-math": sdpa_math, "full-precision": full_precision, "no-dnn": no_dnn}


class AfterTorch:
    """Finds torch where it is and makes the setting when it has been executed."""

    def find_spec(self, name, path=None, target=None):
        if name != "torch":
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is None or spec.loader is None:
            return spec
        execute = spec.loader.exec_module

        def exec_module(module):
            execute(module)
            try:
                SETTINGS[os.environ["FIRSTFAULT_TORCH_SETTING"]](module)
            except Exception as error:  # noqa: BLE001: a version without it runs unchanged, and says so
                print("firstfault isolate: the setting was not made: %s" % error, file=sys.stderr)

        spec.loader.exec_module = exec_module
        return spec


def run_own():
    here = os.path.dirname(os.path.abspath(__file__))
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", [p for p in sys.path if os.path.abspath(p or ".") != here])
    if spec is not None and spec.loader is not None:
        spec.loader.exec_module(importlib.util.module_from_spec(spec))


if __name__ == "sitecustomize":
    run_own()
if os.environ.get("FIRSTFAULT_TORCH_SETTING") in SETTINGS:
    sys.meta_path.insert(0, AfterTorch())
