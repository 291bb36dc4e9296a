"""firstfault check, show, runs and --again as a user meets them."""
import json, os, pathlib, shutil, signal, subprocess, sys, tarfile, tempfile, time, unittest

from harness import BINARY, ROOT, document, run, validate

HEALTHY = ROOT / "examples/rx7900xtx-healthy.tar.zst"
BROKEN = ROOT / "examples/mi300x-render-group.tar.zst"


class Check(unittest.TestCase):
    def setUp(self):
        self.runs = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.runs)

    def check(self, *arguments, **keywords):
        return run("check", "--runs", self.runs, *arguments, **keywords)

    @unittest.skipIf(os.environ.get("FIRSTFAULT_SANITIZED"), "rung 2 runs kernels on fibers: a hundred times slower so, and past its time limits")
    def test_the_built_in_workload_climbs_every_rung_but_the_device(self):
        process = self.check("--workload", "reference", "--device", "cpu", "--json", timeout=300)
        value = document(process)
        self.assertEqual(process.returncode, 0, value["first_fault"])
        status = {r["rung"]: r["status"] for r in value["rungs"]}
        self.assertEqual(status.pop("device"), "skip", "the CPU was asked for: nothing is claimed about a device")
        self.assertLessEqual(set(status.values()), {"pass", "warn"}, status)
        checks = {c["id"]: c for r in value["rungs"] for c in r["checks"]}
        for identity in ("dataset.statistics", "dataset.global-index", "model.normalization", "model.architecture", "model.features", "resume.continues", "evaluation.better-than-untrained"):
            self.assertEqual(checks[identity]["status"], "pass", checks[identity])
        success = checks["evaluation.held-out"]["measured"]["held_out"]
        self.assertGreater(int(success.split()[0]), 36, success)
        # What was climbed stays with the run.
        artifacts = pathlib.Path(value["run"]) / "artifacts"
        self.assertTrue((artifacts / "dataset/meta/info.json").exists())
        self.assertTrue((artifacts / "policy/model.safetensors").exists())

    def test_a_rung_is_named_by_word_or_number(self):
        for rung in ("4", "model"):
            value = document(self.check("--workload", "reference", "--rung", rung, "--json"))
            self.assertEqual([r["rung"] for r in value["rungs"] if r["checks"]], ["model"])
        refused = self.check("--rung", "9")
        self.assertEqual(refused.returncode, 2)
        self.assertIn("1 to 8", refused.stderr)

    def test_a_recorded_healthy_machine_holds_rung_1(self):
        process = self.check("--from", HEALTHY, "--json")
        self.assertEqual(process.returncode, 0, process.stdout + process.stderr)
        value = document(process)
        self.assertIsNone(value["first_fault"])
        self.assertIn(value["rungs"][0]["status"], ("pass", "warn"))
        self.assertTrue(any(c["status"] == "pass" for c in value["rungs"][0]["checks"]))

    def test_a_recorded_broken_machine_names_its_fault_fix_and_proof(self):
        process = self.check("--from", BROKEN, "--json")
        self.assertEqual(process.returncode, 1, process.stderr)
        value = document(process)
        fault = next(c for r in value["rungs"] for c in r["checks"] if c["id"] == value["first_fault"])
        self.assertTrue(fault["causes"] and fault["fix"] and fault["verify"] and fault["evidence"])
        self.assertEqual({r["status"] for r in value["rungs"][1:]} - {"not-reached", "skip"}, set(), "nothing is tried above a broken rung")
        # The run directory is what another person reads.
        directory = pathlib.Path(value["run"])
        manifest = json.loads((directory / "manifest.json").read_text())
        validate(manifest)
        self.assertEqual(manifest["status"], "complete")
        self.assertEqual(manifest["first_fault"], value["first_fault"])
        events = [json.loads(line) for line in (directory / "events.jsonl").read_text().splitlines()]
        self.assertEqual(sum(e["event"] == "check" for e in events), sum(len(r["checks"]) for r in value["rungs"]))
        self.assertIn(value["first_fault"], (directory / "report.md").read_text())
        self.assertEqual(json.loads((directory / "report.json").read_text()), value)

    def test_show_prints_the_same_result_again(self):
        first = self.check("--from", BROKEN)
        self.assertEqual(first.returncode, 1)
        again = run("show", "last", "--runs", self.runs)
        self.assertEqual(again.returncode, 0)
        self.assertEqual(again.stdout, first.stdout)
        listing = run("runs", "--runs", self.runs)
        self.assertIn("-check", listing.stdout)

    def test_the_stored_capture_gives_the_same_answer(self):
        first = document(self.check("--from", BROKEN, "--json"))
        second = document(self.check("--from", pathlib.Path(first["run"]) / "capture", "--json"))
        statuses = lambda v: [(c["id"], c["status"]) for r in v["rungs"] for c in r["checks"]]
        self.assertEqual(statuses(first), statuses(second))

    def test_again_says_fixed_and_not_fixed_in_both_runs(self):
        first = document(self.check("--from", BROKEN, "--json"))
        same = self.check("--again", first["run"], "--from", BROKEN, "--json")
        self.assertEqual(same.returncode, 1, same.stderr)
        fixed = self.check("--again", first["run"], "--from", self.with_the_group(), "--json")
        outcomes = [json.loads(line)["outcome"] for line in (pathlib.Path(first["run"]) / "events.jsonl").read_text().splitlines()
                    if json.loads(line)["event"] == "again"]
        self.assertEqual(outcomes, ["not fixed", "fixed"])
        self.assertEqual(fixed.returncode, 0, fixed.stderr)
        self.assertIn("changed", json.loads(fixed.stdout), "what changed between the two captures is stated")

    def test_again_runs_no_command_that_only_the_report_knows(self):
        """A run's directory may be anybody's: what its report calls a proof is run only when this program would give it too."""
        first = document(self.check("--rung", "device", "--json"))
        if not first["first_fault"]:
            self.skipTest("nothing is wrong with rung 1 of this machine")
        directory = pathlib.Path(first["run"])
        report = directory / "report.json"
        value = json.loads(report.read_text())
        fault = next(c for r in value["rungs"] for c in r["checks"] if c["id"] == value["first_fault"])
        known = fault["verify"][0]
        planted = [f"touch {self.runs}/planted", f"cat /etc/passwd > {self.runs}/planted", f"{known}; touch {self.runs}/planted", "id", f"firstfault ops run --native --name x;touch {self.runs}/planted"]
        fault["verify"] = [*planted, known]
        report.write_text(json.dumps(value))
        again = self.check("--again", directory, "--yes", "--json")
        self.assertEqual(again.returncode, 1, again.stderr)
        self.assertFalse((pathlib.Path(self.runs) / "planted").exists())
        event = [json.loads(line) for line in (directory / "events.jsonl").read_text().splitlines() if json.loads(line)["event"] == "again"][0]
        outcomes = {proof["command"]: proof["outcome"] for proof in event["proofs"]}
        for command in planted:
            self.assertIn("not run: the report names it", outcomes[command])
        self.assertNotIn("the report names it", outcomes[known])

    def test_again_starts_nothing_that_a_foreign_record_names_unless_it_is_told_to(self):
        with tempfile.TemporaryDirectory() as foreign:
            marker = pathlib.Path(foreign) / "started"
            python = pathlib.Path(foreign) / "python"
            python.write_text(f"#!/bin/sh\ntouch {marker}\n")
            python.chmod(0o755)
            made = document(self.check("--device", "cpu", "--rung", "step", "--workload", "command", "--json", "--", "false"))
            directory = pathlib.Path(foreign) / "run"
            shutil.move(made["run"], directory)
            manifest = json.loads((directory / "manifest.json").read_text())
            manifest["inputs"].update(workload_command=["touch", str(marker)], python=str(python))
            (directory / "manifest.json").write_text(json.dumps(manifest))
            refused = self.check("--again", directory)
            self.assertEqual(refused.returncode, 2, refused.stdout)
            self.assertIn(f"touch {marker}", refused.stderr)
            self.assertIn("--yes", refused.stderr)
            self.assertFalse(marker.exists())

    def test_logs_without_a_machine_point_to_explain(self):
        folder = pathlib.Path(self.runs) / "handed"
        folder.mkdir(parents=True)
        (folder / "dmesg.txt").write_text("[    1.0] Linux version 6.8.0-63-generic\n[    2.0] amdgpu 0000:03:00.0: amdgpu: Fetched VBIOS from VFCT\n")
        (folder / "err.txt").write_text("Traceback (most recent call last):\ntorch.OutOfMemoryError: HIP out of memory. Tried to allocate 2.00 GiB\n")
        process = self.check("--from", folder / "dmesg.txt", "--from", folder / "err.txt")
        self.assertIn(f"firstfault explain {folder}/dmesg.txt {folder}/err.txt", " ".join(process.stdout.split()))

    def test_a_rung_does_not_hold_on_evidence_that_shows_no_gpu(self):
        folder = pathlib.Path(self.runs) / "handed"
        folder.mkdir(parents=True)
        given = {
            "fault.txt": "[   12.000000] amdgpu 0000:03:00.0: amdgpu: [gfxhub] page fault (src_id:0 ring:24 vmid:8 pasid:32770)\n",
            "clean.txt": "[    0.000000] Linux version 6.8.0-31-generic (buildd@lcy02)\n[    1.000000] ACPI: bus type PCI registered\n",
            "pip.txt": "Package    Version\n---------- -------\ntorch      2.6.0+rocm6.2.4\nnumpy      1.26.0\n",
        }
        for name, text in given.items():
            (folder / name).write_text(text)
        for names in [*([name] for name in given), list(given)]:
            with self.subTest(names):
                arguments = [word for name in names for word in ("--from", folder / name)]
                process = self.check(*arguments)
                said = " ".join(process.stdout.split())
                self.assertEqual(process.returncode, 3, process.stdout + process.stderr)
                self.assertNotIn("holds", said.split("note ")[0].replace("a rung holds", ""))
                self.assertIn("Nothing was judged", said)
                self.assertIn("firstfault snapshot", said)
                report = document(self.check(*arguments, "--json"))
                self.assertEqual(report["rungs"][0]["status"], "skip")
                self.assertIn("not judged: nothing that was given shows a GPU", report["rungs"][0]["reason"])
                self.assertFalse((pathlib.Path(report["run"]) / "restore").exists(), "what was not judged is no point to return to")
                self.assertIn("Nothing was judged", (pathlib.Path(report["run"]) / "report.md").read_text())

    def test_the_cause_of_the_first_fault_is_said_once(self):
        process = self.check("--from", BROKEN)
        self.assertEqual(process.returncode, 1)
        self.assertEqual(process.stdout.count("container.group-not-mapped"), 1, process.stdout)
        self.assertIn("permission.not-in-render-group", process.stdout.split("What the logs say")[1], "others are named")

    @unittest.skipIf(os.environ.get("FIRSTFAULT_SANITIZED"), "the sanitizer itself needs more address space")
    def test_an_archive_with_a_file_of_five_gigabytes_is_refused_in_bounded_memory(self):
        folder = pathlib.Path(self.runs) / "handed"
        folder.mkdir(parents=True)
        pack = lambda data: subprocess.run(["zstd", "-1", "-q", "-c"], input=data, capture_output=True, check=True).stdout
        size = 5 << 30
        for name in ("fs/proc/cmdline", "fs/sys/class/drm/card0/device/vendor", "dmesg.txt"):
            with self.subTest(name):
                member = tarfile.TarInfo(name)
                member.size = size
                block = 128 << 20
                # Frames stand one after the other: what was packed once is repeated.
                archive = folder / "big.tar.zst"
                archive.write_bytes(pack(member.tobuf(tarfile.GNU_FORMAT)) + pack(bytes(block)) * (size // block) + pack(bytes(1024)))
                self.assertLess(archive.stat().st_size, 1 << 20)
                limit = 1 << 30  # bytes of address space: not enough to hold it
                process = subprocess.run(["prlimit", f"--as={limit}", BINARY, "check", "--from", archive, "--runs", self.runs],
                                         capture_output=True, text=True, timeout=120)
                self.assertEqual(process.returncode, 3, process.stdout + process.stderr)
                self.assertIn("big.tar.zst", process.stderr)
                self.assertIn("archive refused", process.stderr)

    def test_the_command_may_stand_behind_an_option_of_several_values(self):
        for before in (["--only", "step.runs"], ["--only=step.runs"], ["--only", "step.runs", "step.metrics"], ["--rung", "step"],
                       ["--rung", "step", "--config", "/etc/hostname"]):
            with self.subTest(before):
                process = self.check("--json", "--device", "cpu", "--workload", "command", *before, "--", "sh", "-c", "echo said; exit 3", "--only")
                self.assertNotEqual(process.returncode, 2, process.stderr)
                inputs = json.loads((pathlib.Path(document(process)["run"]) / "manifest.json").read_text())["inputs"]
                self.assertEqual(inputs["workload_command"], ["sh", "-c", "echo said; exit 3", "--only"])

    def test_another_machine_is_no_change_since_the_parent(self):
        first = document(self.check("--from", BROKEN, "--json"))
        other = document(self.check("--from", HEALTHY, "--parent", first["run"], "--json"))
        notes = " ".join(other["notes"])
        self.assertIn("judged another machine", notes)
        self.assertNotIn("changed", notes.replace("no change", ""))
        self.assertNotIn("changed", other)

    def with_the_group(self):
        """The broken machine after its fix: the same capture, this user in the group of the device nodes."""
        folder = pathlib.Path(self.runs) / "fixed"
        folder.mkdir(parents=True)
        subprocess.run(["tar", "--zstd", "-xf", BROKEN, "-C", folder], check=True)
        manifest = json.loads((folder / "manifest.json").read_text())
        for path in [path for path in manifest["errors"] if path.startswith("/dev/")]:
            del manifest["errors"][path]
        for node in manifest["probes"]["access"].values():
            node["errno"] = 0
        manifest["probes"]["user"]["groups"].append({"gid": 992, "name": ""})
        (folder / "manifest.json").write_text(json.dumps(manifest))
        return folder

    def test_again_does_not_judge_another_machine(self):
        first = document(self.check("--from", BROKEN, "--json"))
        other = self.check("--again", first["run"], "--from", HEALTHY)
        self.assertEqual(other.returncode, 2, other.stdout)
        self.assertIn("another machine", other.stderr)
        events = [json.loads(line)["event"] for line in (pathlib.Path(first["run"]) / "events.jsonl").read_text().splitlines()]
        self.assertNotIn("again", events, "nothing is said about the fault")

    def test_options_that_make_no_sense_together_are_refused(self):
        run_of_before = document(self.check("--from", BROKEN, "--json"))["run"]
        for arguments, word in ((["--from", BROKEN, "--device", "cpu"], "--device"), (["--from", BROKEN, "--device", "cuda"], "--device"),
                                (["--from", BROKEN, "--workload", "reference"], "--workload"), (["--from", BROKEN, "--wake"], "--wake"),
                                (["--from", BROKEN, "--work-root", "."], "--work-root"), (["--yes"], "--again"), (["--list", "--all"], "--list"),
                                (["--list", "--from", BROKEN], "--list"), (["--workload", "command"], "-- python"), (["--workload", "lerobot"], "--python"), (["--python", "ls"], "is no Python"), (["--python", "/etc/hostname"], "--python takes"),
                                (["--workload", "command", "--rung", "1"], "-- python"), (["--rung", "2", "--only", "device.kfd-present"], "rung device"),
                                (["--again", run_of_before, "--rung", "1", "--from", BROKEN], "--again"), (["--again", run_of_before, "--parent", run_of_before], "--parent"),
                                (["--dataset", ""], "empty"), (["--from", ""], "empty"), (["--runs", ""], "empty")):
            process = run("check", *arguments, env={"FIRSTFAULT_RUNS": self.runs})
            self.assertEqual(process.returncode, 2, (arguments, process.stdout))
            self.assertIn(word, process.stderr, arguments)
        self.assertEqual(len(os.listdir(self.runs)), 1, "wrong usage leaves no run")

    def test_a_python_is_named_by_path_or_name(self):
        tools = pathlib.Path(self.runs) / "tools"
        tools.mkdir(parents=True)
        (tools / "python-of-mine").symlink_to(os.path.realpath(sys.executable))
        env = {"PATH": f"{tools}:{os.environ['PATH']}"}
        value = document(self.check("--rung", "device", "--python", "python-of-mine", "--json", env=env))
        manifest = json.loads((pathlib.Path(value["run"]) / "manifest.json").read_text())
        self.assertEqual(manifest["inputs"]["python"], str(tools / "python-of-mine"))
        refused = self.check("--python", "no-such-python", "--json", env=env)
        self.assertEqual((refused.returncode, document(refused)["where"]), (2, "no-such-python"))
        with tempfile.TemporaryDirectory() as here:
            taken = run("snapshot", "--python", "python-of-mine", "-o", "x", "--json", cwd=here, env=env)
            self.assertEqual(taken.returncode, 0, taken.stderr)
            self.assertEqual(run("snapshot", "--python", "no-such-python", "-o", "y", cwd=here).returncode, 2)
        self.assertEqual(run("libs", "python-of-mine", "--no-torch", env=env).returncode, 0)

    def test_a_name_with_control_characters_can_be_copied(self):
        dataset = pathlib.Path(self.runs) / "a\nb"
        dataset.mkdir(parents=True)
        process = self.check("--rung", "dataset", "--dataset", dataset)
        self.assertIn("$'", process.stdout)
        self.assertIn("a\\nb'", process.stdout)

    def test_a_configuration_file_is_read_once(self):
        config = pathlib.Path(self.runs) / "train.yaml"
        config.parent.mkdir(parents=True, exist_ok=True)
        config.write_text("lr: 1e-4\n")
        value = document(self.check("--from", HEALTHY, "--config", config, "--json"))
        self.assertEqual((pathlib.Path(value["run"]) / "restore/config/train.yaml").read_text(), "lr: 1e-4\n")

    def test_show_prints_runs_that_are_no_climb(self):
        env = {"FIRSTFAULT_RUNS": self.runs}
        made = run("ops", "run", "--native", "--device", "cpu", "--small", "--name", "memory.fill", "--repeat", "1", env=env)
        self.assertEqual(made.returncode, 0, made.stderr)
        self.assertEqual(run("show", "last", env=env).stdout, made.stdout)
        made = run("stress", "launch", "--for", "1s", "--device", "cpu", env=env)
        self.assertEqual(run("show", env=env).stdout, made.stdout)
        document(run("show", "--json", env=env))
        self.check("--from", HEALTHY)
        made = run("ops", "run", "--native", "--device", "cpu", "--small", "--name", "memory.fill", "--repeat", "1", env=env)
        self.assertEqual(self.check("--from", HEALTHY, "--parent", "last").returncode, 0, "last is the last run with a capture")
        compared = run("ops", "compare", "last", "last", env=env)
        self.assertEqual(compared.returncode, 0, "last is the last run of operators: " + compared.stderr)
        self.assertEqual(run("ops", "fallback", "last", env=env).returncode, 2, "of native operators there is nothing to reroute")

    def test_what_says_nothing_about_a_machine_is_refused(self):
        folder = pathlib.Path(self.runs) / "handed"
        folder.mkdir(parents=True)
        for name, content in (("x.tar.zst", b""), ("y.tar.zst", os.urandom(2000)), ("notes.txt", b"hello\n"), ("z.bin", os.urandom(500))):
            (folder / name).write_bytes(content)
            process = self.check("--from", folder / name)
            self.assertEqual(process.returncode, 3, (name, process.stdout, process.stderr))
            self.assertIn(name, process.stderr)
        (folder / "kernel.log").write_text("[   12.1] amdgpu 0000:03:00.0: amdgpu: GPU reset(2) failed\n")
        self.assertIn("driver.reset-loop", self.check("--from", folder / "kernel.log").stderr + self.check("--from", folder / "kernel.log").stdout)

    def test_a_forgotten_from_is_not_swallowed(self):
        for words in ([BROKEN], ["foo", "bar"], ["--workload", "reference", BROKEN]):
            process = self.check(*words)
            self.assertEqual(process.returncode, 2, process.stdout + process.stderr)
        self.assertIn("--from", self.check(BROKEN).stderr)

    def test_parent_compares_command_line_and_configuration_files(self):
        config = pathlib.Path(self.runs) / "train.yaml"
        config.parent.mkdir(parents=True, exist_ok=True)
        config.write_text("lr: 1e-4\nhf_token: hf_abcdefghijklmnopqrstuvwxyz012345\n")
        first = document(self.check("--from", BROKEN, "--config", config, "--json"))
        config.write_text("lr: 1e-3\nhf_token: hf_abcdefghijklmnopqrstuvwxyz012345\n")
        second = document(self.check("--from", BROKEN, "--config", config, "--device", "hip", "--parent", first["run"], "--json"))
        changes = {c["name"]: c for c in second["changed"]["changes"]}
        self.assertEqual(changes["--device"], {"group": "command-line", "what": "option of check", "name": "--device", "before": None, "after": "hip"})
        self.assertEqual((changes[str(config)]["removed_lines"], changes[str(config)]["added_lines"]), (["lr: 1e-4"], ["lr: 1e-3"]))
        self.assertTrue(any("2 layers changed at once" in n for n in second["notes"]), second["notes"])
        self.assertNotIn("hf_abc", (pathlib.Path(first["run"]) / "capture/manifest.json").read_text())

    def test_parent_states_what_changed(self):
        first = document(self.check("--from", BROKEN, "--json"))
        second = document(self.check("--from", self.with_the_group(), "--parent", first["run"], "--json"))
        self.assertTrue(second["changed"]["changes"])
        self.assertTrue(any("changed since the run before (access)" in n for n in second["notes"]), second["notes"])
        self.assertFalse(any("layers changed at once" in n for n in second["notes"]), second["notes"])

    def test_this_machine_answers_and_writes_only_into_its_runs(self):
        with tempfile.TemporaryDirectory() as empty:
            process = self.check("--json", cwd=empty)
            self.assertIn(process.returncode, (0, 1), process.stderr)
            document(process)
            self.assertEqual(os.listdir(empty), [])

    def test_killed_at_any_moment_the_run_can_be_read(self):
        for delay in (0.01, 0.05, 0.15, 0.3):
            process = subprocess.Popen([BINARY, "check", "--runs", self.runs], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            time.sleep(delay)
            process.send_signal(signal.SIGKILL)
            process.wait()
        for directory in pathlib.Path(self.runs).iterdir():
            shown = run("show", directory)
            self.assertEqual(shown.returncode, 0, shown.stderr)
        self.assertEqual(run("runs", "--runs", self.runs).returncode, 0)

    def test_wrong_usage_is_exit_2_and_says_what_is_wanted(self):
        for arguments, word in ((["--rung", "nonsense"], "evaluation"), (["--only", "device.nonsense"], "--list"), (["--device", "tpu"], "cpu"), (["--again", "nonsense"], "firstfault runs"), (["--nonsense"], "--nonsense")):
            process = self.check(*arguments)
            self.assertEqual(process.returncode, 2, arguments)
            self.assertIn(word, process.stderr + process.stdout, arguments)

    def test_input_that_cannot_be_read_is_exit_3_and_names_the_file(self):
        process = self.check("--from", "/nonexistent/bundle.tar.zst")
        self.assertIn(process.returncode, (2, 3))
        self.assertIn("/nonexistent/bundle.tar.zst", process.stderr)

    def test_list_names_every_rung(self):
        text = run("check", "--list").stdout
        for rung in ("device", "compute", "dataset", "model", "step", "resume", "episode", "evaluation"):
            self.assertIn(rung, text)
        checks = json.loads(run("check", "--list", "--json").stdout)["checks"]
        self.assertGreater(len(checks), 50)


class Documentation(unittest.TestCase):
    def test_the_generated_pages_are_those_of_this_program(self):
        for page in ("checks", "causes"):
            self.assertEqual((ROOT / f"docs/{page}.md").read_text(), run("docs", page).stdout, f"run ./dev docs: docs/{page}.md is old")


if __name__ == "__main__":
    unittest.main()
