#!/usr/bin/env python3
"""`firstfault hang` on processes that hang in known ways, with py-spy where it is installed (a core file too) and PyTorch's gloo for ranks.

    tests/long/hang_seeded.py FIRSTFAULT --torch PYTHON [--torch PYTHON ...]

Each hang is made, judged, and checked to be untouched: same state, no tracer, and (where it waits in the kernel) not woken once,
by the kernel's own count of context switches. Run with py-spy in PATH, Python stacks are checked too. Root: a FUSE file system
whose server never answers gives a real uninterruptible sleep. Prints one line for each; exit code 1 when one was judged wrong.
"""
import argparse, ctypes, json, os, pathlib, re, shutil, signal, socket, subprocess, sys, tempfile, textwrap, time

FAILED = []


def state(pid):
    text = pathlib.Path(f"/proc/{pid}/status").read_text()
    return {name: re.search(rf"^{name}:\s*(\S+)", text, re.M).group(1) for name in ("State", "TracerPid", "voluntary_ctxt_switches")}


def settled(pid):
    """Its state once it has stopped moving: on a loaded machine a start takes long."""
    for _ in range(90):
        before = state(pid)
        time.sleep(0.7)
        if state(pid) == before and before["State"] != "R":
            return before
    raise SystemExit(f"process {pid} does not come to rest")


def descendants(pid):
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            except OSError:
                continue
            if parent == pid:
                found += [int(entry.name), *descendants(int(entry.name))]
    return found


def check(binary, name, pid, verdicts, text="", code=1, python="", quiet=(), arguments=()):
    """Judges `pid`; `quiet` are processes that must not have been woken."""
    before = {each: settled(each) for each in quiet}
    done = subprocess.run([binary, "hang", *arguments, *([] if arguments else [str(pid)]), "--json"], capture_output=True, text=True, timeout=120)
    try:
        document = json.loads(done.stdout)
    except ValueError:
        document = {"verdict": {"id": "no document", "what": done.stdout + done.stderr}, "processes": []}
    verdict = document["verdict"]
    wrong = []
    if verdict["id"] not in verdicts:
        wrong.append(f"verdict {verdict['id']}, not {' or '.join(verdicts)}")
    if text not in verdict["what"]:
        wrong.append(f"\"{text}\" is not in it")
    if done.returncode != code:
        wrong.append(f"exit code {done.returncode}, not {code}")
    for each in quiet:
        if (now := state(each)) != before[each]:
            wrong.append(f"process {each} was touched: {before[each]} then {now}")
    if python and shutil.which("py-spy"):
        stacks = document.get("python", "") + "".join(row["python"] for row in document["processes"])
        if python not in stacks:
            wrong.append(f"\"{python}\" is in no Python stack: {stacks[:500]!r} {document.get('unreadable')}")
    print(f"{'WRONG' if wrong else 'right'}  {name}: {verdict['id']}: {verdict['what'][:300]}", flush=True)
    for line in wrong:
        print("       ", line, flush=True)
    FAILED.extend(wrong)
    return document


def work(pid):
    """(runs now, processor time) of a process; nothing when it has ended."""
    try:
        fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return fields[0] == "R", int(fields[11]) + int(fields[12])


def at_rest(pids, seconds=2.0):
    """Waits until none of them runs or has run for so long: however loaded the machine is, a start is over then."""
    calm_since, before = time.monotonic(), None
    for _ in range(3000):
        now = [work(pid) for pid in pids()]
        if now != before or any(row is None or row[0] for row in now):
            calm_since, before = time.monotonic(), now
        elif time.monotonic() - calm_since > seconds:
            return
        time.sleep(0.1)
    raise SystemExit(f"processes {pids()} do not come to rest")


class Process:
    """Started in a session of its own, killed with all it started. Judged when `ready` returns: by default, when all of it rests."""

    def __init__(self, argv, ready=None, **more):
        self.child = subprocess.Popen([str(part) for part in argv], start_new_session=True, **more)
        if ready is None:
            at_rest(lambda: [self.child.pid, *descendants(self.child.pid)])
        else:
            ready(self.child.pid)

    def __enter__(self):
        return self.child

    def __exit__(self, *_):
        for pid in [*descendants(self.child.pid), self.child.pid]:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        self.child.wait()


def script(folder, name, text):
    path = folder / f"{name}.py"
    path.write_text(textwrap.dedent(text))
    return path


