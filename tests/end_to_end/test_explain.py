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


BROKEN = {
    "signals/a.yaml": """
signals:
  - {id: mine.pump, title: The pump stopped, layer: hydraulics, severity: error, match: ['pump (?P<n>\\d+) stopped'], source: ours, examples: [pump 2 stopped], not: [pump 2 turns]}
  - {id: mine.valve, title: The valve is shut, layer: hardware, severity: error, match: ['valve (?P<n>\\d+) shut'], source: ours, examples: [valve two shut], not: [valve 2 shut]}
""",
    "causes/b.yaml": """
causes:
  - id: hardware.pump-broken
    title: The pump is broken
    explain: It does not turn.
    rules:
      - when: {signal: mine.pumps}
        score: 0.9
        because: it stands
      - when: {all: [{signal: mine.valve, where: {number: "= 2"}}, {fact: 'gpus[*].vram_total', is: "> 3"}]}
        score: 0.9
        because: it stands
    fix: [Replace it.]
    verify: [Look whether the pump turns again]
    source: ours
    examples: [{files: {log.txt: pump 2 stopped}}]
""",
}


class OwnKnowledge(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.root = pathlib.Path(self.folder.name)
        for name in ("signals", "causes"):
            (self.root / name).mkdir()

    def test_every_problem_is_reported(self):
        for name, text in BROKEN.items():
            (self.root / name).write_text(text)
        result = run("kb", "check", self.root, "--json")
        self.assertEqual(result.returncode, 1)
        value = document(result)
        problems = " | ".join(p["where"] + " " + p["what"] for p in value["problems"])
        for part in ("'hydraulics' is no layer", "no pattern matches the example", "matches the look-alike", "is no command",
                     "there is no signal 'mine.pumps'", "has no field 'number'", "there is no fact 'gpus[*].vram_total'"):
            self.assertIn(part, problems)
        self.assertEqual(len(value["problems"]), 7, problems)
        self.assertFalse(value["examples_judged"])
        self.assertIn("gpus[*].vram_total_bytes", " ".join(p["remedy"] for p in value["problems"]))

    def test_an_example_that_does_not_fit_is_reported_beside_other_problems(self):
        good = BROKEN["signals/a.yaml"].replace("hydraulics", "hardware").replace("valve two", "valve 7").replace("not: [valve 2 shut]", "not: [x]")
        (self.root / "signals/a.yaml").write_text(good)
        cause = BROKEN["causes/b.yaml"].replace("mine.pumps", "mine.pump").replace("number:", "n:").replace("vram_total", "vram_total_bytes")
        cause = cause.replace("Look whether the pump turns again", "pumpctl --status")
        (self.root / "causes/b.yaml").write_text(cause.replace("log.txt: pump 2", "log.txt: pump two"))
        (self.root / "causes/c.yaml").write_text("causes:\n  - {id: hardware.other, title: x}\n")
        result = run("kb", "check", self.root)
        self.assertIn("must come first for this evidence", result.stdout)
        self.assertIn("hardware.other: fix: is missing", result.stdout)
        (self.root / "causes/b.yaml").write_text(cause)
        (self.root / "causes/c.yaml").unlink()
        result = run("kb", "check", self.root)
        self.assertEqual((result.returncode, result.stdout), (0, "No problem in 2 signals and 1 cause: structure, references and examples hold.\n"))
        shown = run("kb", "show", "--kb", self.root, "hardware.pump-broken", env={"XDG_CACHE_HOME": str(self.root / "cache")})
        self.assertEqual(shown.returncode, 0, shown.stderr)
        self.assertIn("The pump is broken", shown.stdout)

    def test_the_example_of_the_documentation_holds(self):
        text = (ROOT / "docs/knowledge.md").read_text(encoding="utf-8")
        example = re.search(r"```yaml\n(signals:\n  - id: mine\..*?)```", text, re.S).group(1)
        (self.root / "mine.yaml").write_text(example)
        result = run("kb", "check", self.root)
        self.assertEqual((result.returncode, result.stderr), (0, ""), result.stdout)
        self.assertIn("1 signal and 1 cause", result.stdout)

    def test_a_directory_without_knowledge_is_an_error(self):
        result = run("kb", "check", self.root)
        self.assertEqual(result.returncode, 3)
        self.assertIn("holds no YAML file", result.stdout)
        log = self.root / "a.log"
        log.write_text("x\n")
        self.assertEqual(run("explain", "--kb", self.root / "signals", log).returncode, 3)
        (self.root / "causes/empty.yaml").write_text("causes: []\n")
        self.assertIn("neither signals nor causes", run("kb", "check", self.root).stdout)

    def test_an_unknown_component_has_no_borders(self):
        result = run("kb", "borders", "banana")
        self.assertEqual(result.returncode, 2)
        self.assertIn("banana", result.stderr)
        self.assertIn("PyTorch", result.stderr)


class NoText(unittest.TestCase):
    def test_what_says_nothing_is_an_error_and_not_health(self):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            (root / "empty.log").write_bytes(b"")
            (root / "blank.log").write_bytes(b"  \n\n")
            (root / "noise").write_bytes(bytes((i * 37 + i // 251) % 256 for i in range(5000)))
            (root / "program").write_bytes(pathlib.Path("/bin/sh").read_bytes())
            (root / "core").write_bytes(b"\x7fELF\x02\x01\x01" + bytes(9) + b"\x04\x00" + bytes(100))
            (root / "m.safetensors").write_bytes((2).to_bytes(8, "little") + b"{}" + bytes(64))
            (root / "nothing").mkdir()
            for name, words in (("empty.log", "is empty"), ("blank.log", "is empty"), ("noise", "binary data"), ("program", "firstfault code"),
                                ("core", "firstfault core"), ("m.safetensors", "firstfault model check"), ("nothing", "holds no file")):
                with self.subTest(name):
                    result = run("explain", root / name)
                    self.assertEqual(result.returncode, 3)
                    self.assertIn(words, result.stderr)
                    self.assertIn(str(root / name), result.stderr)
                    self.assertEqual(run("explain", "--json", root / name).returncode, 3)
            result = run("explain", "-", input="")
            self.assertEqual(result.returncode, 3)
            self.assertIn("standard input: is empty", result.stderr)
            for name in ("empty.log", "blank.log", "noise", "nothing"):
                self.assertEqual(run("code", root / name).returncode, 3, name)
            (root / "good.log").write_text("amdgpu 0000:03:00.0: amdgpu: GPU reset(2) failed\n")
            result = run("explain", "--json", root)
            self.assertEqual(result.returncode, 1)
            self.assertIn("is no text but", " ".join(document(result)["notes"]))
            self.assertEqual(run("diff", root / "noise", root / "empty.log").returncode, 3)

    def test_text_of_other_encodings_is_text(self):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            line = "amdgpu 0000:03:00.0: amdgpu: GPU reset(2) failed\n"
            for name, data in (("latin1", ("Gerät gestört äöü: " + line).encode("latin-1")), ("gbk", ("设备错误 " * 9 + line).encode("gbk")),
                               ("utf16", line.encode("utf-16")), ("nul", b"\0" * 600 + line.encode()), ("colour", ("\x1b[31m" + line + "\x1b[0m").encode())):
                (root / name).write_bytes(data)
                self.assertEqual(run("explain", root / name).returncode, 1, name)


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
