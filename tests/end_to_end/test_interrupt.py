"""What is told to end ends: children with it, temporary directories gone, a run that says so, exit code 128 + signal."""
import json, os, pathlib, shutil, signal, subprocess, sys, tempfile, time, unittest

from harness import BINARY, document, run, validate

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

    def test_a_climb_leaves_a_run_that_says_so(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            with self.subTest(number.name):
                process, pids = self.workload("check", "--device", "cpu", "--rung", "step", "--workload", "command", "--json")
                code, out, err = self.end(process, number)
                self.assertEqual(code, 128 + number, err)
                self.assertIn(number.name, err)
                value = json.loads(out)
                validate(value)
                self.assertRegex(value["interrupted"], f"{number.name} while step\\.")
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
        self.assertEqual(value["interrupted"], "SIGTERM")
        self.assertEqual([(one["switch"], one["runs_made"]) for one in value["outcomes"]], [("unchanged", 0)])
        self.assert_clean(pids)

    def test_operators_that_were_tried_are_kept(self):
        process = self.start("ops", "run", "--native", "--device", "cpu", "--small", "--repeat", "1000", "--limit", "3600", "--json")
        self.wait_for(lambda: pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text(), process)
        code, out, err = self.end(process, signal.SIGTERM)
        self.assertEqual(code, 143, err)
        value = json.loads(out)
        validate(value)
        self.assertEqual(value["interrupted"], "SIGTERM")
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
        self.assertEqual(json.loads(out)["interrupted"], "SIGTERM", err)


if __name__ == "__main__":
    unittest.main()
