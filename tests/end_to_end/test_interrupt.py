"""What is told to end ends: children with it, temporary directories gone, a run that says so, exit code 128 + signal."""
import json, os, pathlib, shutil, signal, subprocess, sys, tempfile, time, unittest

from harness import BINARY, ROOT, run, validate

# Stands in for a training: says where it is, and would go on for an hour. The grandchild leaves its process group, as the workers of torchrun do.
LONG = """
import os, subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(3600)"], start_new_session=True)
open(sys.argv[1], "w").write(f"{os.getpid()} {child.pid}")
time.sleep(3600)
"""


def gone(pid):
    """Ended, or a zombie that nobody has collected yet."""
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return True


class Interrupt(unittest.TestCase):
    def setUp(self):
        self.work = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.work)
        self.temporary = self.work / "tmp"
        self.temporary.mkdir()
        self.runs = self.work / "runs"
        self.env = {**os.environ, "TMPDIR": str(self.temporary), "FIRSTFAULT_RUNS": str(self.runs)}

    def wait_for(self, condition, process):
        """No assumption on how fast the machine is: what is waited for comes, or the program has ended without it."""
        while not condition():
            if process.poll() is not None:
                self.fail(f"ended too early: {process.communicate()}")
            time.sleep(0.02)

    def start(self, *arguments):
        return subprocess.Popen([BINARY, *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True, env=self.env)

    def end(self, process, number):
        process.send_signal(number)
        out, err = process.communicate(timeout=120)
        return process.returncode, out, err

    def workload(self, *before):
        """A command that says its processes in a file and then stands still."""
        script, pids = self.work / "train.py", self.work / "pids"
        script.write_text(LONG)
        process = self.start(*before, "--", sys.executable, script, pids)
        self.wait_for(lambda: pids.exists() and pids.read_text(), process)
        return process, [int(pid) for pid in pids.read_text().split()]

    def assert_clean(self, pids=()):
        for pid in pids:
            for _ in range(500):
                if gone(pid):
                    break
                time.sleep(0.01)
            self.assertTrue(gone(pid), f"process {pid} goes on")
        self.assertEqual(os.listdir(self.temporary), [])

    def test_a_capture_is_whole_or_not_there(self):
        # Wherever the signal comes; which moments are tried is the machine's.
        for at in range(20):
            target = self.work / f"capture{at}"
            process = self.start("snapshot", "-o", target)
            time.sleep(0.02 + 0.005 * at)
            self.end(process, signal.SIGTERM)
            if target.exists():
                self.assertEqual(run("diff", target, target).returncode, 0, at)
        self.assertEqual([path.name for path in self.work.iterdir() if "capture" in path.name and not path.name[7:].isdigit()], [])

    def test_writers_leave_the_whole_or_nothing(self):
        """Every command that writes something under a name of the user's, told to end at many moments; which ones is the machine's."""
        shuffled = ROOT / "examples/dataset-shuffled"
        plugin = pathlib.Path(BINARY).with_name("firstfault-parquet.so").exists()
        out = self.work / "out"
        out.mkdir()
        fixed = self.work / "fixed"
        if plugin:
            self.assertEqual(run("data", "check", shuffled, "--fix", "-o", fixed, env=self.env).returncode, 0)
            twin = self.work / "twin"
            shutil.copytree(fixed, twin)
        whole = {
            "snapshot": (["snapshot", "-o"], "capture.tar.zst", lambda path: run("diff", path, path).returncode == 0),
            "reference": (["train", "reference", "--steps", "400", "--save-freq", "1", "--episodes", "2", "--out"], "run", lambda path: self.resumable(path)),
            "markdown": (["data", "show", shuffled, "--markdown"], "page.md", lambda path: path.read_text().endswith("\n")) if plugin else None,
            "fix": (["data", "check", shuffled, "--fix", "-o"], "fixed", lambda path: run("data", "check", path).returncode == 0) if plugin else None,
            "merge": (["data", "merge", fixed, twin, "-o"], "merged", lambda path: run("data", "check", path).returncode == 0) if plugin else None,
            "pack": (["ops", "pack", "--small", "--device", "cpu", "--steps", "snapshot,check", "-o"], "pack.tar.zst", lambda path: subprocess.run(["tar", "--zstd", "-tf", path], capture_output=True).returncode == 0),
        }
        for name, row in whole.items():
            if row is None:
                continue
            command, target, is_whole = row
            for at in range(8):
                with self.subTest(f"{name} {at}"):
                    path = out / target
                    process = self.start(*command, path)
                    time.sleep(0.02 + 0.04 * at)
                    self.end(process, (signal.SIGTERM, signal.SIGINT)[at % 2])
                    if path.exists():
                        self.assertTrue(is_whole(path), f"half of {path} is there")
                    self.assertEqual([p.name for p in out.rglob("*") if ".tmp-" in p.name], [])
                    self.assertEqual([p for p in os.listdir(out) if p != target], [])
                    self.assertEqual(os.listdir(self.temporary), [])
                    shutil.rmtree(path, ignore_errors=True) if path.is_dir() else path.unlink(missing_ok=True)

    def resumable(self, path):
        """A run that was told to end before its first checkpoint has none to speak of."""
        if not list(path.glob("checkpoints/0*")):
            return True
        return run("train", "resume", path).returncode == 0

    def test_every_document_of_an_interrupted_command_says_so_in_one_shape(self):
        for path in (pathlib.Path(__file__).resolve().parents[2] / "docs/schema").glob("*.json"):
            for key in json.loads(path.read_text()).get("properties", {}):
                if "interrupt" in key or "stopped" in key:
                    self.assertIn(key, ("interrupted_by", "interrupted_while"), path.name)

    def test_a_climb_leaves_a_run_that_says_so(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            with self.subTest(number.name):
                process, pids = self.workload("check", "--device", "cpu", "--rung", "step", "--workload", "command", "--json")
                code, out, err = self.end(process, number)
                self.assertEqual(code, 128 + number, err)
                self.assertIn(number.name, err)
                value = json.loads(out)
                validate(value)
                self.assertEqual(value["interrupted_by"], number.name)
                self.assertRegex(value["interrupted_while"], "^step\\.")
                directory = pathlib.Path(value["run"])
                manifest = json.loads((directory / "manifest.json").read_text())
                validate(manifest)
                self.assertEqual((manifest["status"], manifest["interrupted_by"], manifest["exit_code"]), ("interrupted", number.name, 128 + number))
                self.assertEqual(json.loads((directory / "report.json").read_text()), value)
                self.assertIn("Interrupted", (directory / "report.md").read_text())
                shown = run("show", directory, env=self.env)
                self.assertEqual(shown.returncode, 0)
                self.assertIn("Interrupted", shown.stdout)
                self.assertNotIn("No fault found", shown.stdout)
                self.assertIn(f"interrupted by {number.name}", run("runs", env=self.env).stdout)
                self.assert_clean(pids)
                (self.work / "pids").unlink()

    def test_a_repeated_command_is_ended_and_what_is_known_is_told(self):
        process, pids = self.workload("isolate", "--json")
        code, out, err = self.end(process, signal.SIGTERM)
        self.assertEqual(code, 143, err)
        value = json.loads(out)
        validate(value)
        self.assertEqual(value["interrupted_by"], "SIGTERM")
        self.assertEqual([(one["switch"], one["runs_made"]) for one in value["outcomes"]], [("unchanged", 0)])
        self.assert_clean(pids)

    def test_operators_that_were_tried_are_kept(self):
        process = self.start("ops", "run", "--native", "--device", "cpu", "--small", "--repeat", "1000", "--limit", "3600", "--json")
        self.wait_for(lambda: pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text(), process)
        code, out, err = self.end(process, signal.SIGTERM)
        self.assertEqual(code, 143, err)
        value = json.loads(out)
        validate(value)
        self.assertEqual(value["interrupted_by"], "SIGTERM")
        self.assertFalse([one for one in value["operators"] if one["status"] in ("crash", "hang")], "the operator that ran is not at fault")
        self.assertIn("Interrupted", run("show", "last", env=self.env).stdout)

    def test_a_probe_in_the_users_python_is_ended(self):
        probe = self.work / "python"
        probe.write_text(f'#!/bin/sh\necho $$ > {self.work}/pids\nexec sleep 3600\n')
        probe.chmod(0o755)
        model = self.work / "model"
        model.mkdir()
        header = b'{"w":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}'
        (model / "model.safetensors").write_bytes(len(header).to_bytes(8, "little") + header + b"\0\0\x80?")
        (model / "config.json").write_text('{"model_type": "x"}')
        process = self.start("model", "load", model, "--python", probe, "--json")
        self.wait_for(lambda: (self.work / "pids").exists() and (self.work / "pids").read_text().strip(), process)
        self.assertTrue(os.listdir(self.temporary), "the probe has a directory of its own")
        code, out, err = self.end(process, signal.SIGINT)
        self.assertEqual((code, json.loads(out)["exit_code"]), (130, 130), err)
        validate(json.loads(out))
        self.assert_clean([int((self.work / "pids").read_text())])

    def test_a_watched_command_gets_the_signal_and_is_judged(self):
        script = self.work / "train.py"
        script.write_text("import signal, sys, time\n"
                          "def stop(*_):\n    print('saving', flush=True)\n    sys.exit(0)\n"
                          "signal.signal(signal.SIGTERM, stop)\n"
                          "for step in range(1, 30):\n    print('{\"step\": %d, \"loss\": %f}' % (step, 1 / step), flush=True)\n"
                          f"open('{self.work}/ready', 'w').write('x')\n"
                          "while True:\n    time.sleep(0.05)\n")
        process = self.start("train", "watch", "--json", "--", sys.executable, script)
        self.wait_for((self.work / "ready").exists, process)
        code, out, err = self.end(process, signal.SIGTERM)
        value = json.loads(out)
        validate(value)
        self.assertIn("saving", err, "the command decides what it does with the signal")
        self.assertEqual((code, value["interrupted_by"], value["command_exit_status"]), (143, "SIGTERM", 0))
        self.assertNotEqual(value["status"], "skip", "what it had printed is judged")
        told = next(c for c in value["checks"] if c["id"] == "step.interruption")
        self.assertEqual((told["status"], told["causes"]), ("warn", ["training.killed"]))
        self.assertIn("was told to end by SIGTERM, which firstfault was sent and passed on", told["summary"])

    def test_a_watched_command_that_does_not_end_is_told_and_a_second_signal_kills_it(self):
        script = self.work / "train.py"
        script.write_text("import os, signal, time\nfor s in (signal.SIGTERM, signal.SIGINT):\n    signal.signal(s, signal.SIG_IGN)\n"
                          "for step in range(1, 30):\n    print('{\"step\": %d, \"loss\": %f}' % (step, 1 / step), flush=True)\n"
                          f"open('{self.work}/pids', 'w').write(str(os.getpid()))\n"
                          "time.sleep(3600)\n")
        process = self.start("train", "watch", "--json", "--", sys.executable, script)
        self.wait_for(lambda: (self.work / "pids").exists() and (self.work / "pids").read_text(), process)
        process.send_signal(signal.SIGTERM)
        said = ""
        while "another signal kills it" not in said:
            line = process.stderr.readline()
            self.assertTrue(line, said)
            said += line
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=120)
        value = json.loads(out)
        validate(value)
        self.assertEqual((process.returncode, value["interrupted_by"], value["command_signal"]), (137, "SIGTERM", 9), err)
        text = next(c for c in value["checks"] if c["id"] == "step.interruption")["summary"]
        self.assertIn("a second signal killed it", text)
        self.assertNotIn("nothing here says who sent it", text)
        self.assert_clean([int((self.work / "pids").read_text())])

    def test_a_watched_command_that_is_killed_by_it_takes_all_it_started_along(self):
        process, pids = self.workload("train", "watch")
        code, out, err = self.end(process, signal.SIGTERM)
        self.assertEqual(code, 143, err)
        self.assertIn("Interrupted by SIGTERM", out)
        self.assert_clean(pids)

    def test_what_a_daemon_holds_open_is_not_waited_for(self):
        process = self.start("train", "watch", "--", "sh", "-c", f"setsid sleep 3600 & echo $! > {self.work}/pids; echo '{{\"step\": 1, \"loss\": 1.0}}'")
        out, err = process.communicate(timeout=120)
        os.kill(int((self.work / "pids").read_text()), signal.SIGKILL)
        self.assertIn(process.returncode, (0, 1), err)
        self.assertIn("loss", out)

    def test_nohup_stays_in_force(self):
        pids = self.work / "pids"
        script = self.work / "train.py"
        script.write_text(LONG)
        process = subprocess.Popen(["nohup", BINARY, "isolate", "--json", "--", sys.executable, str(script), str(pids)], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   stdin=subprocess.DEVNULL, text=True, env=self.env)
        self.wait_for(lambda: pids.exists() and pids.read_text(), process)
        process.send_signal(signal.SIGHUP)
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=120)
        self.assertEqual(json.loads(out)["interrupted_by"], "SIGTERM", err)


if __name__ == "__main__":
    unittest.main()
