#!/usr/bin/env python3
"""How fast is a whole environment listed?

    bench/code_tree.py build/bench/firstfault FOLDER...

A folder is a virtual environment, /opt/rocm, or ROCm's libraries unpacked. Times `firstfault code FOLDER` (warm: best of 5 and the
median, wall and processor time) and `llvm-readelf-19 -h -S`, which reads only headers too, on every ELF file of it, one after the
other in one process each as a script would. The promise (docs/performance.md): 5 GB in under 3 s on two cores.
"""
import os, pathlib, resource, statistics, subprocess, sys, time


def seconds(argv):
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace")
    wall, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode not in (0, 1):
        sys.exit(f"{argv[:3]}: exit {done.returncode}: {done.stderr[:500]}")
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, done.stdout


def main():
    program, folders = sys.argv[1], sys.argv[2:]
    if not folders:
        print("name a folder: a virtual environment, or ROCm's libraries (tools/rocm_libraries.sh)")
        return
    for folder in folders:
        size, libraries = 0, []
        for path in pathlib.Path(folder).rglob("*"):
            if path.is_file() and not path.is_symlink():
                size += path.stat().st_size
                with open(path, "rb") as file:
                    if file.read(4) == b"\x7fELF":
                        libraries.append(str(path))
        runs = [seconds([program, "code", folder]) for _ in range(5)]
        best, cpu = min(run[0] for run in runs), min(run[1] for run in runs)
        other = [seconds(["sh", "-c", 'for f in "$@"; do llvm-readelf-19 -h -S "$f" >/dev/null 2>&1; done', "sh", *libraries]) for _ in range(2)]
        theirs, their_cpu = min(run[0] for run in other), min(run[1] for run in other)
        print(f"{folder}: {size / 1e9:.1f} GB, {len(libraries)} ELF files; load average {os.getloadavg()[0]:.1f}\n"
              f"  firstfault code: best {best:.3f} s, median {statistics.median(run[0] for run in runs):.3f} s, processor {cpu:.3f} s\n"
              f"  llvm-readelf-19 -h -S on each: best {theirs:.3f} s, processor {their_cpu:.3f} s; ratio {theirs / best:.1f}, processor {their_cpu / cpu:.1f}")


main()
