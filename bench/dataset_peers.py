#!/usr/bin/env python3
"""Other dataset checkers and firstfault on the same seeded faults (tests/end_to_end/data_faults.py): what each finds, how fast.

    /usr/bin/python3 bench/dataset_peers.py build/release/firstfault DIRECTORY [--kinds=REGEX] [--rows=N] [NAME=COMMAND …]

COMMAND is a peer's command line; "{}" stands for the dataset, "{id}" for its last two folders. A peer has found a fault when its report on the broken set
holds a complaint (a line with fail, error, warn, ✗ or a severity above low) that its report on the clean one has not, or
when its exit code rose. With --rows a clean set of about so many rows is timed as well, five runs of each in turn. Prints a Markdown table. Peers that need other Python packages run from their own environments.
"""
import json, pathlib, random, re, shlex, shutil, statistics, subprocess, sys, time

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests/end_to_end"))
import data_faults  # noqa: E402
from datasets import make  # noqa: E402

COMPLAINT = re.compile(r"fail|error|warn|✗|✖|critical|high|medium|missing|invalid|mismatch|exceed|traceback", re.I)


def report(command, root):
    started = time.perf_counter()
    try:
        process = subprocess.run([part.replace("{}", str(root)).replace("{id}", f"{root.parent.name}/{root.name}") for part in shlex.split(command)], capture_output=True, text=True, errors="replace", timeout=120)
    except subprocess.TimeoutExpired:
        return 124, {"timed out"}, time.perf_counter() - started
    # Numbers and paths are blanked: the same complaint about another row is the same complaint.
    lines = {re.sub(r"[\d.]+", "#", line.replace(str(root), "DIR")).strip() for line in (process.stdout + process.stderr).splitlines() if COMPLAINT.search(line)}
    return process.returncode, lines, time.perf_counter() - started


def own(program, root):
    started = time.perf_counter()
    process = subprocess.run([program, "data", "check", str(root), "--json"], capture_output=True, text=True)
    took = time.perf_counter() - started
    value = json.loads(process.stdout)
    return {cause for c in value["checks"] if c["status"] in ("fail", "warn") for cause in c["causes"]}, took


def main():
    program, work = sys.argv[1], pathlib.Path(sys.argv[2])
    wanted = next((a.removeprefix("--kinds=") for a in sys.argv[3:] if a.startswith("--kinds=")), "")
    rows = next((int(a.removeprefix("--rows=")) for a in sys.argv[3:] if a.startswith("--rows=")), 0)
    peers = dict(argument.split("=", 1) for argument in sys.argv[3:] if not argument.startswith("--"))
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    kinds = {name: kind for name, kind in {**data_faults.KINDS, **data_faults.VALUE_KINDS, **data_faults.PICTURE_KINDS}.items() if re.search(wanted, name)}
    clean, found, times = {}, {name: {} for name in ["firstfault", *peers]}, {name: [] for name in ["firstfault", *peers]}
    baseline = {}
    for number, (name, (kind, mutate, cause)) in enumerate(kinds.items()):
        key = json.dumps(kind)
        if key not in clean:
            clean[key] = work / f"clean{len(clean)}"
            make(clean[key], **kind)
            for peer, command in peers.items():
                baseline[key, peer] = report(command, clean[key])
                times[peer].append(baseline[key, peer][2])
            times["firstfault"].append(own(program, clean[key])[1])
        root = work / "broken"
        shutil.copytree(clean[key], root)
        mutate(root, random.Random(f"{name} 0"))
        found["firstfault"][name] = cause in own(program, root)[0]
        for peer, command in peers.items():
            code, lines, took = report(command, root)
            found[peer][name] = bool(lines - baseline[key, peer][1]) or (code != 0 and baseline[key, peer][0] == 0)
            times[peer].append(took)
        shutil.rmtree(root)
        print(f"{number + 1}/{len(kinds)} {name}: " + ", ".join(p for p in found if found[p][name]), file=sys.stderr, flush=True)
    print("| seeded fault | " + " | ".join(found) + " |\n|---|" + "---|" * len(found))
    for name in kinds:
        print(f"| {name} | " + " | ".join("yes" if found[p][name] else "-" for p in found) + " |")
    print("| **found** | " + " | ".join(f"**{sum(found[p].values())} of {len(kinds)}**" for p in found) + " |")
    print("| complaints on clean sets | 0 | " + " | ".join(str(max(len(baseline[key, p][1]) for key in clean)) for p in peers) + " |")
    print("| median time of one run | " + " | ".join(f"{statistics.median(times[p]):.2f} s" for p in found) + " |")
    if rows:
        root = work / "large"
        make(root, version="v3.0", lengths=[300] * (rows // 300), files=2)
        large = {name: [] for name in found}
        for _ in range(5):
            large["firstfault"].append(own(program, root)[1])
            for peer, command in peers.items():
                large[peer].append(report(command, root)[2])
        print(f"| median time of one run over {rows // 300 * 300:,} rows | " + " | ".join(f"{statistics.median(large[p]):.2f} s" for p in found) + " |")
    missed = [name for name in kinds if not found["firstfault"][name] and any(found[p][name] for p in peers)]
    if missed:
        sys.exit(f"found by another and not by firstfault: {missed}")


if __name__ == "__main__":
    main()
