"""firstfault rollout, render and video: documents, exit codes, real shapes of result files."""
import json, os, pathlib, subprocess, sys, tempfile, unittest

import episodes
from harness import BINARY, ROOT, document, run


class Rollout(unittest.TestCase):
    def setUp(self):
        self.directory = tempfile.TemporaryDirectory()
        self.root = pathlib.Path(self.directory.name)

    def tearDown(self):
        self.directory.cleanup()

    def write(self, name, content):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content if isinstance(content, str) else json.dumps(content))
        return path

    def check(self, *arguments):
        process = run("rollout", "check", *arguments, "--json")
        return process.returncode, document(process)

    def status(self, value, check):
        return next(c for c in value["checks"] if c["id"] == check)

    def test_a_clean_batch_holds(self):
        code, value = self.check(self.write("e.jsonl", episodes.batch()))
        self.assertEqual(code, 0, value["first_fault"])
        self.assertEqual(value["results"]["success"]["successes"], 12)
        self.assertEqual(value["results"]["sources"], [])
        self.assertEqual(self.status(value, "episode.action-effect")["status"], "pass")

    def test_what_a_real_lerobot_eval_wrote_is_read(self):
        code, value = self.check(ROOT / "tests/rollout/fixtures/lerobot-eval-0.4.4.json")
        self.assertEqual(self.status(value, "evaluation.present")["measured"]["episodes"], 4)
        self.assertEqual(self.status(value, "evaluation.results")["status"], "pass")
        success = self.status(value, "evaluation.success-interval")
        self.assertEqual((code, success["status"], success["measured"]["successes"]), (1, "fail", 0))
        self.assertIn(self.status(value, "evaluation.same-run")["status"], ("warn", "fail"), "the videos that it names are not there")

    def test_a_swapped_axis_is_named_with_its_cause_and_fix(self):
        code, value = self.check(self.write("e.jsonl", episodes.batch(swap=True)))
        self.assertEqual(code, 1)
        self.assertEqual(value["first_fault"], "episode.actions-traced")
        fault = self.status(value, "episode.actions-traced")
        self.assertEqual(fault["causes"], ["closed-loop.action-convention"])
        self.assertEqual(fault["measured"]["source"], "axis-order")
        self.assertTrue(fault["fix"] and fault["evidence"])
        self.assertIn("axis-order", self.status(value, "episode.stage")["summary"])
        self.assertEqual(self.status(value, "evaluation.success-interval")["status"], "fail")

    def turned(self, turn, odd, red=0.05, motion=None, color=None):
        lines = [json.loads(x) for x in episodes.batch(camera=lambda tool, thing: episodes.picture(tool, thing, odd=odd, red=red)).splitlines()]
        trained = episodes.average([f["cameras"]["top"] for f in lines if "cameras" in f])
        more = {"motion": motion} if motion else {}
        text = episodes.batch(camera=lambda tool, thing: episodes.picture(tool, thing, turn, odd, red), cameras={"top": {"color": color} if color else {}},
                              training={"cameras": {"top": {**trained, **more, **({"color": "rgb"} if color else {})}}})
        _, value = self.check(self.write("e.jsonl", text))
        return self.status(value, "episode.observations-match"), self.status(value, "episode.recorded")

    def test_a_turned_picture_is_named_with_the_header_that_the_format_asks_for(self):
        turns = {"left to right": "mirrored left to right", "upside down": "turned upside down", "180 degrees": "turned by 180 degrees"}
        for odd, motion in ((0.1, None), (0.02, None), (0.0, [[1, 0, 0], [0, 1, 0]])):
            match, recorded = self.turned("", odd, motion=motion)
            self.assertEqual(match["status"], "pass", match)
            self.assertNotIn("camera-flip", json.dumps(recorded), "what is as in the training is decided too")
            for turn, words in turns.items():
                with self.subTest(turn, odd=odd, motion=motion):
                    match, _ = self.turned(turn, odd, motion=motion)
                    self.assertEqual((match["status"], match["measured"].get("source")), ("warn", "camera-flip"), match)
                    self.assertIn(words, match["summary"])
        # A symmetric picture, and no motion: nothing can tell, and that is said with the field that would.
        match, recorded = self.turned("left to right", 0.0)
        self.assertEqual(match["status"], "pass", match)
        asked = [u for u in recorded["measured"]["unanswered"] if u["source"] == "camera-flip"]
        self.assertEqual([u["field"] for u in asked], ["training.cameras.top.motion"], recorded)
        self.assertIn("mirrored left to right", asked[0]["what"])

    def test_exchanged_colours_of_nearly_grey_pictures(self):
        for red in (0.05, 0.004):
            self.assertEqual(self.turned("", 0.1, red)[0]["status"], "pass")
            match, _ = self.turned("exchanged", 0.1, red)
            self.assertEqual((match["status"], match["measured"].get("source")), ("warn", "colour-order"), match)
        match, recorded = self.turned("exchanged", 0.1, 0.0)
        self.assertEqual(match["status"], "pass", match)
        self.assertEqual([u["field"] for u in recorded["measured"]["unanswered"] if u["source"] == "colour-order"], ["training.cameras.top.color"])
        self.assertEqual(self.turned("exchanged", 0.1, 0.0, color="bgr")[0]["measured"].get("source"), "colour-order")

    def test_what_is_not_written_is_named(self):
        _, value = self.check(self.write("e.jsonl", episodes.batch(swap=True)))
        recorded = self.status(value, "episode.recorded")
        self.assertEqual(recorded["status"], "warn", "the batch fails")
        self.assertLessEqual({"action.normalized", "training.action", "training.fps", "cameras, state"}, {u["field"] for u in recorded["measured"]["unanswered"]})
        _, value = self.check(self.write("e.jsonl", episodes.batch()))
        self.assertEqual(self.status(value, "episode.recorded")["status"], "pass")
        record = self.status(value, "episode.performance")["measured"]
        self.assertAlmostEqual(record["step_median_s"], 0.1)
        self.assertEqual((record["device"], record["video"]), ("not stated", "without video"))

    def test_an_untrained_policy_is_what_is_left(self):
        lines = []
        for i in range(12):
            text = episodes.episode(i, success=True).splitlines()
            head, frames = json.loads(text[0]), [json.loads(x) for x in text[1:-1]]
            tool = [0.0, 0.0, 0.2]
            lines.append(head)
            for step, f in enumerate(frames):  # it wanders smoothly, and never comes near
                v = [0.004 * __import__("math").sin(0.23 * step + k + 1.7 * i) for k in range(3)]
                f.update(tool=tool[:], object=[0.3, 0.3, 0.02], contacts=0, gripper={"command": 1, "opening": 1.0}, action={"raw": v + [1], "sent": v + [1]})
                tool = [t + d for t, d in zip(tool, v)]
                lines.append(f)
            lines.append({"result": {"success": False, "steps": len(frames)}})
        code, value = self.check(self.write("e.jsonl", "".join(json.dumps(x) + "\n" for x in lines)))
        self.assertEqual((code, value["first_fault"]), (1, "episode.stage"))
        self.assertEqual(self.status(value, "episode.stage")["causes"], ["closed-loop.undertrained"])

    def test_episodes_that_do_the_task_and_are_called_failures(self):
        lines = []
        for i in range(12):
            text = episodes.episode(i, success=True).splitlines()
            lines += text[:-1] + [json.dumps({"result": {"success": i == 0, "steps": len(text) - 2}})]
        code, value = self.check(self.write("e.jsonl", "".join(x + "\n" for x in lines)))
        stage = self.status(value, "episode.stage")
        self.assertEqual((code, value["first_fault"], stage["causes"]), (1, "episode.stage", ["training.configuration"]))
        self.assertEqual(stage["measured"]["failed"], 11)
        self.assertIn("what counts as success is in question", stage["summary"])

    def test_lerobots_results_of_every_version(self):
        self.write("old/eval_info.json", episodes.lerobot_old([1] * 30 + [0] * 20))
        new = episodes.lerobot_new({("libero_spatial", 0): [1] * 25 + [0] * 5, ("libero_spatial", 1): [0] * 30})
        self.write("new/eval_info.json", new)
        self.write("wrapped/eval_info.json", {"eval_results_400": new})
        code, value = self.check(self.root / "old")
        self.assertEqual((code, value["results"]["success"]["successes"], value["results"]["success"]["episodes"]), (0, 30, 50))
        for which in ("new", "wrapped"):
            code, value = self.check(self.root / which)
            self.assertEqual((code, value["results"]["success"]["episodes"], len(value["results"]["tasks"])), (0, 60, 2))
            hidden = self.status(value, "evaluation.tasks")
            self.assertEqual(hidden["status"], "warn")
            self.assertIn("libero_spatial/1", hidden["summary"])

    def test_a_result_file_that_contradicts_itself(self):
        new = episodes.lerobot_new({("g", 0): [1, 0, 1, 0] * 10})
        new["overall"]["pc_success"] = 75.0
        code, value = self.check(self.write("eval_info.json", new))
        self.assertEqual((code, value["first_fault"]), (1, "evaluation.results"))
        self.assertIn("75", self.status(value, "evaluation.results")["summary"])

    def test_nan_and_robotwin(self):
        text = json.dumps(episodes.lerobot_old([1, 0] * 20)).replace('"avg_max_reward": 0.5', '"avg_max_reward": NaN')
        self.assertIn("NaN", text)
        self.assertEqual(self.check(self.write("a/eval_info.json", text))[0], 0)
        code, value = self.check(self.write("b/_result.txt", "Timestamp: 2026-08-01 12:00:00\n\nInstruction Type: unseen\n\n0.37"))
        self.assertEqual(code, 0)
        self.assertIn("37.0 %", self.status(value, "evaluation.present")["summary"])
        log = "".join(f"lift_pot | ACT | demo | c\nSuccess rate: \033[96m{s}/{t}\033[0m => \033[95m0%\033[0m, current seed: \033[90m{100000 + t}\033[0m\n\n"
                      for t, s in enumerate([1, 1, 2, 2], 1))
        code, value = self.check(self.write("c/console.log", log + "Policy rollout error in worker 0:\n"))
        self.assertEqual((code, value["first_fault"]), (1, "evaluation.results"))
        self.assertEqual(value["results"]["success"]["successes"], 2)

    def test_robotwins_parallel_evaluation(self):
        row = lambda i, success, **more: json.dumps({"worker_id": i % 2, "episode_id": i, "seed": 100000 + 10000 * i, "success": success, "global_total_episodes": 10,
                                                     "task_name": "lift_pot", "policy_name": "ACT", **more}) + "\n"
        records = "".join(row(i, i % 2 == 0) for i in range(10))
        self.write("_parallel_episode_records.jsonl", records)
        self.write("_result.txt", "Timestamp: 2026-08-01 12:00:00\n\nInstruction Type: unseen\n\n0.5")
        self.write("_result_worker00.txt", "Timestamp: 2026-08-01 12:00:00\n\nInstruction Type: unseen\n\nWorker ID: 0\nSuccess Count: 5\nTotal Episodes: 5\nSuccess Rate: 1.0\n")
        self.write("worker00.log", "lift_pot | ACT | demo | c\nSuccess rate: 1/1 => 100%, current seed: 100000\n")
        for i in range(10):
            (self.root / f"episode{i}.mp4").write_bytes((ROOT / "tests/fuzz/corpus/mp4/small.mp4").read_bytes())
        code, value = self.check(self.root)
        success = self.status(value, "evaluation.success-interval")["measured"]
        self.assertEqual((success["successes"], success["episodes"]), (5, 10), value["first_fault"])
        self.assertEqual((self.status(value, "evaluation.results")["status"], self.status(value, "evaluation.same-run")["status"]), ("pass", "pass"))
        (self.root / "episode4.mp4").unlink()
        self.assertIn("episode4.mp4", json.dumps(self.status(self.check(self.root)[1], "evaluation.same-run")))
        self.write("_result.txt", "Timestamp: 2026-08-01 12:00:00\n\nInstruction Type: unseen\n\n0.7")
        self.assertIn("70.0 %", self.status(self.check(self.root)[1], "evaluation.results")["summary"])
        # An episode that was done again counts once; one that has no record is missed.
        self.write("_parallel_episode_records.jsonl", "".join(row(i, False) for i in range(9)) + row(0, True) + '{"episode_id": 9, "succ')
        code, value = self.check(self.root / "_parallel_episode_records.jsonl")
        self.assertEqual(value["results"]["success"]["successes"], 1)
        results = json.dumps(self.status(value, "evaluation.results"))
        self.assertIn("9 of 10", results)
        self.assertIn("no whole record", results)

    def test_what_is_no_video_is_named(self):
        small = (ROOT / "tests/fuzz/corpus/mp4/small.mp4").read_bytes()
        for content, words in ((b"hello world\nmore\n", "a text"), (b'{"a": 1}\n', "a JSON text"), (bytes(3000), "zero bytes"), (b"\x89PNG\r\n\x1a\n" + bytes(90), "a PNG picture"),
                               (b"PK\3\4" + bytes(90), "a zip archive"), (b"PAR1" + bytes(90), "a Parquet file"), (b"RIFF\0\0\0\0WAVE" + bytes(90), "a WAV sound"),
                               ((ROOT / "reference/policy/model.safetensors").read_bytes(), "a safetensors file"), ("größer ".encode() * 200, "a text"),
                               (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 99\n", "a Git LFS pointer"), (b"<!DOCTYPE html>\n<html>", "an HTML page")):
            with self.subTest(words):
                path = self.root / "v.mp4"
                path.write_bytes(content)
                process = run("video", "check", path, "--json")
                whole = self.status(document(process), "episode.video-whole")
                self.assertEqual((process.returncode, whole["status"]), (1, "fail"))
                self.assertIn(words, whole["summary"])
                self.assertNotIn("AV1", json.dumps(whole["fix"]))
        path.write_bytes(small[:100])
        self.assertIn("incomplete", self.status(document(run("video", "check", path, "--json")), "episode.video-whole")["summary"])
        path.write_bytes(b"\x1a\x45\xdf\xa3" + bytes(90))
        process = run("video", "check", path, "--json", env={"PATH": "/nonexistent", "FIRSTFAULT_FFMPEG": ""})
        whole = self.status(document(process), "episode.video-whole")
        self.assertEqual((process.returncode, whole["status"], whole["causes"]), (0, "warn", ["render.video-encode"]))

    def test_videos_that_are_named_and_absent(self):
        old = episodes.lerobot_old([1, 0] * 10)
        old["video_paths"] = ["outputs/eval/videos/eval_episode_0.mp4", "outputs/eval/videos/eval_episode_1.mp4"]
        self.write("eval_info.json", old)
        (self.root / "videos").mkdir()
        (self.root / "videos/eval_episode_0.mp4").write_bytes((ROOT / "tests/fuzz/corpus/mp4/small.mp4").read_bytes())
        code, value = self.check(self.root)
        self.assertEqual(self.status(value, "evaluation.same-run")["status"], "fail")
        os.utime(self.root / "videos/eval_episode_0.mp4", (1e9, 1e9))
        code, value = self.check(self.root)
        self.assertIn("not written in the same run", json.dumps(self.status(value, "evaluation.same-run")))

    def test_compare_pairs_seeds_and_says_what_would_settle_it(self):
        a = self.write("a/eval_info.json", episodes.lerobot_old([1, 0] * 25))
        b = self.write("b/eval_info.json", episodes.lerobot_old([1, 1, 0, 1, 1] * 10))
        process = run("rollout", "compare", a, b, "--json")
        value = document(process)
        self.assertEqual(process.returncode, 0)
        self.assertTrue(value["paired"])
        self.assertEqual(sum(value["pairs"][k] for k in ("both", "neither", "only_a", "only_b")), 50)
        self.assertLess(value["p"], 0.05)
        c = self.write("c/eval_info.json", episodes.lerobot_old([1, 0] * 24 + [1, 1]))
        value = document(run("rollout", "compare", a, c, "--json"))
        self.assertGreater(value["needed"], 50)
        self.assertIn("not settled", value["verdict"])

    def test_one_policy_with_two_outcomes_of_a_seed_is_not_reproducible(self):
        a = self.write("a.jsonl", episodes.batch(6))
        b = self.write("b.jsonl", episodes.batch(5) + episodes.episode(5, success=False))
        self.assertEqual(run("rollout", "compare", a, a).returncode, 0)
        process = run("rollout", "compare", a, b, "--json")
        self.assertEqual((process.returncode, document(process)["cause"]), (1, "closed-loop.not-reproducible"))

    def test_bad_input_is_named_with_its_line(self):
        path = self.write("e.jsonl", episodes.episode(0) + "{broken\n" + episodes.episode(1))
        code, value = self.check(path)
        self.assertEqual(code, 3)
        self.assertIn("e.jsonl:", self.status(value, "episode.present")["summary"])
        undecided = episodes.episode(1).replace('"success": true', '"success": "maybe"').replace('"success":true', '"success":"maybe"')
        self.assertIn('"maybe"', undecided)
        for path, code in ((self.root / "nothing", 2), (self.write("x.jsonl", "{}\n"), 3), (self.write("m.jsonl", undecided), 3)):
            process = run("rollout", "check", path)
            self.assertEqual(process.returncode, code)
            self.assertIn("firstfault:", process.stderr)

    def test_check_climbs_rungs_7_and_8_with_results(self):
        path = self.write("e.jsonl", episodes.batch(swap=True))
        process = run("check", "--from", ROOT / "examples/rx7900xtx-healthy.tar.zst", "--results", path, "--rung", "episode", "--runs", self.root / "runs", "--json")
        value = document(process)
        self.assertEqual((process.returncode, value["first_fault"]), (1, "episode.actions-traced"))


class RenderAndVideo(unittest.TestCase):
    def test_render_check_answers_with_a_document(self):
        process = run("render", "check", "--json", "--all", env={"MUJOCO_GL": "disabled"})
        value = document(process)
        self.assertIn(process.returncode, (0, 1))
        self.assertEqual(next(c for c in value["checks"] if c["id"] == "episode.render-variables")["status"], "pass")

    def test_variables_are_judged_before_any_import(self):
        for env, cause, word in (({"MUJOCO_GL": "vulkan"}, "render.egl-unavailable", "knows egl"), ({"MUJOCO_GL": "egl", "PYOPENGL_PLATFORM": "glx"}, "render.egl-unavailable", "PYOPENGL_PLATFORM"),
                                 ({"MUJOCO_GL": "glfw", "DISPLAY": "", "WAYLAND_DISPLAY": ""}, "render.no-display", "no display"),
                                 ({"MUJOCO_GL": "egl", "MUJOCO_EGL_DEVICE_ID": "99", "PYOPENGL_PLATFORM": ""}, "render.egl-unavailable", "MUJOCO_EGL_DEVICE_ID")):
            process = run("render", "check", "--json", env=env)
            value = document(process)
            self.assertEqual(process.returncode, 1)
            check = next(c for c in value["checks"] if c["id"] == "episode.render-variables")
            self.assertEqual((check["status"], check["causes"]), ("fail", [cause]), env)
            self.assertIn(word, check["summary"])

    def test_video_check_reads_the_boxes(self):
        video = ROOT / "tests/fuzz/corpus/mp4/small.mp4"
        process = run("video", "check", video, "--json", env={"PATH": "/nonexistent", "FIRSTFAULT_FFMPEG": ""})
        value = document(process)
        self.assertEqual(next(c for c in value["checks"] if c["id"] == "episode.video-whole")["measured"]["videos"][0]["frames"], 30)
        with tempfile.TemporaryDirectory() as directory:
            cut = pathlib.Path(directory) / "cut.mp4"
            cut.write_bytes(video.read_bytes()[:100])
            process = run("video", "check", cut, "--json")
            self.assertEqual((process.returncode, document(process)["first_fault"]), (1, "episode.video-whole"))
            self.assertIn(run("video", "encode", cut, "-o", cut).returncode, (2, 3))  # it exists already, or there is no ffmpeg
            self.assertEqual(cut.stat().st_size, 100)
        self.assertEqual(run("video", "check", "/nonexistent.mp4").returncode, 2)


class Rendering(unittest.TestCase):
    def test_what_a_command_may_not_need_is_no_fault_until_it_is_asked_for(self):
        with tempfile.TemporaryDirectory() as root:
            def climb(**variables):
                plain = {k: v for k, v in os.environ.items() if k not in ("MUJOCO_GL", "PYOPENGL_PLATFORM", "DISPLAY")}
                done = subprocess.run([BINARY, "check", "--workload", "command", "--results", root, "--rung", "episode", "--device", "cpu", "--runs", root + "/runs", "--json", "--", "true"],
                                      env=plain | {"__EGL_VENDOR_LIBRARY_FILENAMES": "/nonexistent.json"} | variables, capture_output=True, text=True, timeout=120)
                return {c["id"]: c for r in document(done)["rungs"] for c in r["checks"]}["episode.render-egl"]
            self.assertEqual(climb()["status"], "warn")
            self.assertEqual(climb(MUJOCO_GL="egl")["status"], "fail")


class Lerobot(unittest.TestCase):
    """--workload lerobot at rungs 7 and 8: what lerobot-eval is called with, and what becomes of its results and its end."""

    EVAL = """#!{python}
import json, pathlib, sys
pathlib.Path({root!r}, "argv").write_text(json.dumps(sys.argv[1:]))
out = pathlib.Path(next(a for a in sys.argv if a.startswith("--output_dir=")).split("=", 1)[1])
{body}
"""

    def setUp(self):
        place = tempfile.TemporaryDirectory()
        self.addCleanup(place.cleanup)
        self.root = pathlib.Path(place.name)
        (self.root / "env/bin").mkdir(parents=True)
        (self.root / "env/bin/python").symlink_to(sys.executable)
        (self.root / "policy").mkdir()
        self.dataset = self.root / "dataset"
        (self.dataset / "meta").mkdir(parents=True)
        (self.dataset / "meta/info.json").write_text(json.dumps({"features": {"action": {"shape": [2]}, "observation.image": {"dtype": "image"}}}))
        (self.dataset / "meta/stats.json").write_text(json.dumps({"action": {"mean": [0, 0], "std": [1, 1], "min": [-2, -2], "max": [2, 2]}}))

    def climb(self, body, *words, rung="evaluation"):
        program = self.root / "env/bin/lerobot-eval"
        program.write_text(self.EVAL.format(python=sys.executable, root=str(self.root), body=body))
        program.chmod(0o755)
        done = run("check", "--workload", "lerobot", "--python", self.root / "env", "--policy", self.root / "policy", "--dataset", self.dataset, "--device", "cpu", *(["--rung", rung] if rung else ["--only", "episode.performance", "--only", "evaluation.performance", "--keep-going"]), "--runs", self.root / "runs",
                   "--json", "--", *words)
        value = document(done)
        return done.returncode, {c["id"]: c for r in value["rungs"] for c in r["checks"]}

    def test_what_destructors_print_at_the_end_is_not_the_reason(self):
        noise = ("Traceback (most recent call last):\\n  File 'lerobot_eval.py', line 202, in rollout\\nKeyError: 'is_success'\\n"
                 "Exception ignored in: <function GLContext.__del__ at 0x7f48>\\nTraceback (most recent call last):\\n"
                 "OpenGL.raw.EGL._errors.EGLError: EGLError(\\n\\terr = EGL_NOT_INITIALIZED,\\n\\tbaseOperation = eglDestroyContext,\\n)\\n")
        code, checks = self.climb(f'sys.stderr.write("{noise}"); sys.exit(1)', "--env.type=pusht", rung="episode")
        found = checks["episode.present"]
        self.assertEqual((code, found["status"]), (1, "fail"))
        self.assertNotIn("render.egl-unavailable", found["causes"])
        self.assertTrue(found["evidence"][0]["text"].endswith("KeyError: 'is_success'"), found["evidence"])

    def results(self, successes):
        metrics = {"sum_rewards": [1.0] * len(successes), "max_rewards": [1.0] * len(successes), "successes": successes, "video_paths": []}
        rate = 100 * sum(successes) / len(successes)
        group = {"avg_sum_reward": 1.0, "avg_max_reward": 1.0, "pc_success": rate, "n_episodes": len(successes), "video_paths": []}
        value = {"per_task": [{"task_group": "pusht", "task_id": 0, "metrics": metrics}], "per_group": {"pusht": group}, "overall": group | {"eval_s": 1.0, "eval_ep_s": 0.1}}
        return f"out.mkdir(parents=True); (out / 'eval_info.json').write_text({json.dumps(value)!r})"

    def test_the_policy_is_evaluated_in_the_dataset_s_simulator(self):
        code, checks = self.climb(self.results([True] * 30 + [False] * 10), "--eval.n_episodes=40", "--policy.n_action_steps=4", "--seed=7")
        self.assertEqual(code, 0, checks)
        self.assertEqual(checks["evaluation.present"]["status"], "pass", checks["evaluation.present"])
        self.assertEqual(checks["evaluation.success-interval"]["measured"]["successes"], 30)
        words = json.loads((self.root / "argv").read_text())
        self.assertLessEqual({f"--policy.path={self.root / 'policy'}", "--env.type=pusht", "--eval.n_episodes=40", "--policy.device=cpu", "--seed=7"}, set(words))
        self.assertNotIn("--policy.n_action_steps=4", words, "what is for lerobot-train stays with lerobot-train")

    def test_what_costs_a_process_is_asked_once_a_climb(self):
        python = self.root / "env/bin/python"
        python.unlink()
        python.write_text(f'#!/bin/sh\nprintf "%s " "$@" | tr "\\n" " " >> {self.root}/calls; echo >> {self.root}/calls\nexec {sys.executable} "$@"\n')
        python.chmod(0o755)
        self.climb(self.results([True] * 30 + [False] * 10), "--eval.n_episodes=40", rung=None)
        versions = [line for line in (self.root / "calls").read_text().splitlines() if "torchcodec" in line and "gym-pusht" in line]
        self.assertEqual(len(versions), 1, versions)

    def test_an_evaluation_that_dies_names_the_cause_of_its_own_words(self):
        code, checks = self.climb("sys.exit('ImportError: Cannot initialize a EGL device display. This likely means that your EGL driver does not support the PLATFORM_DEVICE extension.')", rung="episode")
        self.assertEqual(code, 1)
        present = checks["episode.present"]
        self.assertEqual((present["status"], present["causes"][0].split(".")[0]), ("fail", "render"), present)
        self.assertIn("EGL", present["evidence"][0]["text"])

    def test_without_a_simulator_or_a_policy_it_says_what_to_give(self):
        (self.dataset / "meta/info.json").write_text(json.dumps({"features": {"action": {"shape": [5]}}}))
        code, checks = self.climb(self.results([True]), rung="episode")
        self.assertEqual(code, 3)
        self.assertIn("--env.type", checks["episode.present"]["summary"])


if __name__ == "__main__":
    unittest.main()
