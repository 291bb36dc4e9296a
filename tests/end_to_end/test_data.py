"""firstfault data check: silent on clean datasets, and every seeded fault is found and named."""
import json, math, os, pathlib, random, shutil, tempfile, unittest

import datasets
import harness
from data_faults import IMAGE21, IMAGE3, KINDS, LONG, PICTURE_KINDS, V21, V3, VALUE_KINDS, VIDEO21, VIDEO3, edit_all, edit_episodes, edit_info, edit_json
from datasets import PICTURE, RECORDED, make, run, write_rows
from harness import SHARED, document

PLACES = int(os.environ.get("FIRSTFAULT_PLACES", 2))  # of each seeded fault; 20 in the long test


def named(value):
    return {cause for c in value["checks"] if c["status"] in ("fail", "warn") for cause in c["causes"]}


@unittest.skipIf(datasets.pa is None, "pyarrow (the wheel of ./dev setup) is not there for this Python")
class Data(unittest.TestCase):
    def setUp(self):
        self.directory = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.directory)

    def test_clean_datasets_have_no_fault_and_no_warning(self):
        for number, kind in enumerate((LONG, V3, V21, VIDEO3, VIDEO21, IMAGE3, IMAGE21, {"version": "v2.1", "image": True, "lengths": (1, 130)}, {"version": "v3.0", "lengths": (1, 2, 40)}, {"version": "v3.0", "files": 4}, *({"version": "v3.0", "lengths": [9] * 8, "seed": seed} for seed in range(1, 9)))):
            root = self.directory / str(number)
            make(root, **kind)
            process = run("data", "check", root, "--json")
            self.assertEqual(process.returncode, 0, process.stdout + process.stderr)
            self.assertEqual(named(document(process)), set(), kind)

    def test_links_are_followed_as_lerobot_does(self):
        root = self.directory / "a"
        make(root, **IMAGE3)
        shutil.move(root / "data/chunk-000", self.directory / "chunk")
        (root / "data/chunk-000").symlink_to(self.directory / "chunk")
        (root / "data/up").symlink_to(root / "data")  # no second copy of the rows
        shutil.move(root / "meta/episodes/chunk-000/file-000.parquet", self.directory / "blob")
        (root / "meta/episodes/chunk-000/file-000.parquet").symlink_to(self.directory / "blob")
        (self.directory / "b").symlink_to(root)
        for path in (root, self.directory / "b"):
            process = run("data", "check", path, "--json")
            self.assertEqual((process.returncode, named(document(process))), (0, set()))

    def test_every_seeded_fault_is_found_and_named(self):
        clean = {}
        for name, (kind, mutate, cause) in {**KINDS, **VALUE_KINDS, **PICTURE_KINDS}.items():
            key = json.dumps(kind)
            if key not in clean:
                clean[key] = self.directory / f"clean{len(clean)}"
                make(clean[key], **kind)
            for place in range(PLACES):
                with self.subTest(name, place=place):
                    root = self.directory / "broken"
                    shutil.copytree(clean[key], root)
                    try:
                        mutate(root, random.Random(f"{name} {place}"))
                        process = run("data", "check", root, "--json")
                        self.assertEqual(process.stderr, "")
                        self.assertIn(process.returncode, (0, 1))
                        self.assertIn(cause, named(document(process)))
                    finally:
                        shutil.rmtree(root)

    def test_what_is_wrong_with_the_statistics_of_pictures_is_said(self):
        check = lambda root: next(c for c in document(run("data", "check", root, "--json"))["checks"] if c["id"] == "dataset.picture-statistics")
        make(self.directory / "clean", **IMAGE3)
        found = check(self.directory / "clean")
        self.assertEqual((found["status"], found["measured"]["pictures"]), ("pass", 20 + 15 + 30), found)

        def after(name, change):
            root = pathlib.Path(shutil.copytree(self.directory / "clean", self.directory / name))
            change(root, random.Random(1))
            found = check(root)
            self.assertEqual(found["status"], "warn", found)
            return found["summary"]
        self.assertIn("red and blue are exchanged", after("turned", PICTURE_KINDS["red and blue exchanged"][1]))
        self.assertIn("count to 255", after("255", PICTURE_KINDS["pictures counted to 255"][1]))

        def squares(root, rng):
            frames = datasets.pictures(datasets.rows((20, 25, 15, 30)), 0)
            rows = datasets.rows((20, 25, 15, 30))
            edit_episodes(root, lambda entries: [e.update({f"stats/{PICTURE}/std": datasets.picture_stats([f for f, r in zip(frames, rows) if r["episode_index"] == e["episode_index"]], True)["std"]}) for e in entries])
            edit_json(root / "meta/stats.json", lambda s: s.pop(PICTURE))
        self.assertIn("lerobot 0.4 squares 8-bit values in 8 bits", after("squares", squares))
        # A kind of picture that is not decoded here is said, and no fault.
        root = self.directory / "webp"
        shutil.copytree(self.directory / "clean", root)
        edit_all(root, lambda rows: [r[PICTURE].update(bytes=b"RIFF\x24\0\0\0WEBPVP8 some") for r in rows])
        found = check(root)
        self.assertEqual(found["status"], "skip", found)
        self.assertIn("neither PNG nor JPEG", found["summary"])

    def test_a_camera_that_shows_nothing_is_warned_of(self):
        size = datasets.WIDTH * datasets.HEIGHT * 3
        for name, picture, words in (("black", [0] * size, "are black"), ("frozen", [90, 120, 30] * (size // 3), "one picture throughout")):
            with self.subTest(name):
                root = self.directory / name
                make(root, **IMAGE3)
                for path in sorted((root / "data").rglob("*.parquet")):
                    rows = datasets.pq.read_table(path).to_pylist()
                    for row in rows:
                        row[PICTURE]["bytes"] = datasets.png(picture)
                    write_rows(path, rows)
                found = next(c for c in document(run("data", "check", root, "--json"))["checks"] if c["id"] == "dataset.images")
                self.assertEqual((found["status"], found["causes"]), ("warn", ["closed-loop.observation-mismatch"]), found)
                self.assertIn(words, found["summary"])

    def test_a_picture_that_is_none_is_named_with_its_row(self):
        make(self.directory / "clean", **IMAGE3)
        def after(name, change):
            root = pathlib.Path(shutil.copytree(self.directory / "clean", self.directory / name))
            path = root / "data/chunk-000/file-001.parquet"
            rows = datasets.pq.read_table(path).to_pylist()
            change(rows[4][PICTURE])
            write_rows(path, rows)
            process = run("data", "check", root, "--json")
            self.assertEqual(process.returncode, 1, process.stdout)
            found = next(c for c in document(process)["checks"] if c["id"] == "dataset.images")
            self.assertEqual(found["measured"]["row"], 49)
            fix = run("data", "check", root, "--fix", "-o", self.directory / (name + "-fixed"), "--json")
            self.assertEqual((fix.returncode, [r["cause"] for r in document(fix)["refused"]]), (1, found["causes"]))
            return found["summary"]
        self.assertIn("row 49 PNG: it is cut off", after("cut", lambda cell: cell.update(bytes=cell["bytes"][:-7])))
        self.assertIn("is no picture", after("text", lambda cell: cell.update(bytes=b"404: Not Found")))
        self.assertIn("holds no bytes", after("empty", lambda cell: cell.update(bytes=None)))
        self.assertIn("has 8 x 5 pixels, but info.json gives observation.images.wrist 8 x 6", after("size", lambda cell: cell.update(bytes=datasets.png([1] * 8 * 5 * 3, height=5))))

    def test_odd_image_columns(self):
        def after(name, change, kind=IMAGE3):
            root = self.directory / name
            make(root, **kind)
            change(root)
            value = document(run("data", "check", root, "--json"))
            return {c["id"]: c for c in value["checks"]}

        def each_file(change):
            def edit(root):
                for path in sorted(root.rglob("data/*/*.parquet")):
                    t = datasets.pq.read_table(path)
                    datasets.pq.write_table(change(t), path)
            return edit
        column = lambda t, values: t.set_column(t.schema.get_field_index(PICTURE), PICTURE, values)
        clean = (lambda root: edit_info(lambda i: i["features"][PICTURE].update(shape=[3, 6, 8], names=["channels", "height", "width"]))(root, None),
                 each_file(lambda t: column(t, datasets.pa.array([c["bytes"] for c in t[PICTURE].to_pylist()], datasets.pa.binary()))))
        for number, change in enumerate(clean):
            found = after(f"clean{number}", change)
            self.assertEqual([c["status"] for c in (found["dataset.images"], found["dataset.picture-statistics"])], ["pass", "pass"], found["dataset.images"])
        found = after("none", each_file(lambda t: column(t, datasets.pa.array([None] * t.num_rows, t.schema.field(PICTURE).type))))
        self.assertEqual((found["dataset.images"]["status"], found["dataset.images"]["measured"]["findings"]), ("fail", 90))
        self.assertEqual(found["dataset.picture-statistics"]["status"], "skip")
        # A file without the column has no pictures that could contradict the statistics.
        def one(root):
            path = sorted(root.rglob("data/*/*.parquet"))[1]
            datasets.pq.write_table(datasets.pq.read_table(path).drop_columns([PICTURE]), path)
        found = after("one", one)
        self.assertEqual((found["dataset.schema"]["status"], found["dataset.picture-statistics"]["status"]), ("fail", "pass"))
        # Headers that promise more than their bytes can hold.
        large = bytearray(datasets.png([0] * 144))
        large[16:24] = (2**31 - 1).to_bytes(4, "big") * 2
        found = after("large", lambda root: edit_all(root, lambda rows: [r[PICTURE].update(bytes=bytes(large)) for r in rows]))
        self.assertIn("has 2147483647 x 2147483647 pixels", found["dataset.images"]["summary"])

    def test_pictures_stored_as_jpeg_are_decoded(self):
        jpeg = datasets.jpegs()
        root = self.directory / "a"
        make(root, **IMAGE3)
        data = datasets.rows((20, 25, 15, 30))
        frames = [jpeg[r["index"] % len(jpeg)] for r in data]
        edit_all(root, lambda rows: [r[PICTURE].update(bytes=frames[r["index"]][0]) for r in rows])
        stats = lambda own: datasets.picture_stats([frames[r["index"]][1] for r in own])
        edit_episodes(root, lambda entries: [e.update({f"stats/{PICTURE}/{k}": v for k, v in stats([r for r in data if r["episode_index"] == e["episode_index"]]).items()}) for e in entries])
        edit_json(root / "meta/stats.json", lambda s: s.update({PICTURE: stats(data)}))
        process = run("data", "check", root, "--json")
        self.assertEqual((process.returncode, named(document(process))), (0, set()), process.stdout)
        found = next(c for c in document(process)["checks"] if c["id"] == "dataset.picture-statistics")
        self.assertEqual((found["status"], found["measured"]["pictures"]), ("pass", 65), found)
        PICTURE_KINDS["red and blue exchanged"][1](root, random.Random(0))
        found = next(c for c in document(run("data", "check", root, "--json"))["checks"] if c["id"] == "dataset.picture-statistics")
        self.assertIn("red and blue are exchanged", found["summary"])

    def test_sums_in_float32_over_a_column_that_hardly_changes_are_no_fault(self):
        # What numpy's float32 gives (rows added one after another): lerobot 0.3 by numpy.std, 0.4 by the mean of squares less the mean's square.
        f32 = datasets.f32

        def added(values):
            total = 0.0
            for v in values:
                total = f32(total + f32(v))
            return f32(total / len(values))

        def old(values):
            mean = added(values)
            return mean, f32(math.sqrt(added([f32(f32(v - mean) * f32(v - mean)) for v in values])))

        def new(values):
            mean = added(values)
            return mean, math.sqrt(max(0.0, f32(added([f32(v * v) for v in values]) - f32(mean * mean))))

        rng = random.Random(5)
        for number, (noise, recorder) in enumerate(((0, old), (0, new), (0.002, old), (0.002, new), (0.01, new))):
            root = self.directory / str(number)
            make(root, lengths=[1500, 700], files=1)
            path = root / "data/chunk-000/file-000.parquet"
            rows = datasets.pq.read_table(path).to_pylist()
            for r in rows:
                r["observation.state"][1] = f32(87.3 + rng.gauss(0, noise))
            write_rows(path, rows)
            off = []

            def state(stats, own):
                mean, std = recorder([r["observation.state"][1] for r in own])
                true = datasets.moments([r["observation.state"] for r in own])
                off.append(max(abs(mean - true["mean"][1]), abs(std - true["std"][1])))
                for key, value in {**true, "mean": [*true["mean"][:1], mean, *true["mean"][2:]], "std": [*true["std"][:1], std, *true["std"][2:]]}.items():
                    stats(key, value)

            def episodes(entries):
                for e in entries:
                    state(lambda key, value: e.__setitem__(f"stats/observation.state/{key}", value), [r for r in rows if r["episode_index"] == e["episode_index"]])
            edit_episodes(root, episodes)
            edit_json(root / "meta/stats.json", lambda s: state(s["observation.state"].__setitem__, rows))
            self.assertGreater(max(off), 1e-5 * 87.3 if recorder is new else 1e-6)  # else it would show nothing
            process = run("data", "check", root, "--json")
            found = next(c for c in document(process)["checks"] if c["id"] == "dataset.statistics")
            self.assertEqual(process.returncode, 0, found)
            if noise and recorder is new:
                self.assertEqual(found["status"], "warn", found)
                self.assertIn("rounding of float32 sums", found["summary"])
            else:
                self.assertEqual(found["status"], "pass", found)
            # A wrong one is still wrong.
            edit_json(root / "meta/stats.json", lambda s: s["observation.state"]["mean"].__setitem__(1, 88.0))
            self.assertEqual(run("data", "check", root, "--json").returncode, 1)

    def test_the_first_wrong_chunk_is_said_exactly(self):
        root = self.directory / "d"
        data = make(root)
        path = root / "data/chunk-000/file-001.parquet"
        own = datasets.pq.read_table(path).to_pylist()
        for r in own:
            r["index"] -= 5
        write_rows(path, own)
        first = len(data) - len(own)
        value = document(run("data", "check", root, "--json"))
        check = next(c for c in value["checks"] if c["id"] == "dataset.global-index")
        self.assertEqual(check["measured"]["first_row"], first)
        self.assertIn(f"the action chunk of row {first} starts 5 rows earlier, at row {first - 5}", check["summary"])

    def test_what_is_no_dataset_is_refused_with_a_reason(self):
        for path in (self.directory, __file__):
            process = run("data", "check", path)
            self.assertEqual(process.returncode, 1, process.stdout)
            self.assertIn(str(path), process.stdout)
        process = run("data", "check", self.directory / "nothing")
        self.assertEqual(process.returncode, 2, process.stdout)
        self.assertIn("no such file or directory", process.stderr)

    def test_a_guess_is_said_as_a_guess(self):
        make(self.directory / "a", **LONG)
        summary = lambda root: next(c["summary"] for c in document(run("data", "check", root, "--json"))["checks"] if c["id"] == "dataset.values")
        self.assertIn("actions are absolute positions (a guess", summary(self.directory / "a"))
        make(self.directory / "b", **LONG)
        edit_all(self.directory / "b", lambda rows: [r.update(action=[a - s for a, s in zip(r["action"], r["observation.state"])]) for r in rows])
        run("data", "check", self.directory / "b", "--fix", "-o", self.directory / "c")
        self.assertIn("actions are differences (a guess", summary(self.directory / "c"))

    def test_many_rows_with_an_uneven_list_or_a_missing_value_far_inside(self):
        # More rows than one batch: the fast reader has to hand over to the general one in the middle.
        root = self.directory / "a"
        make(root, lengths=[9000, 9000], files=1)
        path = root / "data/chunk-000/file-000.parquet"
        own = datasets.pq.read_table(path).to_pylist()
        check = lambda name: next(c for c in document(run("data", "check", root, "--json"))["checks"] if c["id"] == name)
        self.assertEqual(named(document(run("data", "check", root, "--json"))), set())
        whole, own[17000]["action"] = own[17000]["action"], own[17000]["action"] + [0.0]
        write_rows(path, own)
        self.assertIn("action has 5 values in row 17000, but info.json gives it 4", check("dataset.schema")["summary"])
        own[17000]["action"] = whole[:3] + [None]
        write_rows(path, own)
        self.assertIn("action has 1 missing value; the first is in row 17000", check("dataset.finite")["summary"])
        own[17000]["action"] = whole
        own[17500]["timestamp"] = None
        write_rows(path, own)
        self.assertIn("timestamp has 1 missing value; the first is in row 17500", check("dataset.finite")["summary"])

    def test_a_jump_at_the_border_of_a_batch_is_seen(self):
        root = self.directory / "a"
        make(root, lengths=[9000], files=1)
        path = root / "data/chunk-000/file-000.parquet"
        rows = datasets.pq.read_table(path).to_pylist()
        span = max(r["action"][0] for r in rows) - min(r["action"][0] for r in rows)
        for row in (4095, 4096, 8191):
            before = rows[row]["action"]
            rows[row]["action"] = [before[0] + 3 * span, *before[1:]]
            write_rows(path, rows)
            found = next(c for c in document(run("data", "check", root, "--json"))["checks"] if c["id"] == "dataset.motion")
            self.assertEqual(found["status"], "warn", row)
            self.assertIn(str(row), json.dumps(found), row)
            rows[row]["action"] = before

    def test_joint_limits_of_a_robot(self):
        make(self.directory / "a", **LONG)
        joint = lambda name, low, high: f'<joint name="{name}" type="revolute"><limit lower="{low}" upper="{high}"/></joint>'
        urdf = self.directory / "arm.urdf"
        urdf.write_text("<robot>" + joint("shoulder", -20, 20) + joint("elbow", -20, 20) + joint("wrist", -20, 20) + "</robot>")
        check = lambda: next(c for c in document(run("data", "check", self.directory / "a", "--urdf", urdf, "--json"))["checks"] if c["id"] == "dataset.limits")
        self.assertEqual(check()["status"], "pass")
        urdf.write_text("<robot>" + joint("shoulder", -0.01, 0.01) + "</robot>")
        found = check()
        self.assertEqual((found["status"], found["causes"]), ("fail", ["data.bounds"]))
        self.assertIn("joint shoulder moves from -0.01 to 0.01 rad", found["summary"])
        urdf.write_text("no robot")
        self.assertEqual(check()["status"], "error")

    def test_without_the_parquet_library_it_says_how_to_get_it(self):
        make(self.directory / "d")
        process = run("data", "check", self.directory / "d", env={"FIRSTFAULT_PARQUET": "/nonexistent.so"})
        self.assertEqual(process.returncode, 3)
        self.assertIn("firstfault-parquet.so", process.stdout)

    def test_what_lerobot_records_has_no_fault(self):
        for name in ("lerobot-0.3.3", "lerobot-0.4.4", "lerobot-0.6.1"):
            process = run("data", "check", RECORDED / name, "--json")
            self.assertEqual(process.returncode, 0, process.stdout)
            noted = [c["summary"] for c in document(process)["checks"] if c["status"] == "warn"]
            # Up to 0.6.1 it averages the quantiles of episodes; 0.4 squares the pictures' values in 8 bits.
            said = ["averages the episodes' quantiles", "lerobot 0.4 squares 8-bit values in 8 bits"][:{"lerobot-0.3.3": 0, "lerobot-0.4.4": 2, "lerobot-0.6.1": 1}[name]]
            self.assertEqual(len(noted), len(said), noted)
            self.assertTrue(all(any(words in n for n in noted) for words in said), noted)

    @unittest.skipUnless(shutil.which("ffmpeg"), "no ffmpeg")
    def test_pictures_are_decoded_where_ffmpeg_is(self):
        check = lambda root: next(c for c in document(harness.run("data", "check", root, "--json"))["checks"] if c["id"] == "dataset.videos-decodable")
        for name in ("lerobot-0.3.3", "lerobot-0.4.4", "lerobot-0.6.1"):
            found = check(RECORDED / name)
            self.assertEqual(found["status"], "pass", found)
            self.assertTrue(found["measured"]["by"][0].startswith("ffmpeg "))
        # The pictures of the second half are overwritten; every box stays as it was.
        for name in ("lerobot-0.3.3", "lerobot-0.6.1"):
            root = pathlib.Path(shutil.copytree(RECORDED / name, self.directory / name))
            path = sorted(root.rglob("*.mp4"))[-1]
            raw = bytearray(path.read_bytes())
            at = raw.index(b"mdat")
            size = int.from_bytes(raw[at - 4:at], "big")
            raw[at + size // 2:at - 4 + size] = bytes(len(raw[at + size // 2:at - 4 + size]))
            path.write_bytes(raw)
            found = check(root)
            self.assertEqual((found["status"], found["causes"]), ("fail", ["data.video-undecodable"]), found)
            self.assertIn("frame of", found["summary"])

    @unittest.skipUnless((SHARED / "samples").exists(), "the samples are not there")
    def test_real_samples_show_their_real_faults_and_no_others(self):
        expected = {"v20_gr00t_demo": {"data.layout", "data.metadata-mismatch", "data.video-missing"}, "v21_lfs_pointers": {"data.lfs-pointer"}, "v30_so101_novideo": {"data.video-missing"}}
        for name, causes in expected.items():
            value = document(run("data", "check", SHARED / "samples" / name, "--json"))
            failing = {cause for c in value["checks"] if c["status"] == "fail" for cause in c["causes"]}
            self.assertEqual(failing, causes, name)


if __name__ == "__main__":
    unittest.main()
