#!/usr/bin/env python3
"""`firstfault hang JOB` under a real Slurm: a controller and a node daemon of one machine, in a folder of their own.

    tests/long/hang_slurm.py FIRSTFAULT

Needs root, slurmctld, slurmd and munge (Debian: slurm-wlm); says so and ends well where they are missing. Everything it started is
ended; /etc/munge/munge.key is made when there is none, as Debian's package does.
"""
import json, os, pathlib, secrets, shutil, signal, socket, subprocess, sys, tempfile, time

FAILED = []


def check(binary, name, arguments, verdicts, code, text=""):
    done = subprocess.run([binary, "hang", *arguments, "--json"], capture_output=True, text=True, timeout=120)
    document = json.loads(done.stdout)
    said = document["verdict"]["id"] if "verdict" in document else document["what"]
    what = document["verdict"]["what"] if "verdict" in document else document["what"]
    right = done.returncode == code and (not verdicts or said in verdicts) and text in what
    print(f"{'right' if right else 'WRONG'}  {name}: exit code {done.returncode}, {said}: {what[:200]}", flush=True)
    if not right:
        FAILED.append(name)
        print(json.dumps(document.get("processes"), indent=1)[:3000])
    return document


def start(folder):
    """A Slurm of one node on 127.0.0.1; its daemons' process numbers."""
    host = socket.gethostname()
    for name in ("state", "spool", "log"):
        (folder / name).mkdir()
    configuration = folder / "slurm.conf"
    configuration.write_text(f"""ClusterName=ff
SlurmctldHost={host}(127.0.0.1)
FirstJobId=5000000
SlurmctldPort=26817
SlurmdPort=26818
AuthType=auth/munge
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
ReturnToService=2
SlurmUser=root
SlurmctldPidFile={folder}/ctld.pid
SlurmdPidFile={folder}/d.pid
SlurmdSpoolDir={folder}/spool
StateSaveLocation={folder}/state
SlurmctldLogFile={folder}/log/ctld
SlurmdLogFile={folder}/log/d
SchedulerType=sched/builtin
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
NodeName={host} NodeAddr=127.0.0.1 CPUs={os.cpu_count()} State=UNKNOWN
PartitionName=all Nodes={host} Default=YES State=UP
""")
    os.environ["SLURM_CONF"] = str(configuration)
    key = pathlib.Path("/etc/munge/munge.key")
    if not key.exists():
        key.write_bytes(secrets.token_bytes(64))
        shutil.chown(key, "munge", "munge")
        key.chmod(0o400)
    os.makedirs("/run/munge", exist_ok=True)
    shutil.chown("/run/munge", "munge", "munge")
    started = []
    if subprocess.run(["pgrep", "-x", "munged"], capture_output=True).returncode != 0:
        subprocess.run(["su", "-s", "/bin/sh", "munge", "-c", "/usr/sbin/munged"], check=True)
        started.append(int(subprocess.run(["pgrep", "-x", "munged"], capture_output=True, text=True).stdout.split()[0]))
    started.append(subprocess.Popen(["slurmctld", "-D", "-c"], stderr=subprocess.DEVNULL).pid)
    started.append(subprocess.Popen(["slurmd", "-D"], stderr=subprocess.DEVNULL).pid)
    for _ in range(60):
        if "idle" in subprocess.run(["sinfo", "-h", "-o", "%T"], capture_output=True, text=True).stdout:
            return started
        time.sleep(0.5)
    print((folder / "log/ctld").read_text()[-2000:], (folder / "log/d").read_text()[-2000:])
    raise SystemExit("the local Slurm did not start")


def submit(folder, name, task, tasks=2):
    """A job whose tasks run `task` in Python; waits until they run."""
    script = folder / f"{name}.py"
    script.write_text(task)
    batch = folder / f"{name}.sh"
    batch.write_text(f"#!/bin/sh\nsrun -n {tasks} --overlap {sys.executable} {script}\n")
    job = subprocess.run(["sbatch", "--parsable", "-n", str(tasks), "--overcommit", "-o", folder / f"{name}.out", batch], capture_output=True, text=True, check=True).stdout.strip()
    for _ in range(60):
        listed = subprocess.run(["scontrol", "listpids", job], capture_output=True, text=True).stdout
        if sum(line.split()[2:3] == ["0"] for line in listed.splitlines()) >= tasks:
            time.sleep(2)
            return job
        time.sleep(0.5)
    raise SystemExit(f"job {job} did not start")


def main():
    binary = sys.argv[1]
    if os.geteuid() != 0 or not all(shutil.which(name) for name in ("slurmctld", "slurmd", "munged", "sbatch")):
        print("skipped: needs root and Slurm (apt-get install slurm-wlm)")
        return
    with tempfile.TemporaryDirectory() as directory:
        folder = pathlib.Path(directory)
        started, jobs = start(folder), []
        try:
            stuck = submit(folder, "stuck", "import os, time\nif os.environ['SLURM_PROCID'] == '1': os.read(os.pipe()[0], 1)\ntime.sleep(600)\n")
            jobs.append(stuck)
            document = check(binary, "a job whose task 1 reads a pipe that nobody writes", [stuck], ["pipe"], 1, "rank 1")
            if {row["rank"] for row in document["processes"]} != {"0", "1"} or document["asked"] != f"job {stuck}":
                FAILED.append("ranks or job are not named")
                print("        ranks or job are not named:", document["asked"], [(row["rank"], row["program"], row["verdict"]) for row in document["processes"]])
            check(binary, "its step", [f"{stuck}.0"], ["pipe"], 1, "rank 1")
            subprocess.run(["scancel", stuck], check=True)
            well = submit(folder, "well", "import time\ntime.sleep(600)\n")
            jobs.append(well)
            check(binary, "a job that sleeps of its own will", ["--job", well], ["sleep"], 0)
            subprocess.run(["scancel", well], check=True)
            check(binary, "a job that is not there", ["--job", "987654"], [], 2)
            os.environ["SLURM_CONF"] = "/absent/slurm.conf"
            check(binary, "Slurm without its configuration", ["--job", well], [], 3)
            os.environ["SLURM_CONF"] = str(folder / "slurm.conf")
        finally:
            for job in jobs:
                subprocess.run(["scancel", "-s", "KILL", job], capture_output=True)
            time.sleep(2)
            for pid in reversed(started):
                try:
                    os.kill(pid, signal.SIGTERM)
                except ProcessLookupError:
                    pass
            time.sleep(2)
    print(f"{len(FAILED)} wrong")
    sys.exit(1 if FAILED else 0)


main()
