#!/usr/bin/env python3
"""How fast are the targets of a large library listed?

    bench/code_list.py build/bench/firstfault [--objdump llvm-objdump-19]

Makes two sparse libraries of 1 GiB in $TMPDIR: 500 HIP bundles of two targets in .hip_fatbin, and 500 offload binaries
in .llvm.offloading (the container that llvm-objdump --offloading of LLVM 19 reads; it knows no .hip_fatbin). Times
`firstfault code` on both, warm, best of 7 and the median, and llvm-objdump on the second. The promise
(docs/performance.md): under 100 ms, at least 20 times faster than llvm-objdump.
"""
import argparse, os, pathlib, statistics, struct, subprocess, sys, tempfile, time

COUNT, STRIDE = 500, 2 << 20
FIXTURES = pathlib.Path(__file__).resolve().parent.parent / "tests/elf/fixtures"


LLVM_OFFLOADING = 0x6FFF4C0B  # the section type by which LLVM finds offload binaries


def library(path, section, kind, pieces, stride, wrappers):
    names = b"\0" + section + b"\0.hipFatBinSegment\0.shstrtab\0"
    with open(path, "wb") as file:
        size = stride * COUNT
        for number in range(COUNT):
            at = 4096 + number * stride
            for offset, content in pieces:
                file.seek(at + offset)
                file.write(content)
        names_at = 4096 + size
        file.seek(names_at)
        file.write(names)
        table = names_at + (len(names) + 7) // 8 * 8
        file.seek(table)
        def row(name, kind, offset, length):
            return struct.pack("<IIQQQQIIQQ", name, kind, 0, 0, offset, length, 0, 0, 1, 0)
        second = 2 + len(section)
        file.write(row(0, 0, 0, 0) + row(1, kind, 4096, size) + row(second, 8, 4096, wrappers * 24) + row(second + 18, 3, names_at, len(names)))
        file.seek(0)
        file.write(struct.pack("<16sHHIQQQIHHHHHH", b"\x7fELF\2\1\1", 3, 62, 1, 0, 0, table, 0, 64, 0, 0, 64, 4, 3))


def times(argv, runs):
    seconds = []
    for _ in range(runs):
        start = time.perf_counter()
        done = subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        seconds.append(time.perf_counter() - start)
        if done.returncode not in (0, 1):
            sys.exit(f"{argv}: exit {done.returncode}: {done.stderr.decode()}")
    return done.stdout.decode(), min(seconds), statistics.median(seconds)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("firstfault")
    parser.add_argument("--objdump", default="llvm-objdump-19")
    arguments = parser.parse_args()
    code = (FIXTURES / "gfx1100.co").read_bytes()
    ids = [b"hipv4-amdgcn-amd-amdhsa--gfx1100", b"hipv4-amdgcn-amd-amdhsa--gfx1101"]
    half = STRIDE // 2
    header = b"__CLANG_OFFLOAD_BUNDLE__" + struct.pack("<Q", 2)
    for number, name in enumerate(ids):
        header += struct.pack("<QQQ", 4096 + number * half, half - 4096, len(name)) + name
    second = bytearray(code)
    second[48] = 0x46  # EF_AMDGPU_MACH of gfx1101
    strings = b"triple\0amdgcn-amd-amdhsa\0arch\0gfx1100\0"
    base = 32 + 40 + 32
    binary = struct.pack("<4sIQQQ", b"\x10\xff\x10\xad", 1, STRIDE, 32, 40)
    binary += struct.pack("<HHIQQQQ", 1, 3, 0, 72, 2, 4096, len(code))
    binary += struct.pack("<QQQQ", base, base + 7, base + 25, base + 30) + strings
    with tempfile.TemporaryDirectory() as directory:
        fat, offload = os.path.join(directory, "fat.so"), os.path.join(directory, "offload.so")
        library(fat, b".hip_fatbin", 1, [(0, header), (4096, code), (4096 + half, bytes(second))], STRIDE, COUNT)
        library(offload, b".llvm.offloading", LLVM_OFFLOADING, [(0, binary), (4096, code)], STRIDE, 0)
        out, best, median = times([arguments.firstfault, "code", fat], 7)
        if "500 bundles" not in out or "500 code objects" not in out:
            sys.exit("the listing is not what was made:\n" + out)
        print(f"firstfault code, 1 GiB, 500 bundles in .hip_fatbin: best {best * 1000:.1f} ms, median {median * 1000:.1f} ms")
        out, best, median = times([arguments.firstfault, "code", offload], 7)
        if "500 code objects" not in out:
            sys.exit("the listing is not what was made:\n" + out)
        print(f"firstfault code, 1 GiB, 500 offload binaries: best {best * 1000:.1f} ms, median {median * 1000:.1f} ms")
        out, other, other_median = times([arguments.objdump, "--offloading", offload], 3)
        if out.count("gfx1100") != COUNT:
            sys.exit(f"{arguments.objdump} lists {out.count('gfx1100')} images")
        print(f"{arguments.objdump} --offloading, the same file: best {other * 1000:.1f} ms, median {other_median * 1000:.1f} ms")
        print(f"ratio {other / best:.1f} (best), {other_median / median:.1f} (median)")


main()
