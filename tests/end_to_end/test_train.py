"""train check and train resume as a user runs them: exit codes, documents against their schemas, errors that name the file."""
import json, math, os, pathlib, platform, struct, sys, tempfile, unittest

import models
from harness import BINARY, ROOT, document, run


def lerobot_line(step, loss=None, grdn=1.5, lr=1e-4, data=0.004, mem=3.73, update=0.1):
    loss = 0.05 + math.exp(-step / 2000) if loss is None else loss
    return (f"INFO 2026-01-22 {9 + step // 72000:02}:{step // 1200 % 60:02}:{step // 20 % 60:02} ot_train.py:351 step:{step} smpl:{8 * step} ep:{step // 10} epch:{step / 1000:.2f} "
            f"loss:{loss:.3f} grdn:{grdn:.3f} lr:{lr:.1e} updt_s:{update:.3f} data_s:{data:.3f} smp/s:80 mem_gb:{mem:.2f}\n")


def checkpoint(root, step, drop=(), cut=None):
    """A checkpoint as lerobot 0.4 lays it out, small."""
    place = pathlib.Path(root) / "checkpoints" / f"{step:06}"
    (place / "pretrained_model").mkdir(parents=True)
    (place / "training_state").mkdir()
    tensors = models.safetensors({"w": models.f32(4, 4)})
    files = {"pretrained_model/config.json": b"{}", "pretrained_model/train_config.json": json.dumps({"scheduler": {"type": "x"}}).encode(),
             "pretrained_model/model.safetensors": tensors, "training_state/optimizer_state.safetensors": tensors,
             "training_state/optimizer_param_groups.json": b"[]", "training_state/scheduler_state.json": json.dumps({"last_epoch": step}).encode(),
             "training_state/rng_state.safetensors": tensors, "training_state/training_step.json": json.dumps({"step": step}).encode()}
    for name, content in files.items():
        if name not in drop:
            (place / name).write_bytes(content[:len(content) // 2] if name == cut else content)
    last = pathlib.Path(root) / "checkpoints/last"
    if last.is_symlink():
        last.unlink()
    last.symlink_to(f"{step:06}")
    return place


class Check(unittest.TestCase):
    def setUp(self):
        self.place = tempfile.TemporaryDirectory()
        self.root = pathlib.Path(self.place.name)
        self.addCleanup(self.place.cleanup)

    def log(self, text, name="train.log"):
        (self.root / name).write_text(text)
        return self.root / name

    def test_a_number_beyond_a_double_is_infinite_and_a_torn_json_line_is_said(self):
        lines = ['{"step": %d, "loss": %g, "grad_norm": 1.0}\n' % (s, 2 - s / 100) for s in range(1, 21)]
        lines[12] = '{"step": 13, "loss": 1e400, "grad_norm": 1.0}\n'
        found = document(run("train", "check", self.log("".join(lines), "loss.jsonl"), "--json"))
        self.assertEqual(found["first_fault"], "step.loss-finite")
        lines[12] = '{"step": 13, "loss": \n'
        found = document(run("train", "check", self.log("".join(lines), "loss.jsonl"), "--json"))
        metrics = next(c for c in found["checks"] if c["id"] == "step.metrics")
        self.assertEqual(metrics["status"], "warn")
        self.assertIn("line 13", metrics["summary"])

    def test_real_logs_of_healthy_runs_are_clean(self):
        for name, records in (("lerobot-train-0.4.4.log", 8), ("hf-trainer.log", None), ("accelerate.log", 32)):
            with self.subTest(name):
                done = run("train", "check", ROOT / "tests/training/fixtures" / name, "--json")
                value = document(done)
                self.assertEqual((done.returncode, value["first_fault"]), (0, None), done.stdout)
                metrics = next(c for c in value["checks"] if c["id"] == "step.metrics")
                self.assertEqual(metrics["status"], "pass", metrics)
                if records:
                    self.assertEqual(metrics["measured"]["records"], records)

    def test_a_list_of_records_is_read_under_any_name(self):
        records = '[{"step": 1, "loss": 0.5}, {"step": 2, "loss": NaN}]'
        for name in ("metrics.json", "records"):
            for content in (records, records.replace(", {", ",\n {"), '{"global_step": 2, "log_history": ' + records + "}"):
                done = run("train", "check", self.log(content, name), "--json")
                self.assertEqual((done.returncode, document(done)["first_fault"]), (1, "step.loss-finite"), content)

    def test_a_second_log_without_metrics_is_named(self):
        good = self.log("".join(lerobot_line(step) for step in range(200, 4001, 200)))
        done = run("train", "check", good, self.log("hello\n", "other.txt"))
        self.assertIn("no line of metrics was found in", done.stdout)
        self.assertIn("other.txt", done.stdout)

    def test_a_command_that_is_killed_is_not_said_to_have_run_out_of_memory(self):
        done = run("train", "watch", "--json", "--", "sh", "-c", "for i in 1 2 3; do echo step $i loss 0.$i; done; kill -9 $$")
        self.assertEqual(done.returncode, 137)
        check = next(c for c in document(done)["checks"] if c["id"] == "step.interruption")
        self.assertEqual(check["causes"], ["training.killed"])
        self.assertIn("oom_kill", " ".join(e["text"] for e in check["evidence"]))
        self.assertTrue(any("dmesg" in line for line in check["fix"] + check["verify"]))

    def test_a_command_without_metrics_is_no_error(self):
        done = run("train", "watch", "--", "true")
        self.assertEqual(done.returncode, 0)
        self.assertIn("nothing was judged", done.stdout)
        self.assertNotIn("ERR", done.stdout)
        value = document(run("train", "watch", "--json", "--", "true"))
        self.assertEqual((value["status"], value["first_fault"], value["exit_code"]), ("skip", None, 0))

    def test_two_built_in_runs_never_share_a_directory(self):
        train = lambda steps, *more: run("train", "reference", "--out", self.root / "run", "--steps", steps, "--save-freq", "3", "--episodes", "2", *more)
        self.assertEqual(train(6).returncode, 0)
        refused = train(6, "--seed", "2")
        self.assertEqual(refused.returncode, 2)
        self.assertIn("--force", refused.stderr)
        self.assertEqual(train(4, "--force").returncode, 0)
        self.assertEqual(sorted(p.name for p in (self.root / "run/checkpoints").iterdir()), ["000003", "000004", "last"])

    def test_a_healthy_log_is_clean_and_a_nan_is_found_with_the_record_before_it(self):
        lines = [lerobot_line(step) for step in range(200, 10001, 200)]
        healthy = run("train", "check", self.log("".join(lines)), "--json")
        self.assertEqual(healthy.returncode, 0, healthy.stdout)
        self.assertEqual(document(healthy)["first_fault"], None)
        lines[30] = lerobot_line(6200, float("nan"), float("nan"))
        sick = run("train", "check", self.log("".join(lines)), "--json")
        self.assertEqual(sick.returncode, 1)
        found = document(sick)
        self.assertEqual(found["first_fault"], "step.loss-finite")
        check = next(c for c in found["checks"] if c["id"] == "step.loss-finite")
        self.assertEqual(check["causes"][0], "training.loss-nonfinite")
        self.assertEqual(check["measured"]["last_good_step"], 6000)
        self.assertEqual([e["line"] for e in check["evidence"]], [31, 30])
        self.assertIn("plot", check["measured"])
        text = run("train", "check", self.root / "train.log", "--plots", self.root)
        self.assertIn("step 6000", text.stdout)
        self.assertIn("▲", text.stdout)
        self.assertTrue((self.root / "step.loss-finite.svg").read_text().startswith("<svg"))

    def test_files_that_are_no_log_are_errors_with_their_name(self):
        absent = run("train", "check", self.root / "absent.log")
        self.assertEqual(absent.returncode, 2)
        self.assertIn("absent.log", absent.stderr)
        other = run("train", "check", self.log("hello\n"))
        self.assertEqual(other.returncode, 3)
        self.assertIn("no line of metrics", other.stderr)
        self.assertEqual(document(run("train", "check", self.root / "train.log", "--json"))["status"], "error")
        self.assertEqual(run("train", "check").returncode, 2)

    def test_damaged_binary_logs_are_named(self):
        path = self.root / "events.out.tfevents.1.host"
        path.write_bytes(struct.pack("<Q", 24) + b"\0" * 40)
        broken = run("train", "check", path)
        self.assertEqual(broken.returncode, 3)
        self.assertIn("checksum", broken.stderr)


class Resume(unittest.TestCase):
    def setUp(self):
        self.place = tempfile.TemporaryDirectory()
        self.root = pathlib.Path(self.place.name)
        self.addCleanup(self.place.cleanup)

    def found(self):
        result = run("train", "resume", self.root, "--json")
        value = document(result)
        self.assertEqual(result.returncode, 0 if value["first_fault"] is None else 1)
        return value["first_fault"], {c["id"]: c for c in value["checks"]}

    def test_a_whole_run_says_which_step_comes_next(self):
        checkpoint(self.root, 100)
        checkpoint(self.root, 200)
        fault, checks = self.found()
        self.assertIsNone(fault)
        self.assertEqual(checks["resume.step-agrees"]["measured"]["next_step"], 201)
        self.assertIn("sampler", checks["resume.state-complete"]["summary"] + json.dumps(checks["resume.state-complete"]["evidence"]))
        # lerobot 0.6.1 records what the sampler's position follows from.
        (self.root / "checkpoints/000200/training_state/training_step.json").write_text(json.dumps({"step": 200, "num_processes": 1, "batch_size": 4}))
        fault, checks = self.found()
        self.assertIsNone(fault)
        self.assertNotIn("saves no sampler position", json.dumps(checks["resume.state-complete"]))

    def test_what_is_missing_is_named(self):
        for part, name in (("optimizer_state.safetensors", "optimizer"), ("scheduler_state.json", "scheduler"), ("rng_state.safetensors", "random state"), ("training_step.json", "step")):
            with self.subTest(part), tempfile.TemporaryDirectory() as place:
                self.root = pathlib.Path(place)
                checkpoint(self.root, 100, drop=("training_state/" + part,))
                fault, checks = self.found()
                self.assertEqual(fault, "resume.state-complete")
                self.assertIn(name, checks[fault]["summary"])
                self.assertEqual(checks[fault]["causes"][0], "training.resume-state-missing")

    def test_a_torn_newest_checkpoint_fails_and_the_whole_one_before_is_named(self):
        checkpoint(self.root, 100)
        checkpoint(self.root, 200, cut="pretrained_model/model.safetensors")
        fault, checks = self.found()
        self.assertEqual(fault, "resume.checkpoint-whole")
        self.assertIn("the newest whole one is of step 100", checks[fault]["summary"])
        self.assertEqual(checks[fault]["causes"][0], "training.checkpoint-write-failed")

    def test_a_stale_and_a_dangling_link(self):
        checkpoint(self.root, 100)
        checkpoint(self.root, 200)
        last = self.root / "checkpoints/last"
        last.unlink()
        last.symlink_to("000100")
        self.assertEqual(self.found()[0], "resume.last-link")
        last.unlink()
        last.symlink_to("000300")
        self.assertEqual(self.found()[0], "resume.last-link")

    def test_step_and_scheduler_of_two_moments(self):
        place = checkpoint(self.root, 200)
        (place / "training_state/training_step.json").write_text('{"step": 100}')
        fault, checks = self.found()
        self.assertEqual(fault, "resume.step-agrees")
        self.assertEqual(checks[fault]["causes"][0], "training.resume-reset")

    def test_exit_codes(self):
        """0 whole (above), 1 a fault (above), 2 wrong usage, 3 nothing that could be judged."""
        file = self.root / "model.safetensors"
        file.write_bytes(b"x")
        (self.root / "empty").mkdir()
        for path, code in ((self.root / "absent", 2), (file, 2), ("", 2), (self.root / "empty", 3)):
            for extra in ([], ["--json"]):
                result = run("train", "resume", path, *extra)
                self.assertEqual(result.returncode, code, (path, result.stderr))
                self.assertIn(str(path), result.stderr + result.stdout)


class Watch(unittest.TestCase):
    def setUp(self):
        self.place = tempfile.TemporaryDirectory()
        self.root = pathlib.Path(self.place.name)
        self.addCleanup(self.place.cleanup)

    def test_output_goes_on_and_the_commands_status_is_kept(self):
        seen = run("train", "watch", "--", "sh", "-c", "echo step=1 loss=0.5; echo sorry >&2; exit 7")
        self.assertEqual(seen.returncode, 7)
        self.assertTrue(seen.stdout.startswith("step=1 loss=0.5\n"))
        self.assertIn("sorry\n", seen.stderr)
        self.assertIn("status 7", seen.stdout)

    def test_a_time_that_is_none_is_refused_in_plain_words(self):
        for command in (("train", "watch", "--quiet", "{}", "--", "true"), ("data", "check", "x", "--fix", "-o", "y", "--fps", "{}"), ("video", "encode", "x", "-o", "y", "--fps", "{}"),
                        ("data", "bench", "x", "--python", "python3", "--step-time", "{}")):
            for value in ("0", "-1", "nan", "inf", "x"):
                done = run(*(word.replace("{}", value) for word in command))
                self.assertEqual(done.returncode, 2, (command, value))
                self.assertIn(f"{value} is no number above zero", done.stderr)

    def interruption(self, script):
        return next(c for c in document(run("train", "watch", "--json", "--", "sh", "-c", script))["checks"] if c["id"] == "step.interruption")

    def test_what_has_ended_is_not_said_to_stand_still_or_to_run(self):
        # What it left behind holds its output.
        left = run("train", "watch", "--quiet", "2", "--", "sh", "-c", "for i in 1 2 3 4 5 6; do echo step $i loss 0.$i; done; sleep 4 & exit 0")
        self.assertNotIn("nothing was printed", left.stderr)
        for last in ("true", "echo ValueError: x; exit 1"):
            early = run("train", "watch", "--", "sh", "-c", "echo Start offline training; " + last)
            self.assertIn("ended before it printed metrics", early.stdout)
            self.assertNotIn("py-spy", early.stdout)
        standing = run("train", "watch", "--quiet", "1", "--", "sh", "-c", "echo pid $$; echo step 1 loss 0.5; sleep 3; echo step 2 loss 0.4")
        self.assertIn("firstfault hang " + standing.stdout.split()[1] + " says", standing.stderr)

    def test_how_a_watched_command_ended_is_known(self):
        steps = "for i in 1 2 3 4 5 6; do echo step $i loss 0.$i; done; "
        check = self.interruption("echo cfg.steps=100; " + steps)
        self.assertEqual((check["status"], check["causes"]), ("warn", ["training.configuration"]))
        self.assertIn("ended with status 0 after step 6 of 100", check["summary"])
        check = self.interruption(steps + "exit 3")
        self.assertIn("status 3 after step 6", check["summary"])
        check = self.interruption(steps + "exit 137")
        self.assertEqual(check["causes"], ["training.killed"])
        self.assertEqual(self.interruption(steps)["status"], "pass")

    def test_who_runs_to_the_end_in_spite_of_a_signal_did_not_end_early(self):
        script = "trap '' TERM; echo step 1 loss 0.5; kill -TERM $PPID; sleep 1; for i in 2 3 4; do echo step $i loss 0.$i; done; echo End of training"
        done = run("train", "watch", "--all", "--", "sh", "-c", script)
        self.assertEqual(done.returncode, 143)
        self.assertIn("the run ended regularly, although it was told to end by SIGTERM", " ".join(done.stdout.split()))
        self.assertNotIn("before its time", done.stdout)

    def test_a_log_that_is_not_well_decides_over_a_status_of_0(self):
        seen = run("train", "watch", "--json", "--", BINARY, "train", "reference", "--steps", "40", "--fault", "nan-sample")
        self.assertEqual(seen.returncode, 1)
        found = document(seen)
        self.assertEqual((found["first_fault"], found["command_exit_status"], found["exit_code"]), ("step.loss-finite", 0, 1))
        self.assertIn("step:40", seen.stderr)

    def test_a_killed_command_and_one_that_does_not_exist(self):
        killed = run("train", "watch", "--json", "--", BINARY, "train", "reference", "--steps", "60", "--fault", "dies")
        self.assertEqual(killed.returncode, 137)
        self.assertEqual(document(killed)["first_fault"], "step.interruption")
        absent = run("train", "watch", "--", "/absent/program")
        self.assertEqual(absent.returncode, 3)
        self.assertIn("/absent/program", absent.stderr)


class Workloads(unittest.TestCase):
    def setUp(self):
        self.place = tempfile.TemporaryDirectory()
        self.root = pathlib.Path(self.place.name)
        self.addCleanup(self.place.cleanup)

    def climb(self, rung, *arguments):
        result = run("check", "--device", "cpu", "--rung", rung, "--runs", self.root / "runs", "--json", *arguments, timeout=250)
        value = document(result)
        found = next(r for r in value["rungs"] if r["rung"] == rung)
        return value["first_fault"], {c["id"]: c for c in found["checks"]}

    REFERENCE = ("--workload", "command", "--", BINARY, "train", "reference", "--out", "{out}", "--steps", "{steps}", "--save-freq", "{save_every}")

    def test_a_command_is_run_twice_and_continued_from_its_checkpoint(self):
        fault, checks = self.climb("step", *self.REFERENCE, "{resume:--resume}")
        self.assertIsNone(fault, checks)
        self.assertEqual(checks["step.reproducible"]["status"], "pass")
        fault, checks = self.climb("resume", *self.REFERENCE, "{resume:--resume}")
        self.assertIsNone(fault, checks)
        self.assertEqual(checks["resume.continues"]["status"], "pass")
        self.assertEqual(checks["resume.continues"]["measured"]["final_weights"], "equal")

    def test_faults_of_a_command_are_found_at_their_rung(self):
        self.assertEqual(self.climb("step", *self.REFERENCE, "--fault", "seed-ignored")[0], "step.reproducible")
        self.assertEqual(self.climb("step", *self.REFERENCE, "--fault", "dies", "--steps", "60")[0], "step.runs")
        fault, checks = self.climb("resume", *self.REFERENCE, "{resume:--resume --fault restore-step-zero}")
        self.assertIn(fault, ("resume.step-continues", "resume.step-agrees", "resume.continues"))
        self.assertEqual(checks[fault]["causes"][0], "training.resume-reset")

    def toy(self, rung, *words):
        program = pathlib.Path(__file__).with_name("toy_trainer.py")
        os.environ["TOY_COUNTER"] = str(self.root / "count")
        return self.climb(rung, "--workload", "command", "--", sys.executable, program, "{out}", "{steps}", "{save_every}", "{resume:--resume}", *words)

    def test_which_piece_is_not_restored_is_said_where_the_files_tell_it(self):
        fault, checks = self.toy("resume", "--wrong", "lerobot")
        self.assertEqual(checks["resume.continues"]["status"], "pass", checks["resume.continues"])
        self.assertIn("before it opens its loader", checks["resume.continues"]["summary"])
        self.assertNotIn("sampler", checks["resume.continues"]["summary"])
        fault, checks = self.toy("resume", "--wrong", "lerobot-no-sampler")
        self.assertIn("holds no sampler position", checks["resume.continues"]["summary"])

    def test_what_moves_is_read_from_two_checkpoints(self):
        fault, checks = self.toy("step")
        self.assertIsNone(fault, checks)
        self.assertEqual((checks["step.parameters-move"]["status"], checks["step.frozen-still"]["status"]), ("pass", "pass"), checks)
        self.assertEqual(checks["step.parameters-move"]["measured"]["groups"]["frozen"]["elements_moved"], 0)
        fault, checks = self.toy("step", "--wrong", "head-stands")
        self.assertEqual((checks["step.parameters-move"]["status"], checks["step.parameters-move"]["causes"]), ("warn", ["training.gradient-zero"]))
        self.assertIn("head.weight", checks["step.parameters-move"]["summary"])
        fault, checks = self.toy("step", "--wrong", "frozen-moves")
        self.assertEqual((fault, checks[fault]["causes"]), ("step.frozen-still", ["training.configuration"]))

    def test_what_a_command_tells_of_its_speed_is_recorded_and_the_rest_is_not_stated(self):
        _, checks = self.toy("step", "--batch_size=16", "--mixed_precision", "bf16")
        record = checks["step.performance"]["measured"]
        self.assertEqual((record["batch"], record["from"]["batch"]), (16, "the command"))
        self.assertEqual(record["precision"], "bf16, F32 weights")
        self.assertTrue(record["device"].startswith("cpu"), record)
        self.assertEqual((record["versions"]["python"], record["from"]["versions"]), (platform.python_version(), "the command's interpreter"))
        # The toy prints no times and has no cameras.
        self.assertEqual((record["step_median_s"], record["cameras"], record["video"]), ("not stated",) * 3)
        self.assertEqual(sorted(n for n, v in record.items() if v == "not stated"), sorted(record["not_stated"]))
        self.assertIn("not stated: step times", checks["step.performance"]["summary"])
        # With the loader's time in the log, a dataset of videos, and a shell between.
        program = self.root / "prints.sh"
        program.write_text("for i in 1 2 3 4; do echo step=$i loss=0.$i lr=1e-3 data_s=0.5 updt_s=0.25 memory_allocated_mb=64; done; echo batch_size=4 End of training")
        data = self.root / "data/meta"
        data.mkdir(parents=True)
        (data / "info.json").write_text(json.dumps({"features": {"observation.images.top": {"dtype": "video", "shape": [480, 640, 3]}, "observation.images.wrist": {"dtype": "video", "shape": [480, 640, 3]}}}))
        _, checks = self.climb("step", "--workload", "command", "--dataset", data.parent, "--python", sys.executable, "--", "sh", program)
        record = checks["step.performance"]["measured"]
        self.assertEqual((record["loading_s"], record["step_without_loading_s"], record["step_median_s"]), (0.5, 0.25, 0.75))
        self.assertEqual((record["cameras"], record["resolution"], record["video"]), (2, "640x480", "pictures are decoded from video"))
        self.assertEqual((record["batch"], record["from"]["batch"], record["peak_memory_bytes"]), (4, "the log", 64 * 2**20))
        self.assertEqual(record["from"]["versions"], "--python")
        self.assertAlmostEqual(record["throughput_per_s"], 4 / 0.75)
        self.assertEqual(record["precision"], "not stated")

    def test_saves_of_a_command_that_go_wrong_and_its_restores(self):
        fault, checks = self.toy("resume")
        self.assertIsNone(fault, checks)
        self.assertEqual(checks["resume.torn-save"]["status"], "pass", checks["resume.torn-save"])
        self.assertIn("killed", checks["resume.torn-save"]["summary"])
        self.assertEqual(checks["resume.restore-rate"]["measured"]["rate"], 1)
        fault, checks = self.toy("resume", "--wrong", "no-steps")
        self.assertIsNone(fault, checks)
        self.assertEqual((checks["resume.restore-rate"]["measured"]["rate"], checks["resume.continues"]["measured"]["losses_compared"]), (1, 10), checks["resume.continues"])
        for wrong, check, status, cause in (("hides-failure", "resume.torn-save", "fail", "training.checkpoint-write-failed"), ("says-done", "resume.torn-save", "fail", "training.checkpoint-write-failed"),
                                            ("torn-name", "resume.torn-save", "warn", "training.checkpoint-write-failed"), ("flaky", "resume.restore-rate", "fail", "training.resume-state-missing")):
            with self.subTest(wrong):
                _, checks = self.toy("resume", "--wrong", wrong)
                self.assertEqual((checks[check]["status"], checks[check]["causes"]), (status, [cause]), checks[check])

    def test_a_workload_that_does_not_run_is_no_resumption_that_holds(self):
        done = run("check", "--device", "cpu", "--rung", "resume", "--runs", self.root / "runs", "--json", "--workload", "command", "--", sys.executable, "-c", "raise SystemExit(3)", timeout=60)
        self.assertEqual(done.returncode, 3)
        self.assertIn("the workload does not run", done.stdout)

    def test_without_a_command_or_an_environment_it_says_what_is_needed(self):
        refused = run("check", "--rung", "step", "--workload", "command", "--json")
        self.assertEqual((refused.returncode, document(refused)["where"]), (2, "--workload command"))
        refused = run("check", "--rung", "step", "--workload", "lerobot", "--json")
        self.assertEqual((refused.returncode, document(refused)["where"]), (2, "--workload lerobot"))
        self.assertIn("--python", document(refused)["remedy"])

    def test_the_built_in_workload_holds_and_a_mistake_in_it_is_found(self):
        fault, checks = self.climb("resume", "--workload", "reference")
        self.assertIsNone(fault, checks)
        self.assertEqual(self.climb("step", "--workload", "reference", "--", "fault=frozen-moves")[0], "step.frozen-still")


if __name__ == "__main__":
    unittest.main()
