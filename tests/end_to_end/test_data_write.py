"""firstfault data check --fix and data merge: what is repaired passes and holds the same values; what cannot be repaired is refused."""
import json, pathlib, random, shutil, tempfile, unittest

import datasets
from data_faults import KINDS, PICTURE_KINDS, edit_json, edit_rows
from datasets import CAMERA, FPS, PICTURE, RECORDED, TASKS, make, run, write_rows
from harness import document

# What a repair may not invent: values, rows, pictures, texts, a rate that is contradicted. Everything else of KINDS must be repaired.
REFUSED = {
    "a frame lost", "a frame lost, v2.1", "a frame lost, v2.0", "time of another rate", "time of another rate, v2.1", "NaN in an action", "infinity in a state", "NaN in an action, v2.1",
    "an unknown task", "a negative task", "a column missing", "data are a pointer", "metadata are a pointer", "metadata are a pointer, v2.1", "info.json is a pointer",
    "a truncated file", "a truncated file, v2.1", "an empty file", "an error page", "a data file missing", "a data file missing, v2.1", "info.json missing",
    "a future format", "an old format", "a video missing", "a video missing, v2.1", "a video is a pointer", "a video cut off", "no video at all",
    "a video one frame short", "a video one frame short, v2.1", "a video of another rate",
}


def table(root):
    """All rows in the loader's order."""
    return [r for p in sorted(pathlib.Path(root).rglob("data/*/*.parquet")) for r in datasets.pq.read_table(p).to_pylist()]


def values(rows):
    return [(r["observation.state"], r["action"]) for r in rows]


def episode_rows(root):
    return datasets.pq.read_table(next(pathlib.Path(root).glob("meta/episodes/*/*.parquet"))).to_pylist()


def task_texts(root):
    root = pathlib.Path(root)
    if (root / "meta/tasks.parquet").exists():
        t = {r["task_index"]: r["task"] for r in datasets.pq.read_table(root / "meta/tasks.parquet").to_pylist()}
    else:
        t = {r["task_index"]: r["task"] for r in map(json.loads, (root / "meta/tasks.jsonl").read_text().splitlines())}
    return [t[r["task_index"]] for r in table(root)]


