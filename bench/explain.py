#!/usr/bin/env python3
"""firstfault explain against a Python `re` loop over the same patterns, on the same generated kernel logs, in one run.

usage: bench/explain.py FIRSTFAULT [MEGABYTES]

Prints one line a measurement: MB/s of processor time of one core for a log of which one line in ten is amdgpu's, for one that is
all amdgpu's, for one of recorded lines, and for the first 5 and 20 MB of the first; the ratio to the Python loop, the time for a log of 100 kB,
and the memory for the largest log. The lines are the examples of the knowledge itself and ordinary lines of a kernel that boots; the recorded
ones are those of the kernel logs under tests/incidents, with other numbers and other identifiers in hexadecimal.
"""
import glob, os, random, re, resource, subprocess, sys, tempfile, time

import yaml

HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
ORDINARY = [
    "usb 1-{a}: new high-speed USB device number {b} using xhci_hcd",
    "audit: type=1400 audit(17645{b}.{a}:{b}): apparmor=\"STATUS\" operation=\"profile_load\" profile=\"unconfined\" name=\"lsb_release\" pid={b}",
    "EXT4-fs (nvme0n1p{a}): mounted filesystem 7a1c{b}-4e1d r/w with ordered data mode. Quota mode: none.",
    "IPv6: ADDRCONF(NETDEV_CHANGE): enp{a}s0: link becomes ready",
    "systemd[1]: Started session-{b}.scope - Session {b} of User root.",
    "pci 0000:00:{a}.0: PME# supported from D0 D3hot D3cold",
    "docker0: port {a}(veth{b}) entered forwarding state",
    "input: Logitech USB Keyboard as /devices/pci0000:00/0000:00:14.0/usb1/1-{a}/input/input{b}",
    "e1000e 0000:00:1f.6 eno1: NIC Link is Up 1000 Mbps Full Duplex, Flow Control: Rx/Tx",
]


def knowledge():
    patterns, amdgpu = [], []
    for path in sorted(glob.glob(os.path.join(HERE, "knowledge/signals/*.yaml"))):
        for signal in yaml.safe_load(open(path, encoding="utf-8"))["signals"]:
            match = signal["match"] if isinstance(signal["match"], list) else [signal["match"]]
            for pattern in match:
                try:
                    patterns.append(re.compile(pattern))
                except re.error:
                    pass
            examples = signal["examples"] if isinstance(signal["examples"], list) else [signal["examples"]]
            amdgpu += [line for e in examples for line in e.splitlines() if "amdgpu" in line or "kfd" in line]
    return patterns, amdgpu


def varied(r, text):
    """Other addresses, sequence numbers, processes: what differs between two lines of the same kind."""
    text = re.sub(r"0x[0-9a-f]{5,16}", lambda m: "0x" + "".join(r.choice("0123456789abcdef") for _ in m[0][2:]), text)
    return re.sub(r"(?<=[ =:])\d{3,7}(?=[ ,)\n]|$)", lambda m: str(r.randrange(10 ** (len(m[0]) - 1), 10 ** len(m[0]))), text)


def write(path, share, size, amdgpu):
    r = random.Random(7)
    seconds, written = 0.0, 0
    with open(path, "w", encoding="utf-8") as f:
        while written < size:
            seconds += r.random() / 50
            text = r.choice(amdgpu) if r.random() < share else r.choice(ORDINARY).format(a=r.randrange(1, 9), b=r.randrange(100, 9999))
            text = varied(r, text)
            if not text.startswith("["):
                text = f"[{seconds:12.6f}] {text}"
            written += f.write(text + "\n")


def write_recorded(path, size):
    r = random.Random(3)
    logs = []
    for name in sorted(glob.glob(os.path.join(HERE, "tests/incidents/*/*.txt"))):
        if os.path.basename(name).startswith(("dmesg", "journal", "kern")):
            logs.append([line for line in open(name, encoding="utf-8", errors="replace").read().splitlines() if line] or ["-"])
    number = re.compile(r"0x[0-9a-fA-F]+|\b(?=[0-9a-f]*[0-9])[0-9a-f]{5,}\b|\d+")

    def other(m):
        if m[0].startswith("0x"):
            return "0x" + "".join(r.choice("0123456789abcdef") for _ in m[0][2:])
        if m[0].isdigit():
            return "".join(r.choice("0123456789") for _ in m[0]) if len(m[0]) > 2 and r.random() < 0.7 else m[0]
        return "".join(r.choice("0123456789abcdef") for _ in m[0])

    written = 0
    with open(path, "w", encoding="utf-8") as f:
        while written < size:
            log = r.choice(logs)
            at = r.randrange(len(log))
            for text in [r.choice(ORDINARY).format(a=r.randrange(1, 9), b=r.randrange(100, 9999))] + log[at : at + r.randrange(1, 12)]:
                written += f.write(number.sub(other, text) + "\n")


def cpu(command):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.monotonic()
    subprocess.run(command, stdout=subprocess.DEVNULL, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, time.monotonic() - start, after.ru_maxrss


def python_loop(path, patterns, limit):
    lines = []
    size = 0
    for line in open(path, encoding="utf-8"):
        lines.append(line)
        size += len(line)
        if size > limit:
            break
    start = time.process_time()
    hits = sum(1 for line in lines for p in patterns if p.search(line))
    return size / 1e6 / (time.process_time() - start), hits


def main():
    program = sys.argv[1]
    size = int(float(sys.argv[2]) * 1e6) if len(sys.argv) > 2 else 200_000_000
    patterns, amdgpu = knowledge()
    print(f"{len(patterns)} patterns")
    with tempfile.TemporaryDirectory() as folder:
        small = os.path.join(folder, "small.log")
        write(small, 0.1, 100_000, amdgpu)
        best = min(cpu([program, "explain", "--json", small])[0] for _ in range(5))
        print(f"100 kB log: {best * 1000:.0f} ms of processor time")
        for name, share in (("mixed", 0.1), ("amdgpu", 1.0), ("recorded", None)):
            path = os.path.join(folder, name + ".log")
            write_recorded(path, size) if share is None else write(path, share, size, amdgpu)
            seconds, _, rss = min(cpu([program, "explain", "--json", path]) for _ in range(3))
            ours = size / 1e6 / max(seconds - best, 1e-3)
            theirs, _ = python_loop(path, patterns, 100_000)
            print(f"{name}: {ours:.0f} MB/s, Python re {theirs:.3f} MB/s, ratio {ours / theirs:.0f}, largest memory {rss / 1024:.0f} MB")
            for part in (5, 20) if name == "mixed" else ():
                head = os.path.join(folder, f"head{part}.log")
                with open(path, "rb") as whole, open(head, "wb") as f:
                    f.write(whole.read(part * 1_000_000))
                seconds, _, _ = min(cpu([program, "explain", "--json", head]) for _ in range(3))
                print(f"mixed, {part} MB: {part / max(seconds - best, 1e-3):.0f} MB/s")


if __name__ == "__main__":
    main()
