#!/usr/bin/env python3
"""firstfault snapshot against `python -m torch.utils.collect_env`, side by side on this machine.

    bench/snapshot.py --firstfault build/release/firstfault --python /path/to/python-with-torch [--rounds 7]

Both look at the same Python environment. The rounds alternate, so that both see the same load; the figure is the ratio of
the medians. PYTHONPATH and LD_LIBRARY_PATH of the caller reach both.
"""
import argparse, json, os, pathlib, statistics, subprocess, sys, tempfile, time


def seconds(command):
    start = time.perf_counter()
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    elapsed = time.perf_counter() - start
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))} failed: {done.stderr.strip()[-500:]}")
    return elapsed, done.stdout


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--firstfault", default="build/release/firstfault")
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--environment", help="what --python of snapshot gets (default: the interpreter)")
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    ours, theirs = [], []
    with tempfile.TemporaryDirectory() as directory:
        for number in range(options.rounds + 1):
            target = pathlib.Path(directory) / f"{number}.tar.zst"
            mine, text = seconds([options.firstfault, "snapshot", "-o", target, "--python", options.environment or options.python, "--json"])
            other, report = seconds([options.python, "-m", "torch.utils.collect_env"])
            if "PyTorch version:" not in report or "PyTorch version: N/A" in report:
                sys.exit(f"{options.python} has no torch: nothing to compare with")
            if number > 0:  # the first round warms the page cache for both
                ours.append(mine)
                theirs.append(other)
    a, b = statistics.median(ours), statistics.median(theirs)
    print(json.dumps({"snapshot_s": round(a, 3), "collect_env_s": round(b, 3), "ratio": round(b / a, 2), "rounds": options.rounds,
                      "snapshot_range_s": [round(min(ours), 3), round(max(ours), 3)], "collect_env_range_s": [round(min(theirs), 3), round(max(theirs), 3)],
                      "load": os.getloadavg()[0], "files": json.loads(text)["files"]}, indent=2))


if __name__ == "__main__":
    main()
