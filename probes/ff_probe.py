"""What every probe uses: records for FirstFault, apart from whatever the user's libraries print.

Runs on Python 3.6 and newer with the standard library only.
"""

import json
import math
import os


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
