"""firstfault data show: what a dataset holds, on the screen, as a document and as a Markdown report."""
import pathlib, shutil, tempfile, unittest

import datasets
from datasets import NAMES, RECORDED, TASKS, make, run
from harness import document


@unittest.skipIf(datasets.pa is None, "pyarrow (the wheel of ./dev setup) is not there for this Python")
class Show(unittest.TestCase):
    def setUp(self):
        self.directory = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.directory)
        self.root = self.directory / "set"
        self.rows = make(self.root, lengths=(20, 25, 15, 30), video=True)

    def test_the_document_says_what_is_in_it(self):
        value = document(run("data", "show", self.root, "--json"))
        self.assertEqual((value["episodes"], value["rows"], value["format"], value["fps"]), (4, 90, "v3.0", 30))
        self.assertEqual((value["lengths"]["min"], value["lengths"]["max"], sum(value["lengths"]["histogram"])), (15, 30, 4))
        self.assertEqual([(t["task"], t["episodes"], t["rows"]) for t in value["tasks"]], [(TASKS[0], 2, 35), (TASKS[1], 2, 55)])
        action = next(f for f in value["features"] if f["name"] == "action")
        own = datasets.stats(self.rows)["action"]
        for k, dimension in enumerate(action["dimensions"]):
            self.assertEqual(dimension["name"], NAMES[k])
            self.assertAlmostEqual(dimension["mean"], own["mean"][k], places=6)
            self.assertAlmostEqual(dimension["std"], own["std"][k], places=6)
            self.assertEqual(sum(dimension["histogram"]), 90)
        camera = next(f for f in value["features"] if f["dtype"] == "video")["video"]
        self.assertEqual((camera["files"], camera["frames"], camera["codec"], camera["width"]), (1, 90, "h264", 64))
        self.assertEqual([(e["episode"], e["rows"]) for e in value["episode_list"]], [(0, 20), (1, 25), (2, 15), (3, 30)])

    def test_the_motion_of_a_short_episode_has_a_value_for_every_step(self):
        make(self.directory / "short", lengths=(10, 10))
        value = document(run("data", "show", self.directory / "short", "--json"))
        for e in value["episode_list"]:
            self.assertEqual(len(e["motion"]), 9)
            self.assertNotIn(None, e["motion"])
        self.assertIn("every episode has 10 rows", run("data", "show", self.directory / "short").stdout)
        make(self.directory / "one", lengths=(1, 5))
        self.assertEqual(run("data", "show", self.directory / "one").returncode, 0)

    def test_one_episode_as_curves(self):
        value = document(run("data", "show", self.root, "--episode", 3, "--json"))
        self.assertEqual(value["episode"]["episode"], 3)
        state = next(f for f in value["episode"]["features"] if f["name"] == "observation.state")
        own = [r["observation.state"][1] for r in self.rows if r["episode_index"] == 3]
        self.assertEqual(len(state["dimensions"][1]["curve"]), 30)  # shorter than the curve: one point a row
        for x, y in zip(state["dimensions"][1]["curve"], own):
            self.assertAlmostEqual(x, y, places=6)
        process = run("data", "show", self.root, "--episode", 4)
        self.assertEqual(process.returncode, 2)
        self.assertIn("has no episode 4", process.stderr)

    def test_the_screen_and_the_report_hold_the_same_tables(self):
        report = self.directory / "report.md"
        process = run("data", "show", self.root, "--markdown", report)
        self.assertEqual(process.returncode, 0, process.stderr)
        for text in ("shoulder.pos", TASKS[1], "observation.images.top", "4 episodes · 90 rows", "█"):
            self.assertIn(text, process.stdout)
            self.assertIn(text, report.read_text())
        self.assertIn("| feature | type |", report.read_text())
        self.assertNotIn("\x1b", process.stdout)

    def test_recorded_sets_and_what_is_none(self):
        for name in ("lerobot-0.3.3", "lerobot-0.4.4", "lerobot-0.6.1"):
            value = document(run("data", "show", RECORDED / name, "--episode", 0, "--json"))
            self.assertEqual((value["episodes"], value["rows"]), (2, 18))
            grid = next(f for f in value["features"] if f["name"] == "observation.grid")
            self.assertEqual((grid["shape"], len(grid["dimensions"])), ([2, 3], 6))
        self.assertEqual(run("data", "show", self.directory / "none").returncode, 2)
        self.assertEqual(run("data", "show", self.directory).returncode, 3)


if __name__ == "__main__":
    unittest.main()
