"""firstfault snapshot and firstfault diff, as a user runs them."""
import json, os, pathlib, tempfile, unittest

import harness


class Snapshot(unittest.TestCase):
    def setUp(self):
        self.directory = tempfile.TemporaryDirectory()
        self.addCleanup(self.directory.cleanup)
        self.here = pathlib.Path(self.directory.name)

    def test_writes_a_capture_and_says_what_it_took(self):
        target = self.here / "a"
        process = harness.run("snapshot", "-o", target, "--json", env={"HF_TOKEN": "hf_verysecretverysecret"})
        self.assertEqual(process.returncode, 0, process.stderr)
        document = harness.document(process)
        self.assertEqual(document["capture"], str(target))
        self.assertGreater(document["files"], 20)
        harness.validate(json.loads((target / "manifest.json").read_text()))
        self.assertTrue((target / "fs/proc/sys/kernel/osrelease").is_file())
        for path in target.rglob("*"):
            if path.is_file():
                self.assertNotIn(b"verysecret", path.read_bytes(), path)
        self.assertEqual(sorted(p.name for p in self.here.iterdir()), ["a"], "nothing beside it")

    def test_what_is_no_machine_is_not_compared(self):
        capture = self.here / "c.tar.zst"
        self.assertEqual(harness.run("snapshot", "-o", capture).returncode, 0)
        (self.here / "notes.txt").write_text("hello\n")
        (self.here / "noise").write_bytes(os.urandom(3000))
        (self.here / "empty").mkdir()
        for other in ("notes.txt", "noise", "empty"):
            for before, after in ((other, other), (capture, other), (other, capture)):
                process = harness.run("diff", before, after, "--json", cwd=self.here)
                self.assertEqual(process.returncode, 3, (before, after, process.stdout))
                self.assertIn(other, harness.document(process)["where"])

    def test_two_snapshots_differ_only_in_what_was_changed(self):
        one, two = self.here / "one.tar.zst", self.here / "two.tar.zst"
        self.assertEqual(harness.run("snapshot", "-o", one).returncode, 0)
        self.assertEqual(harness.run("snapshot", "-o", two, env={"HSA_OVERRIDE_GFX_VERSION": "10.3.0"}).returncode, 0)
        same = harness.run("diff", one, one, "--json")
        self.assertEqual(harness.document(same)["changes"], [])
        process = harness.run("diff", one, two, "--json")
        self.assertEqual(process.returncode, 0, process.stderr)
        document = harness.document(process)
        self.assertEqual([c["name"] for c in document["changes"] if c["group"] == "environment"], ["HSA_OVERRIDE_GFX_VERSION"])
        self.assertIn("HSA_OVERRIDE_GFX_VERSION: 10.3.0", harness.run("diff", one, two).stdout)

    def test_refuses_to_overwrite_and_names_the_place(self):
        (self.here / "precious").write_text("x")
        process = harness.run("snapshot", "-o", self.here)
        self.assertEqual(process.returncode, 2)
        self.assertIn(str(self.here), process.stderr)
        self.assertEqual(process.stdout, "")

    def test_an_archive_is_only_replaced_when_asked(self):
        target = self.here / "capture.tar.zst"
        target.write_text("precious")
        process = harness.run("snapshot", "-o", target)
        self.assertEqual(process.returncode, 2)
        self.assertIn("--force", process.stderr)
        self.assertEqual(target.read_text(), "precious")
        self.assertEqual(harness.run("snapshot", "-o", target, "--force").returncode, 0)
        self.assertEqual(harness.document(harness.run("diff", target, target, "--json"))["changes"], [])

    def test_standard_output_gets_the_archive_alone(self):
        import subprocess
        process = subprocess.run([harness.BINARY, "snapshot", "-o", "-"], capture_output=True, cwd=self.here, timeout=60)
        self.assertEqual(process.returncode, 0, process.stderr)
        (self.here / "piped.tar.zst").write_bytes(process.stdout)
        self.assertEqual(harness.document(harness.run("diff", self.here / "piped.tar.zst", self.here / "piped.tar.zst", "--json"))["changes"], [])
        self.assertEqual([p.name for p in self.here.iterdir()], ["piped.tar.zst"])

    def test_diff_says_which_file_is_missing(self):
        process = harness.run("diff", self.here / "none", self.here / "none")
        self.assertEqual(process.returncode, 2)
        self.assertIn("none", process.stderr)


if __name__ == "__main__":
    unittest.main()
