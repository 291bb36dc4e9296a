"""What every probe uses: records for FirstFault, apart from whatever the user's libraries print.

Runs on Python 3.6 and newer with the standard library only.
"""

import importlib.machinery
import json
import math
import os
import sys


def keep_bytecode():
    """Compiled files of a PyTorch that has none go where FirstFault says (FIRSTFAULT_BYTECODE), for its next child.

    Many images and uv's environments hold packages without __pycache__: every start of an interpreter that may not write them (ours
    must not, in the user's environment) then compiles all of PyTorch again. FirstFault removes the folder when it ends.
    """
    folder = os.environ.get("FIRSTFAULT_BYTECODE")
    if not folder or getattr(sys, "pycache_prefix", folder) is not None:  # Python before 3.8 has none
        return
    try:
        torch = importlib.machinery.PathFinder.find_spec("torch")  # asks no import hook
    except (ImportError, ValueError, AttributeError):
        return
    if torch is None or not torch.cached or os.path.exists(torch.cached):
        return
    sys.pycache_prefix = folder
    sys.dont_write_bytecode = False


keep_bytecode()


def _plain(value):
    if isinstance(value, float) and not math.isfinite(value):
        return "nan" if math.isnan(value) else ("inf" if value > 0 else "-inf")
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return value


def own_folder():
    """Where a probe keeps what is temporary: FirstFault removes it also when the probe is ended. None when it is run by hand."""
    return os.path.dirname(os.environ.get("FIRSTFAULT_RECORDS", "")) or None


def record(**fields):
    """Appends one record (a JSON object on one line). Numbers that JSON lacks become "nan", "inf", "-inf".

    The line is in the file before this returns, so that a crash right after it loses nothing.
    """
    line = json.dumps(_plain(fields)) + "\n"
    path = os.environ.get("FIRSTFAULT_RECORDS")
    if path is None:  # run by hand
        print(line, end="", flush=True)
        return
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        os.write(handle, line.encode("ascii"))
    finally:
        os.close(handle)