@unittest.skipIf(datasets.pa is None, "pyarrow (the wheel of ./dev setup) is not there for this Python")
class Write(unittest.TestCase):
    def setUp(self):
        self.directory = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.directory)

    def passes(self, root):
        process = run("data", "check", root, "--json")
        value = document(process)
        self.assertEqual(process.returncode, 0, process.stdout)
        self.assertEqual({c["summary"] for c in value["checks"] if c["status"] in ("warn", "fail")}, set())

    def test_every_seeded_fault_is_repaired_or_refused_with_its_cause(self):
        clean, rows = {}, {}
        for name, (kind, mutate, cause) in KINDS.items():
            key = json.dumps(kind)
            if key not in clean:
                clean[key] = self.directory / f"clean{len(clean)}"
                rows[key] = make(clean[key], **kind)
            with self.subTest(name):
                root, out = self.directory / "broken", self.directory / "repaired"
                shutil.copytree(clean[key], root)
                try:
                    mutate(root, random.Random(name))
                    before = {p: p.read_bytes() for p in root.rglob("*") if p.is_file()}
                    process = run("data", "check", root, "--fix", "-o", out, "--json")
                    value = document(process)
                    self.assertEqual({p: p.read_bytes() for p in root.rglob("*") if p.is_file()}, before, "the source was changed")
                    if name in REFUSED:
                        self.assertEqual((process.returncode, value["status"]), (1, "refused"), value)
                        self.assertFalse(out.exists())
                        self.assertEqual(list(self.directory.glob(".*")), [])
                        if (root / "meta/info.json").exists() and "format" not in name and "info.json" not in name:
                            self.assertIn(cause, {r["cause"] for r in value["refused"]}, value)
                    else:
                        self.assertEqual((process.returncode, value["status"]), (0, "written"), value)
                        self.assertGreater(len(value["changes"]), 0)
                        self.passes(out)
                        self.assertEqual(values(table(out)), [(list(map(datasets.f32, r["observation.state"])), list(map(datasets.f32, r["action"]))) for r in rows[key]])
                        self.assertEqual(task_texts(out), [TASKS[r["task_index"]] for r in rows[key]])
                finally:
                    shutil.rmtree(root)
                    shutil.rmtree(out, ignore_errors=True)

    def test_a_rate_that_is_said_and_episodes_that_may_go(self):
        root, out = self.directory / "a", self.directory / "b"
        make(root)
        for path in (root / "data").rglob("*.parquet"):
            own = datasets.pq.read_table(path).to_pylist()
            for r in own:
                r["timestamp"] = r["frame_index"] / 25
            write_rows(path, own)
        self.assertEqual(run("data", "check", root, "--fix", "-o", out).returncode, 1)
        process = run("data", "check", root, "--fix", "-o", out, "--fps", 25)
        self.assertEqual(process.returncode, 0, process.stdout + process.stderr)
        self.assertEqual(json.loads((out / "meta/info.json").read_text())["fps"], 25)
        self.passes(out)
        shutil.rmtree(out)
        edit_rows(root, random.Random(3), lambda d: d.pop(8))  # a frame lost
        process = run("data", "check", root, "--fix", "-o", out, "--fps", 25, "--drop-episodes", "--json")
        self.assertEqual(process.returncode, 0, process.stdout)
        self.assertEqual(document(process)["episodes"], 3)
        self.passes(out)

    def test_parts_that_were_concatenated_without_numbering_are_separated(self):
        root, out = self.directory / "a", self.directory / "b"
        data = make(root)
        path = root / "data/chunk-000/file-001.parquet"
        own = datasets.pq.read_table(path).to_pylist()
        for r in own:
            r["episode_index"] -= 2
            r["index"] -= 45
        write_rows(path, own)
        process = run("data", "check", root, "--fix", "-o", out, "--json")
        self.assertEqual(process.returncode, 0, process.stdout)
        self.assertIn("episodes numbered anew: their numbers started again", document(process)["changes"])
        self.passes(out)
        self.assertEqual([r["episode_index"] for r in table(out)], [r["episode_index"] for r in data])

    def test_nothing_is_written_over_or_into_the_source(self):
        root = self.directory / "a"
        make(root)
        for out in (root, root / "inside", self.directory):
            process = run("data", "check", root, "--fix", "-o", out)
            self.assertEqual(process.returncode, 2, process.stderr)
        self.assertEqual(run("data", "check", root, "--fix").returncode, 2)
        self.assertEqual(run("data", "check", self.directory / "none", "--fix", "-o", self.directory / "b").returncode, 2)

    def test_merge(self):
        for version in ("v3.0", "v2.1"):
            with self.subTest(version):
                base = self.directory / version
                a = make(base / "a", version=version, lengths=(20, 25, 15), video=True)
                b = make(base / "b", version=version, lengths=(12, 18), video=True, seed=7)
                # The second one knows its tasks in the other order.
                if version == "v3.0":
                    datasets.pq.write_table(datasets.pa.table({"task_index": datasets.pa.array([0, 1], datasets.pa.int64()), "task": TASKS[::-1]}), base / "b/meta/tasks.parquet")
                    path = base / "b/meta/episodes/chunk-000/file-000.parquet"
                    entries = datasets.pq.read_table(path).to_pylist()
                    for e in entries:
                        e["tasks"] = [TASKS[1 - e["episode_index"] % 2]]
                    datasets.pq.write_table(datasets.episodes_table(entries), path)
                else:
                    (base / "b/meta/tasks.jsonl").write_text("".join(json.dumps({"task_index": i, "task": t}) + "\n" for i, t in enumerate(TASKS[::-1])))
                    lines = [json.loads(l) for l in (base / "b/meta/episodes.jsonl").read_text().splitlines()]
                    (base / "b/meta/episodes.jsonl").write_text("".join(json.dumps({**l, "tasks": [TASKS[1 - l["episode_index"] % 2]]}) + "\n" for l in lines))
                out = base / "m"
                process = run("data", "merge", base / "a", base / "b", "-o", out, "--json")
                self.assertEqual(process.returncode, 0, process.stdout + process.stderr)
                value = document(process)
                self.assertEqual((value["episodes"], value["rows"], value["video_files"]), (5, 90, 2 if version == "v3.0" else 5))
                self.passes(out)
                rows = table(out)
                expected = [r | {"observation.state": list(map(datasets.f32, r["observation.state"])), "action": list(map(datasets.f32, r["action"]))} for r in a + b]
                self.assertEqual(values(rows), values(expected))
                self.assertEqual([r["index"] for r in rows], list(range(90)))
                self.assertEqual([r["episode_index"] for r in rows], [r["episode_index"] for r in a] + [r["episode_index"] + 3 for r in b])
                self.assertEqual(task_texts(out), [TASKS[r["task_index"]] for r in a] + [TASKS[1 - r["task_index"]] for r in b])
                self.assertEqual([r["timestamp"] for r in rows], [datasets.f32(r["timestamp"]) for r in a + b])
                if version == "v3.0":
                    stats = json.loads((out / "meta/stats.json").read_text())
                    own = datasets.stats(a + b)
                    for statistic in ("min", "max", "mean", "std", "q01", "q99"):
                        for x, y in zip(stats["action"][statistic], own["action"][statistic]):
                            self.assertAlmostEqual(x, y, places=6 if statistic in ("min", "max", "mean", "std") else 1)
                    self.assertEqual(stats["index"]["max"], [89])
                    e = episode_rows(out)
                    self.assertEqual([(x[f"videos/{CAMERA}/file_index"], round(x[f"videos/{CAMERA}/from_timestamp"] * FPS)) for x in e], [(0, 0), (0, 20), (0, 45), (1, 0), (1, 12)])
                    self.assertEqual([x["stats/index/min"] for x in e], [[0], [20], [45], [60], [72]])

    def test_statistics_of_pictures_in_parquet_are_made_anew(self):
        for name in ("mean of the pictures", "mean of the pictures, v2.1", "std of the pictures", "other pictures"):
            with self.subTest(name):
                kind, mutate, _ = PICTURE_KINDS[name]
                root, out = self.directory / name, self.directory / (name + " repaired")
                make(root, **kind)
                mutate(root, random.Random(1))
                self.assertEqual(run("data", "check", root, "--fix", "-o", out).returncode, 0)
                self.passes(out)
                self.assertEqual([r[PICTURE] for r in table(out)], [r[PICTURE] for r in table(root)])

    def test_images_arrays_and_their_statistics_survive_a_merge(self):
        for name in ("lerobot-0.3.3", "lerobot-0.4.4", "lerobot-0.6.1"):
            with self.subTest(name):
                a, out = RECORDED / name, self.directory / f"{name}-merged"
                b = self.directory / name
                shutil.copytree(a, b)
                process = run("data", "merge", a, b, "-o", out, "--json")
                self.assertEqual(process.returncode, 0, process.stdout + process.stderr)
                check = document(run("data", "check", out, "--json"))
                self.assertEqual({c["status"] for c in check["checks"]} & {"fail", "error"}, set())
                self.assertIn("the same actions and states as episode 0", json.dumps(check))  # the copy is noticed
                rows, own = table(out), table(a)
                for column in ("observation.images.wrist", "observation.grid", "next.done", "action"):
                    self.assertEqual([r[column] for r in rows], [r[column] for r in own] * 2, column)
                types = lambda root: [(f.name, f.type) for f in datasets.pq.read_schema(sorted(pathlib.Path(root).rglob("data/*/*.parquet"))[0])]
                self.assertEqual(types(out), types(a))
                camera = "observation.images.top"
                if name != "lerobot-0.3.3":
                    entries, before = episode_rows(out), episode_rows(a)
                    self.assertEqual([e[f"stats/{camera}/mean"] for e in entries], [e[f"stats/{camera}/mean"] for e in before] * 2)
                    self.assertEqual(json.loads((out / "meta/stats.json").read_text())[camera]["count"][0], 2 * json.loads((a / "meta/stats.json").read_text())[camera]["count"][0])
                else:
                    lines = lambda root: [json.loads(l)["stats"][camera] for l in (root / "meta/episodes_stats.jsonl").read_text().splitlines()]
                    self.assertEqual(lines(out), lines(a) * 2)

    @unittest.skipUnless(shutil.which("ffmpeg"), "no ffmpeg")
    def test_statistics_of_videos_are_made_anew_from_their_frames(self):
        import harness, subprocess
        camera = "observation.images.top"
        for name in ("lerobot-0.3.3", "lerobot-0.6.1"):
            with self.subTest(name):
                root, out = pathlib.Path(shutil.copytree(RECORDED / name, self.directory / name)), self.directory / f"{name}-fixed"
                v3 = name != "lerobot-0.3.3"
                if v3:
                    edit_json(root / "meta/stats.json", lambda s: s[camera].update(mean=[[[9.0]]] * 3))
                path = sorted((root / "data").rglob("*.parquet"))[0]
                rows_now = datasets.pq.read_table(path)
                datasets.pq.write_table(rows_now.take([0, 1, 2, 4, 3, *range(5, rows_now.num_rows)]), path)
                process = harness.run("data", "check", root, "--fix", "-o", out, "--json")
                self.assertEqual(process.returncode, 0, process.stdout + process.stderr)
                # Every frame, decoded here by ffmpeg again: 64x48 pixels of three bytes.
                pictures = b""
                for path in sorted(out.rglob("*.mp4")):
                    pictures += subprocess.run(["ffmpeg", "-v", "error", "-i", path, "-f", "rawvideo", "-pix_fmt", "rgb24", "-"], capture_output=True, check=True).stdout
                size = 64 * 48 * 3
                self.assertEqual(len(pictures), 18 * size)

                def expected(first, last):
                    own = [pictures[first * size:last * size][c::3] for c in range(3)]
                    mean = [sum(x) / len(x) / 255 for x in own]
                    return {"mean": mean, "min": [min(x) / 255 for x in own], "max": [max(x) / 255 for x in own],
                            "std": [(sum((v / 255 - m) ** 2 for v in x) / len(x)) ** 0.5 for x, m in zip(own, mean)], "count": [last - first]}

                def same(found, wanted):
                    for key, values in wanted.items():
                        flat = [v if key == "count" else v[0][0] for v in found[key]]
                        self.assertEqual(len(flat), len(values))
                        for a, b in zip(flat, values):
                            self.assertAlmostEqual(a, b, 9, key)
                if v3:
                    same(json.loads((out / "meta/stats.json").read_text())[camera], expected(0, 18))
                    for e, (first, last) in zip(episode_rows(out), ((0, 10), (10, 18))):
                        same({k: e[f"stats/{camera}/{k}"] for k in ("mean", "min", "max", "std", "count")}, expected(first, last))
                    kinds = lambda r: datasets.pq.read_schema(r / "meta/episodes/chunk-000/file-000.parquet").field(f"stats/{camera}/mean").type
                    self.assertEqual(kinds(out), kinds(root))
                else:
                    for line, (first, last) in zip((out / "meta/episodes_stats.jsonl").read_text().splitlines(), ((0, 10), (10, 18))):
                        same(json.loads(line)["stats"][camera], expected(first, last))
                # Without ffmpeg they are taken over, and that is said.
                process = run("data", "check", root, "--fix", "-o", self.directory / f"{name}-plain", "--json")
                self.assertEqual(process.returncode, 0)
                if v3:
                    self.assertIn(f"statistics of {camera} were taken over: there is no ffmpeg", process.stdout)
                    self.assertEqual(json.loads((self.directory / f"{name}-plain/meta/stats.json").read_text())[camera]["mean"], [[[9.0]]] * 3)

    def test_merge_refuses_what_does_not_fit_with_every_difference(self):
        make(self.directory / "a")
        make(self.directory / "b")
        edit_json(self.directory / "b/meta/info.json", lambda i: (i.update(robot_type="other"), i["features"]["action"].update(names=["a", "b", "c", "d"])))
        process = run("data", "merge", self.directory / "a", self.directory / "b", "-o", self.directory / "m", "--json")
        self.assertEqual(process.returncode, 1)
        reasons = " ".join(r["reason"] for r in document(process)["refused"])
        self.assertIn("robot_type differs: test in", reasons)
        self.assertIn("the names of action differs", reasons)
        self.assertFalse((self.directory / "m").exists())
        make(self.directory / "v21", version="v2.1")
        process = run("data", "merge", self.directory / "a", self.directory / "v21", "-o", self.directory / "m")
        self.assertEqual(process.returncode, 1)
        self.assertIn("the format differs: v3.0", process.stdout)

    def test_merge_refuses_a_source_that_is_at_fault(self):
        make(self.directory / "a")
        make(self.directory / "b")
        edit_rows(self.directory / "b", random.Random(0), lambda d: d.reverse())
        process = run("data", "merge", self.directory / "a", self.directory / "b", "-o", self.directory / "m", "--json")
        self.assertEqual(process.returncode, 1)
        self.assertEqual({r["cause"] for r in document(process)["refused"]} & {"data.row-order"}, {"data.row-order"})
        self.assertEqual(run("data", "merge", self.directory / "a", "-o", self.directory / "m").returncode, 2)
        self.assertEqual(run("data", "merge", self.directory / "a", self.directory / "a", "-o", self.directory / "m").returncode, 2)


if __name__ == "__main__":
    unittest.main()
