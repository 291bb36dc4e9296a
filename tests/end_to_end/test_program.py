"""The program is one file that runs on other x86-64 Linux systems with glibc 2.35 or newer."""
import os, re, subprocess, tempfile, unittest

from harness import BINARY, document, run

ALLOWED = {"libc.so.6", "libm.so.6", "ld-linux-x86-64.so.2", "libpthread.so.0", "libdl.so.2", "librt.so.1"}


def readelf(*arguments):
    return subprocess.run(["readelf", *arguments, BINARY], capture_output=True, text=True, check=True).stdout


class Binary(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.runs = directory.name

    @unittest.skipIf("FIRSTFAULT_SANITIZED" in os.environ, "the sanitizers bring a library of their own")
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

    def test_with_json_an_error_is_one_document_too(self):
        for arguments, code in ((["explain", "/nonexistent"], 2), (["show", "/nonexistent"], 2), (["check", "--bogus"], 2), (["check", "--work-root", "/nonexistent"], 2), (["data", "check", ""], 2),
                                (["check", "--dataset", "/nonexistent"], 2), (["rollout", "check", "/nonexistent"], 2), (["diff", "/nonexistent", "/nonexistent"], 2),
                                (["kb", "check", "/nonexistent"], 2), (["ops", "run", "--native", "--device", "cpu", "--name", "nosuch"], 2)):
            process = run(*arguments, "--json", env={"FIRSTFAULT_RUNS": self.runs})
            self.assertEqual(process.returncode, code, arguments)
            value = document(process)
            self.assertEqual((value["schema"], value["exit_code"]), ("firstfault/error/1", code))

    @unittest.skipUnless(os.geteuid() == 0, "only root can become somebody who may not read")
    def test_what_may_not_be_read_is_no_clean_bill(self):
        os.chmod(self.runs, 0o755)
        hidden = self.runs + "/hidden"
        os.mkdir(hidden, 0o700)
        for arguments in (["explain", hidden], ["code", hidden]):
            try:
                process = subprocess.run([BINARY, *arguments], capture_output=True, text=True, user=65534, group=65534, extra_groups=[], cwd="/")
            except OSError as error:
                self.skipTest(f"nobody may not run {BINARY}: {error}")
            self.assertEqual(process.returncode, 3, arguments)
            self.assertIn("Permission denied", process.stderr)

    def test_lost_output_is_a_failure(self):
        for arguments in (["check", "--list"], ["--help"], ["--version"], ["check", "--help"], ["docs", "checks"], ["kb", "search", "kfd"], ["kb", "search", "kfd", "--json"],
                          ["runs"], ["isolate", "--list"], ["explain", "--json", "/dev/null"], ["snapshot", "-o", self.runs + "/c", "--json"],
                          ["train", "reference", "--steps", "2", "--episodes", "2"], ["ops", "run", "--native", "--plant", "help"]):
            with open("/dev/full", "w") as full:
                process = subprocess.run([BINARY, *arguments], stdout=full, stderr=subprocess.PIPE, env={**os.environ, "FIRSTFAULT_RUNS": self.runs})
            self.assertIn(process.returncode, (2, 3) if arguments[0] == "explain" else (3,), arguments)

    def test_a_hidden_command_is_not_offered(self):
        self.assertNotIn("docs", run("--help").stdout.split())
        self.assertNotIn("docs", run("dosc").stderr)

    def test_a_pipe_that_nobody_writes_does_not_hang(self):
        with tempfile.TemporaryDirectory() as directory:
            os.mkdir(directory + "/meta")
            os.mkfifo(directory + "/meta/info.json")
            for arguments in (["data", "check", directory], ["check", "--runs", directory + "/runs", "--from", directory + "/meta/info.json"],
                              ["train", "check", directory + "/meta/info.json"], ["ops", "compare", directory + "/meta/info.json", directory + "/meta/info.json"]):
                self.assertIn(run(*arguments, timeout=20).returncode, (1, 2, 3), arguments)


if __name__ == "__main__":
    unittest.main()