def simple(binary, folder):
    python = sys.executable
    lock = script(folder, "lock", """
        import threading
        def holds_it_for_ever(lock):
            lock.acquire()
        lock = threading.Lock(); lock.acquire(); holds_it_for_ever(lock)
        """)
    with Process([python, lock]) as child:
        check(binary, "lock", child.pid, ["lock"], python="holds_it_for_ever", quiet=[child.pid])
    pipe = script(folder, "pipe", """
        import subprocess, sys
        child = subprocess.Popen([sys.executable, "-c", "import sys\\nwhile True: sys.stdout.write('x' * 4096)"], stdout=subprocess.PIPE)
        child.wait()
        """)
    with Process([python, pipe]) as child:
        check(binary, "full pipe, asked of the parent that waits", child.pid, ["pipe"], "is full", quiet=[child.pid, *descendants(child.pid)])
    with Process([python, "-c", "while True: pass"], lambda pid: time.sleep(2)) as child:
        check(binary, "busy loop", child.pid, ["busy-loop"])
    with Process([python, "-c", "import time; time.sleep(1000)"]) as child:
        check(binary, "sleep", child.pid, ["sleep"], code=0, quiet=[child.pid])
    with Process([python, "-m", "http.server", "0", "--bind", "127.0.0.1"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as child:
        check(binary, "idle http.server", child.pid, ["waits-for-work"], "listens on 127.0.0.1:", code=0)
    server = script(folder, "server", """
        import asyncio
        async def serve(): await (await asyncio.start_server(lambda r, w: None, "127.0.0.1", 0)).serve_forever()
        asyncio.run(serve())
        """)
    with Process([python, server]) as child:
        check(binary, "idle asyncio server", child.pid, ["waits-for-work"], "epoll_wait", code=0, quiet=[child.pid])
    silent = socket.create_server(("127.0.0.1", 0))
    with Process([python, "-c", f"import socket; socket.create_connection(('127.0.0.1', {silent.getsockname()[1]})).recv(1)"]) as child:
        check(binary, "a peer that does not answer", child.pid, ["socket"], f"127.0.0.1:{silent.getsockname()[1]}", quiet=[child.pid])
    silent.close()
    with Process([python, "-c", "import os, signal; os.kill(os.getpid(), signal.SIGSTOP)"]) as child:
        check(binary, "stopped", child.pid, ["stopped"])


def uninterruptible(binary, folder):
    vfork = folder / "vfork.c"
    vfork.write_text("#include <unistd.h>\nint main(void) { if (vfork() == 0) { for (;;) pause(); } }\n")
    if shutil.which("gcc"):
        subprocess.run(["gcc", "-o", folder / "vfork", vfork], check=True)
        with Process([folder / "vfork"]) as child:
            check(binary, "state D: the parent of vfork", child.pid, ["uninterruptible"], quiet=[child.pid])
    if os.geteuid() != 0 or not os.access("/dev/fuse", os.R_OK | os.W_OK):
        print("skipped: a FUSE file system needs root and /dev/fuse")
        return
    mount = folder / "silent"
    mount.mkdir()
    libc = ctypes.CDLL(None, use_errno=True)
    device = os.open("/dev/fuse", os.O_RDWR)
    if libc.mount(b"silent", os.fsencode(mount), b"fuse.silent", 0, f"fd={device},rootmode=40000,user_id=0,group_id=0".encode()) != 0:
        print(f"skipped: no FUSE mount here: {os.strerror(ctypes.get_errno())}")
        os.close(device)
        return
    try:
        with Process([sys.executable, "-c", f"import os; os.listdir({str(mount)!r})"], stderr=subprocess.DEVNULL) as child:
            if state(child.pid)["State"] == "D":
                check(binary, "state D: a file system whose server does not answer", child.pid, ["uninterruptible"], quiet=[child.pid])
            else:
                check(binary, "a file system whose server does not answer (this kernel waits interruptibly)", child.pid, ["unknown"], code=3)
            os.close(device)  # ends every request with an error
    finally:
        libc.umount2(os.fsencode(mount), 2)


def ranks(binary, folder, torch):
    version = subprocess.run([torch, "-c", "import torch; print(torch.__version__)"], capture_output=True, text=True, check=True).stdout.strip()
    ranks_script = script(folder, "ranks", """
        import os, sys, time, datetime, torch, torch.distributed as dist
        def never_comes():
            if sys.argv[1] == "loop":
                while True: pass
            time.sleep(1000)
        dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=600))
        dist.all_reduce(torch.ones(4))
        open(f"{sys.argv[2]}.{dist.get_rank()}", "w").write(str(os.getpid()))
        if dist.get_rank() == 1 and sys.argv[1] != "all": never_comes()
        if sys.argv[1] == "p2p" and dist.get_rank() == 0: dist.recv(torch.ones(4), src=2)
        dist.all_reduce(torch.ones(4))
        """)
    launcher = script(folder, "launch", """
        import os, subprocess, sys
        children = [subprocess.Popen([sys.executable, *sys.argv[2:]], env={**os.environ, "RANK": str(r), "WORLD_SIZE": "3", "LOCAL_RANK": str(r), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": sys.argv[1]}) for r in range(3)]
        for child in children: child.wait()
        """)
    def port():
        with socket.create_server(("127.0.0.1", 0)) as free:
            return str(free.getsockname()[1])
    def group(how):
        """Arguments of a rank, and what waits until all ranks are beyond their first collective and ranks 0 and 2 rest in the second."""
        mark = folder / f"ready-{how}-{port()}"
        files = [pathlib.Path(f"{mark}.{rank}") for rank in range(3)]
        def ready(pid):
            for _ in range(6000):
                if all(file.exists() and file.read_text() for file in files):
                    return at_rest(lambda: [int(files[rank].read_text()) for rank in (0, 2)])
                time.sleep(0.1)
            raise SystemExit(f"the ranks below process {pid} do not start")
        return [ranks_script, how, mark], ready
    arguments, ready = group("sleep")
    with Process([torch, launcher, port(), *arguments], ready) as child:
        document = check(binary, f"missing rank (gloo, torch {version})", child.pid, ["waits-for-rank"], "rank 1, ", python="never_comes")
        if not re.search(r"ranks 0, 2 wait", document["verdict"]["what"]):
            FAILED.append("ranks 0 and 2 are not said to wait")
            print("        ranks 0 and 2 are not said to wait", [(row["rank"], row["verdict"], row["what"]) for row in document["processes"]])
        waiting = next((row["pid"] for row in document["processes"] if row["rank"] == "0"), child.pid)
        check(binary, f"the same, asked of rank 0 alone", waiting, ["waits-for-rank"])
    arguments, ready = group("loop")
    with Process([torch, launcher, port(), *arguments], ready) as child:
        check(binary, f"a rank in a loop (gloo, torch {version})", child.pid, ["waits-for-rank"], "rank 1, ")
    # Debian's torch 1.13 has a launcher that its Python 3.11 does not run.
    launches = subprocess.run([torch, "-m", "torch.distributed.run", "--nproc_per_node", "1", "--master_port", port(), script(folder, "nothing", "pass")],
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=300).returncode == 0
    if not launches:
        print(f"skipped: torchrun of torch {version} starts nothing on this Python")
        return
    arguments, ready = group("sleep")
    with Process([torch, "-m", "torch.distributed.run", "--nproc_per_node", "3", "--master_port", port(), *arguments], ready,
                 stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as child:
        check(binary, f"the same under torchrun (torch {version})", child.pid, ["waits-for-rank"], "rank 1, ")


def python_core(binary, folder):
    """The Python frames of a core file, which py-spy reads."""
    crash = script(folder, "crash", """
        import ctypes
        def innermost(): ctypes.string_at(8)
        innermost()
        """)
    subprocess.run(["sh", "-c", f"ulimit -c unlimited; exec {sys.executable} {crash}"], cwd=folder, capture_output=True)
    cores = list(folder.glob("core*"))
    if not cores or not shutil.which("py-spy"):
        print("skipped: no core file in the working directory, or no py-spy")
        return
    document = json.loads(subprocess.run([binary, "core", cores[0], "--json"], capture_output=True, text=True).stdout)
    right = "innermost" in document["python"] and document["signal"]["name"] == "SIGSEGV"
    print(f"{'right' if right else 'WRONG'}  the Python frames of a core file: {document['verdict']['what']}", flush=True)
    if not right:
        FAILED.append("core file")
        print(document["python"])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("firstfault")
    parser.add_argument("--torch", action="append", default=[])
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        folder = pathlib.Path(directory)
        simple(arguments.firstfault, folder)
        uninterruptible(arguments.firstfault, folder)
        python_core(arguments.firstfault, folder)
        for torch in arguments.torch:
            ranks(arguments.firstfault, folder, torch)
    print("py-spy " + ("was asked" if shutil.which("py-spy") else "is not installed: Python stacks were not checked"))
    print(f"{len(FAILED)} wrong")
    sys.exit(1 if FAILED else 0)


main()
