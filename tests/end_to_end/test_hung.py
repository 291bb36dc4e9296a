"""A node that hangs: a file of the kernel that never answers. In a mount namespace of its own, a FIFO that nobody writes to lies over
the file: opening it waits for ever, as on a driver that does not answer. What is asserted is outcome and words, no times."""
import json, os, pathlib, subprocess, tempfile, unittest

from harness import BINARY, document

HUNG = ["/proc/cmdline", "/sys/kernel/mm/transparent_hugepage/enabled", "/etc/os-release"]


def inside(script, *arguments, cwd):
    """Runs a shell script in a mount namespace of its own."""
    return subprocess.run(["unshare", "-Urm", "sh", "-c", script, "sh", *arguments], cwd=cwd, capture_output=True, text=True, timeout=120)


def captured(folder):
    return {str(p.relative_to(folder)) for p in (folder / "fs").rglob("*") if p.is_file()}


class Hung(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.at = pathlib.Path(self.folder.name)
        os.mkfifo(self.at / "fifo")
        try:
            tried = inside('mount --bind fifo /proc/cmdline', cwd=self.at)
        except FileNotFoundError:
            self.skipTest("unshare is not installed")
        if tried.returncode != 0:
            self.skipTest("mount namespaces are not allowed here: " + tried.stderr.strip())

    def test_a_file_that_never_answers_costs_that_file_alone(self):
        healthy = inside('exec "$1" snapshot -o healthy', BINARY, cwd=self.at)
        self.assertEqual(healthy.returncode, 0, healthy.stderr)
        before = captured(self.at / "healthy")
        for number, path in enumerate(p for p in HUNG if os.path.exists(p)):
            with self.subTest(path):
                out = self.at / f"hung{number}"
                process = inside('mount --bind fifo "$2" && exec "$1" snapshot -o "$3"', BINARY, path, str(out), cwd=self.at)
                self.assertEqual(process.returncode, 0, process.stderr)
                self.assertIn(f"{path}: did not answer in time and was left behind", process.stdout)
                manifest = json.loads((out / "manifest.json").read_text())
                self.assertEqual(manifest["errors"][path]["name"], "ETIMEDOUT")
                self.assertFalse((out / "fs" / path[1:]).exists())
                real = os.path.realpath(path)  # a link's target is the same file
                lost = {name for name in before - captured(out) if name not in ("fs" + path, "fs" + real)}
                self.assertEqual(lost, set(), "everything else is captured")

    def test_the_climb_judges_what_did_answer(self):
        process = inside('mount --bind fifo /proc/cmdline && exec "$1" check --json --rung device --runs runs', BINARY, cwd=self.at)
        self.assertIn(process.returncode, (0, 1), process.stderr)
        report = document(process)
        self.assertTrue([c for c in report["rungs"][0]["checks"] if c["status"] in ("pass", "fail")])
        manifest = json.loads((pathlib.Path(self.at, report["run"]) / "capture/manifest.json").read_text())
        self.assertEqual(manifest["errors"]["/proc/cmdline"]["name"], "ETIMEDOUT")


if __name__ == "__main__":
    unittest.main()
