"""The program is one file that runs on other x86-64 Linux systems with glibc 2.35 or newer."""
import re, subprocess, unittest

from harness import BINARY, run

ALLOWED = {"libc.so.6", "libm.so.6", "ld-linux-x86-64.so.2", "libpthread.so.0", "libdl.so.2", "librt.so.1"}


def readelf(*arguments):
    return subprocess.run(["readelf", *arguments, BINARY], capture_output=True, text=True, check=True).stdout


class Binary(unittest.TestCase):
    def test_it_needs_nothing_but_the_c_library(self):
        needed = set(re.findall(r"\(NEEDED\).*\[(.+)\]", readelf("-d")))
        self.assertLessEqual(needed, ALLOWED)

    def test_it_needs_no_glibc_newer_than_2_35(self):
        versions = {tuple(map(int, v.split("."))) for v in re.findall(r"GLIBC_(\d+(?:\.\d+)+)", readelf("-V"))}
        self.assertTrue(versions)
        self.assertLessEqual(max(versions), (2, 35), f"symbol versions {sorted(versions)}")

    def test_help_and_version(self):
        process = run("--help")
        self.assertEqual(process.returncode, 0)
        for command in ("check", "explain", "snapshot", "diff", "code", "data", "kb", "runs", "show"):
            self.assertIn(command, process.stdout)
        self.assertEqual(run("--version").stdout.split()[0], "firstfault")
        self.assertEqual(run().returncode, 2)


if __name__ == "__main__":
    unittest.main()
