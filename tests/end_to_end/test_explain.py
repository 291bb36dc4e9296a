"""firstfault explain and kb: every document against its schema, the cache of compiled knowledge, words that are no command."""
import json, os, pathlib, re, subprocess, tempfile, unittest

from harness import ROOT, document, run

INCIDENTS = sorted(p for p in (ROOT / "tests/incidents").iterdir() if (p / "expect.yaml").is_file())

OWN = """
signals:
  - id: mine.pump-stopped
    title: The cooling pump stopped
    layer: hardware
    severity: error
    match: ['pump (?P<number>\\d+) stopped turning']
    source: our own controller
    examples: ["pump 2 stopped turning"]
    not: ["pump 2 is turning"]
causes:
  - id: hardware.thermal
    rules:
      - name: The pump of the rack stopped
        when: {signal: mine.pump-stopped}
        score: 0.9
        because: The controller says so.
        fix: [Replace the pump.]
    covers: [mine.pump-stopped]
"""


class Documents(unittest.TestCase):
    def test_every_schema_named_in_the_source_has_a_file(self):
        kinds = set()
        for path in (ROOT / "src").rglob("*.cpp"):
            kinds |= set(re.findall(r'"schema",\s*"firstfault/([a-z-]+)/1"', path.read_text(encoding="utf-8")))
        self.assertGreater(len(kinds), 20)
        missing = sorted(k for k in kinds if not (ROOT / "docs/schema" / f"{k}.json").is_file())
        self.assertEqual(missing, [])
        for kind in kinds:
            schema = json.loads((ROOT / "docs/schema" / f"{kind}.json").read_text(encoding="utf-8"))
            self.assertEqual(schema["$id"], f"urn:firstfault:{kind}:1", "a relative $id breaks the $ref of validators")
            self.assertEqual(schema["properties"]["schema"]["const"], f"firstfault/{kind}/1")

    def test_explain_of_every_incident(self):
        self.assertGreater(len(INCIDENTS), 150)
        for incident in INCIDENTS:
            files = sorted(str(f) for f in incident.iterdir() if f.name != "expect.yaml")
            with self.subTest(incident.name):
                result = run("explain", "--json", "--why", *files)
                self.assertIn(result.returncode, (0, 1), result.stderr)
                value = document(result)
                harmful = [d for d in value["diagnoses"] if not d.get("benign")]
                self.assertEqual(result.returncode, 1 if harmful else 0)

    def test_a_file_name_reaches_the_terminal_without_its_control_characters(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "a \x1b[31mred\x1b]0;title\x07\n.log"
            path.write_text("amdgpu 0000:03:00.0: amdgpu: GPU reset(2) failed\nsomething odd: amdgpu error 77\n")
            for arguments in ([], ["--why"], ["--markdown"], ["--all"]):
                out = run("explain", path, *arguments).stdout
                self.assertNotIn("\x1b", out)
                self.assertNotIn("\x07", out)

    def test_kb(self):
        for arguments in (["show", "driver.init-failed"], ["show", "vm-fault.header"], ["search", "page", "fault"], ["borders"],
                          ["decode", "hip", "98"], ["decode", "mes", "MISC (WAIT_REG_MEM)"]):
            with self.subTest(" ".join(arguments)):
                result = run("kb", *arguments, "--json")
                self.assertEqual(result.returncode, 0, result.stderr)
                document(result)
        result = run("kb", "check", str(ROOT / "tests"), "--json")
        document(result)
        for arguments in (["check", "--list"], ["runs", "--runs", "/nonexistent/runs"]):
            document(run(*arguments, "--json"))

    def test_borders_are_in_order(self):
        value = document(run("kb", "borders", "--json"))
        number = lambda v: [int(x) for x in re.findall(r"\d+", str(v))]
        keys = [(b["component"].lower(), number(b["version"])) for b in value["borders"]]
        self.assertGreater(len(keys), 5)
        self.assertEqual(keys, sorted(keys))


class Words(unittest.TestCase):
    def test_an_unknown_command_is_named_with_the_nearest(self):
        for words, nearest in ((["explian"], "explain"), (["snapshto", "x"], "snapshot"), (["kb", "shwo", "x"], "show")):
            result = run(*words)
            self.assertEqual(result.returncode, 2)
            self.assertIn(f"'{words[-2] if len(words) == 3 else words[0]}'", result.stderr)
            self.assertIn(f"nearest is '{nearest}'", result.stderr)
        self.assertNotIn("nearest", run("qqqqqqqqqqqq").stderr)


class Pipes(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.pipe = pathlib.Path(self.folder.name) / "pipe"
        os.mkfifo(self.pipe)

    def test_a_named_pipe_without_writer_is_an_error_that_says_so(self):
        r = run("explain", str(self.pipe))
        self.assertEqual(r.returncode, 3, r.stdout)
        self.assertIn("waiting up to 10 seconds", r.stderr)
        self.assertIn("no program has opened this named pipe for writing within 10 seconds", r.stderr)

    def test_a_named_pipe_with_a_writer_is_read(self):
        line = "amdgpu 0000:03:00.0: amdgpu: GPU reset begin!\n"
        writer = subprocess.Popen(["sh", "-c", f"printf '{line}' > {self.pipe}"])
        self.addCleanup(writer.wait)
        d = json.loads(run("explain", "--json", str(self.pipe)).stdout)
        self.assertTrue(d["signals"])


class Settled(unittest.TestCase):
    def test_what_a_solved_note_quotes_is_not_likely(self):
        log = "RuntimeError: HIP error: invalid device function\n"
        with tempfile.TemporaryDirectory() as folder:
            note = pathlib.Path(folder) / "notes.md"
            note.write_text(f"# Last month\n\nWe saw\n\n    {log}\nSolved by installing the right wheel.\n")
            now = pathlib.Path(folder) / "run.log"
            now.write_text(log)
            confidence = lambda *files: {d["cause"]: d["confidence"] for d in document(run("explain", "--json", *files))["diagnoses"]}
            self.assertNotIn("likely", confidence(note).values())
            self.assertNotIn("confirmed", confidence(note).values())
            self.assertIn("likely", confidence(now).values())
            self.assertIn("likely", confidence(note, now).values())


class Cache(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.root = pathlib.Path(self.folder.name)
        (self.root / "kb").mkdir()
        (self.root / "kb/mine.yaml").write_text(OWN)
        (self.root / "rack.log").write_text("12:00:01 pump 3 stopped turning\n")

    def explain(self, cache):
        result = run("explain", "--kb", self.root / "kb", "--json", self.root / "rack.log", env={"XDG_CACHE_HOME": str(cache)})
        self.assertEqual(result.returncode, 1, result.stderr)
        self.assertEqual(document(result)["diagnoses"][0]["title"], "The pump of the rack stopped")
        return result.stdout

    def kept(self, cache):
        return sorted((cache / "firstfault").glob("kb-*.bin"))

    def test_is_written_read_and_replaced(self):
        cache = self.root / "cache"
        first = self.explain(cache)
        kept = self.kept(cache)
        self.assertEqual(len(kept), 1)
        stamp = kept[0].stat().st_mtime_ns
        self.assertEqual(self.explain(cache), first)
        self.assertEqual(kept[0].stat().st_mtime_ns, stamp, "the second run compiled again")
        for damage in (lambda b: b[: len(b) // 2], lambda b: b[:200] + bytes([b[200] ^ 1]) + b[201:], lambda b: b"", lambda b: os.urandom(4096)):
            kept[0].write_bytes(damage(kept[0].read_bytes()))
            self.assertEqual(self.explain(cache), first)
        (self.root / "kb/mine.yaml").write_text(OWN + "# another text\n")
        self.assertEqual(self.explain(cache), first)
        self.assertEqual(len(self.kept(cache)), 2)

    def test_somebody_elses_file_is_not_read(self):
        cache = self.root / "cache"
        first = self.explain(cache)
        (path,) = self.kept(cache)
        path.chmod(0o666)
        self.assertEqual(self.explain(cache), first)
        self.assertEqual(path.stat().st_mode & 0o777, 0o600, "it was written anew")

    def test_a_place_that_cannot_be_written_is_no_error(self):
        blocked = self.root / "file"
        blocked.write_text("")
        self.explain(blocked)  # a file where a directory is needed
        self.explain(pathlib.Path("/proc/nowhere"))


if __name__ == "__main__":
    unittest.main()
