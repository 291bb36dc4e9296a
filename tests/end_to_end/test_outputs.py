"""What stands under the name that -o gives stays, for every command that writes a result there, and the answer is one: wrong usage."""
import pathlib, tempfile, unittest

from harness import ROOT, run

SET = ROOT / "examples/dataset-shuffled"
FILES = {  # command, without -o NAME; the name's end
    "snapshot": (["snapshot"], ".tar.zst"),
    "pack": (["ops", "pack", "--steps", "snapshot", "--small"], ".tar.zst"),
    "fallback": (["ops", "fallback", "last"], ".py"),
    "encode": (["video", "encode", ROOT / "README.md"], ".mp4"),
    "fix": (["data", "check", SET, "--fix"], ""),
    "merge": (["data", "merge", SET, SET], ""),
}
DIRECTORIES = ("snapshot", "pack", "fallback", "fix", "merge")


class Outputs(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.at = pathlib.Path(folder.name)
        self.env = {"FIRSTFAULT_RUNS": str(self.at / "runs")}

    def test_a_file_that_exists_stays(self):
        for name, (command, end) in FILES.items():
            with self.subTest(name):
                out = self.at / (name + end)
                out.write_text("mine")
                process = run(*command, "-o", out, env=self.env)
                self.assertEqual(process.returncode, 2, process.stdout + process.stderr)
                self.assertIn("exists already", process.stderr)
                self.assertIn("-o takes a new" if end == "" else "--force", process.stderr)
                self.assertEqual(out.read_text(), "mine")

    def test_a_directory_that_holds_something_stays(self):
        for name in DIRECTORIES:
            with self.subTest(name):
                out = self.at / name
                out.mkdir()
                (out / "mine").write_text("mine")
                process = run(*FILES[name][0], "-o", out, env=self.env)
                self.assertEqual(process.returncode, 2, process.stdout + process.stderr)
                self.assertRegex(process.stderr, "exists already|is a directory")
                self.assertEqual([p.name for p in out.iterdir()], ["mine"])

    def test_force_replaces(self):
        for name in ("snapshot", "pack"):
            with self.subTest(name):
                command, end = FILES[name]
                out = self.at / (name + end)
                out.write_text("mine")
                process = run(*command, "-o", out, "--force", env=self.env)
                self.assertNotIn(process.returncode, (2, 3), process.stdout + process.stderr)
                self.assertNotEqual(out.read_bytes(), b"mine")


if __name__ == "__main__":
    unittest.main()
