"""What may not or cannot be read is no fault of the thing judged: exit code 3, the file named, the reason, a remedy, and nothing else said.

One table over every command that takes a path. Each row is tried with the path itself, and with each file inside it, three times:
without rights, with a disk that gives an I/O error, and with a directory where a file belongs."""
import json, os, pathlib, re, shutil, stat, subprocess, sys, tempfile, unittest

import episodes, models
from harness import BINARY, ROOT, run, validate

ROOT_USER = os.geteuid() == 0
NOBODY = {"user": 65534, "group": 65534, "extra_groups": []} if ROOT_USER else {}
DATASET, LIBRARY = ROOT / "examples/dataset-shuffled", ROOT / "tests/elf/fixtures/library.so"
PLUGIN = pathlib.Path(BINARY).with_name("firstfault-parquet.so").exists()
NO_FILE = "/proc/self/mem"  # a regular file whose first byte gives EIO
# What would be a second, false sentence beside the true one.
FALSE = re.compile(r"no weights|missing|truncated|is empty|damaged|incomplete|is torn|holds no|no such file|does not exist|no JSON object|no regular file|nothing (?:was|is) wrong", re.I)
# Commands that read no path of the user's, or only start it.
WITHOUT_PATH = {"hang", "core enable", "kb borders", "kb decode", "kb show", "train watch", "train reference", "ops compile", "ops pack", "ops reduce", "render check", "stress", "docs", "isolate", "ops isolate", "ops isolate",
                "ops run", "code build", "nan"} - {"code build", "nan", "ops pack"}


def dataset(root):
    shutil.copytree(DATASET, root)
    return [p for p in root.rglob("*") if p.is_file() and p.parts[len(root.parts)] in ("meta", "data", "videos")]


def policy(root):
    models.policy(root)
    return [p for p in root.iterdir() if p.is_file()]


def checkpoint(root):
    models.policy(root / "checkpoints/000010/pretrained_model")
    models.training_state(root / "checkpoints/000010/training_state", 10)
    return [p for p in root.rglob("*") if p.is_file()]


def logs(root):
    root.mkdir()
    for n in (1, 2):
        (root / f"train{n}.log").write_text("".join(f'{{"step": {i}, "loss": {1 / i}}}\n' for i in range(1, 30)))
    return list(root.iterdir())


def results(root):
    root.mkdir()
    for n in (0, 1):
        (root / f"e{n}.jsonl").write_text(episodes.episode(n))
    (root / "eval_info.json").write_text(json.dumps({"per_episode": []}))
    (root / "notes.txt").write_text("nothing\n")
    return list(root.iterdir())


def knowledge(root):
    (root / "signals").mkdir(parents=True)
    (root / "signals/mine.yaml").write_text("signals: []\n")
    return [root / "signals/mine.yaml"]


def libraries(root):
    root.mkdir()
    shutil.copy(LIBRARY, root / "library.so")
    shutil.copy(LIBRARY, root / "other.so")
    return list(root.iterdir())


def capture(root):
    done = run("snapshot", "-o", root)
    assert done.returncode == 0, done.stderr
    return [root / "manifest.json"]


def a_run(root):
    done = run("check", "--from", ROOT / "examples/mi300x-render-group.tar.zst", "--runs", root.parent / "made", "--json")
    os.rename(json.loads(done.stdout)["run"], root)
    return [root / "report.json"]


def operators(root):
    done = run("ops", "run", "--native", "--device", "cpu", "--small", "--name", "memory.fill", "--repeat", "1", "--runs", root.parent / "made", "--json")
    os.rename(json.loads(done.stdout)["run"], root)
    return [root / "ops.json"]


def one(name, content=b"x"):
    def make(path):
        path.write_bytes(content.read_bytes() if isinstance(content, pathlib.Path) else content)
        return []
    make.suffix = name
    return make


def python(path):
    path.symlink_to(sys.executable)


HOST = ["--from", ROOT / "examples/rx7900xtx-healthy.tar.zst"]
PYTHON = "/usr/bin/python3" if os.path.exists("/usr/bin/python3") else sys.executable  # one that everybody may start
PY = ["--python", PYTHON]
# command, what makes the thing it is given (its path stands for None), and options of the row. The files that `make` returns are tried one by one.
TABLE = [
    (["check", "--from", None], capture), (["check", "--from", None], one("dmesg.txt", b"[ 1.0] amdgpu: x\n")), (["check", "--rung", "dataset", "--dataset", None], dataset),
    (["check", "--rung", "model", "--policy", None], policy), (["check", "--rung", "episode", "--results", None], results), (["check", *HOST, "--config", None], one("train.yaml", b"lr: 1\n")),
    (["check", *HOST, "--kb", None], knowledge), (["check", "--work-root", None], lambda p: p.mkdir()), (["check", "--python", None], lambda p: shutil.copy(PYTHON, p)),
    (["check", *HOST, "--parent", None], lambda p: a_run(p) and []), (["check", *HOST, "--again", None], a_run),
    (["snapshot", "-o", "{out}", "--work-root", None], lambda p: p.mkdir()), (["snapshot", "-o", "{out}", "--python", None], lambda p: shutil.copy(PYTHON, p)),
    (["code", None], one("x.so", LIBRARY)), (["code", None], libraries), (["code", None, "--kernels"], one("x.so", LIBRARY)), (["code", None, "--for", "gfx1100"], libraries),
    (["code", "build", None, "--target", "gfx1100"], one("x.hip")),
    (["libs", None], one("x.so", LIBRARY)), (["libs", "diff", None, LIBRARY], one("x.so", LIBRARY)), (["libs", "diff", LIBRARY, None], one("x.so", LIBRARY)), (["core", None], one("core.1")),
    (["explain", None], one("x.log")), (["explain", None], logs), (["diff", None, ROOT / "examples/rx7900xtx-healthy.tar.zst"], capture),
    (["diff", ROOT / "examples/rx7900xtx-healthy.tar.zst", None], capture),
    (["data", "check", None], dataset), (["data", "show", None], dataset), (["data", "check", None, "--fix", "-o", "{out}"], dataset), (["data", "merge", DATASET, None, "-o", "{out}"], dataset),
    (["data", "bench", None, *PY], dataset), (["data", "check", DATASET, "--urdf", None], one("robot.urdf", b"<robot name='r'/>")),
    (["model", "check", None], policy), (["model", "check", None], one("m.safetensors", models.safetensors({"w": models.f32(2)}))), (["model", "check", None], checkpoint),
    (["model", "load", None, *PY], policy), (["model", "diff", None, ROOT / "examples/small-policy"], policy), (["model", "diff", ROOT / "examples/small-policy", None], policy),
    (["model", "budget", None, "--gpu", "16GiB"], policy), (["model", "check", ROOT / "examples/small-policy", "--dataset", None], lambda p: [f for f in dataset(p) if f.parent.name == "meta"]),
    (["train", "check", None], logs), (["train", "check", None], one("x.log", b'{"step": 1, "loss": 1.0}\n')), (["train", "resume", None], checkpoint), (["train", "check", None], lambda p: logs(p) and checkpoint(p)),
    (["ops", "compare", None, None], operators), (["ops", "fallback", None], operators), (["show", None], a_run), (["show", None], operators), (["runs", "--runs", None], lambda p: p.mkdir()),
    (["rollout", "check", None], results), (["rollout", "compare", None, None], results), (["rollout", "check", None], one("e.jsonl", b"{}\n")),
    (["rollout", "check", "{episodes}", "--dataset", None], lambda p: [f for f in dataset(p) if f.name in ("info.json", "stats.json")]),
    (["video", "check", None], one("v.mp4")), (["video", "encode", None, "-o", "{out}"], one("v.mp4")), (["kb", "check", None], knowledge), (["kb", "search", "kfd", "--kb", None], knowledge),
    (["nan", None, *PY], one("s.py", b"pass\n")), (["ops", "pack", "--python", None, "-o", "{out}"], lambda p: shutil.copy(PYTHON, p)),
]


def leaves():
    """Every command that help names, as "data check"; hidden ones are for developers."""
    def names(text):
        part = re.split(r"^SUBCOMMANDS:|^Subcommands:", text, flags=re.M)
        return re.findall(r"^  ([a-z-]+)\s", part[1], re.M) if len(part) > 1 else []
    for name in names(run("--help").stdout):
        inner = names(run(name, "--help").stdout)
        yield from ([f"{name} {verb}" for verb in inner] + ([name] if name in ("code", "libs", "core") else []) if inner else [name])


class Unreadable(unittest.TestCase):
    def setUp(self):
        self.tmp = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(self.remove)
        os.chmod(self.tmp, 0o755)
        self.number = 0
        self.open = self.tmp / "open"
        self.open.mkdir(mode=0o777)
        os.chmod(self.open, 0o777)
        (self.open / "e.jsonl").write_text(episodes.episode(0))

    def remove(self):
        for path in self.tmp.rglob("*"):
            if path.is_dir() and not path.is_symlink():
                os.chmod(path, 0o755)
        shutil.rmtree(self.tmp, ignore_errors=True)

    def make(self, maker):
        self.number += 1
        folder = self.tmp / f"n{self.number}"
        folder.mkdir()
        path = folder / getattr(maker, "suffix", "thing")
        inner = maker(path) or []
        for one in [folder, *folder.rglob("*")]:
            if not one.is_symlink():
                os.chmod(one, 0o755 if one.is_dir() or one.stat().st_mode & stat.S_IXUSR else 0o644)
        return path, (inner if isinstance(inner, list) else [])

    def words(self, command, path):
        out = self.open / f"out{self.number}"
        return [str(path) if w is None else str(w).replace("{out}", str(out)).replace("{episodes}", str(self.open / "e.jsonl")) for w in command], out

    def run_as(self, arguments, who):
        env = {"PATH": "/usr/bin:/bin", "HOME": str(self.open), "FIRSTFAULT_RUNS": str(self.open / "runs"), "FIRSTFAULT_FFMPEG": "/nonexistent", "LC_ALL": "C"}
        try:
            return subprocess.run([BINARY, *arguments], capture_output=True, text=True, errors="replace", env=env, cwd=self.open, timeout=120, **who)
        except OSError as error:
            self.skipTest(f"nobody may not run {BINARY}: {error}")

    def skipped(self, command):
        return (not PLUGIN and "dataset" in " ".join(map(str, command))) or (not PLUGIN and command[0] == "data") or (command[0] == "train" and command[1] == "watch")

    def judge(self, command, path, hidden, reason, who):
        for json_wanted in (False, True):
            arguments, out = self.words(command, path)
            takes_json = command[:2] not in (["video", "encode"], ["ops", "fallback"], ["runs", "--runs"]) or command[0] == "runs"
            if json_wanted and not takes_json:
                continue
            process = self.run_as(arguments[:1] + arguments[1:] + (["--json"] if json_wanted else []), who)
            said = process.stdout + process.stderr
            where = f"{' '.join(arguments)} without {hidden}: exit {process.returncode}\n{said[:3000]}"
            self.assertEqual(process.returncode, 3, where)
            self.assertIn(reason, said, where)
            self.assertIn(hidden.name, said, where)
            if not json_wanted:
                spoken = said.replace("what is damaged or not read", "").replace("what is damaged or was not read", "")
                self.assertFalse(FALSE.search(spoken), f"{FALSE.search(spoken)} beside it: {where}")
            self.assertEqual(list(self.open.glob(f"out{self.number}*")), [], "nothing is written: " + where)
            if json_wanted:
                validate(json.loads(process.stdout))

    def test_every_command_that_takes_a_path_is_in_the_table(self):
        told = {" ".join(map(str, c[:2])) if c[0] in ("data", "model", "train", "ops", "rollout", "video", "kb", "libs", "code") and c[1] in
                ("check", "show", "merge", "bench", "load", "diff", "budget", "resume", "compare", "fallback", "pack", "encode", "search", "build") else c[0] for c, _ in TABLE}
        found = set(leaves())
        self.assertGreater(len(found), 35)
        self.assertEqual(found - told - WITHOUT_PATH, set())
        self.assertEqual((told | WITHOUT_PATH) - found - {"docs"}, set(), "names that are no command")

    def test_without_rights(self):
        for command, maker in TABLE:
            if self.skipped(command):
                continue
            path, inner = self.make(maker)
            for hidden in [path, *inner]:
                with self.subTest(f"{' '.join(map(str, command))}: {hidden.name}"):
                    mode = hidden.stat().st_mode
                    hidden.chmod(0)
                    try:
                        self.judge(command, path, hidden, "Permission denied", NOBODY)
                    finally:
                        hidden.chmod(stat.S_IMODE(mode))

    def test_when_the_disk_gives_an_error(self):
        for command, maker in TABLE:
            if self.skipped(command):
                continue
            path, inner = self.make(maker)
            if path.is_dir() and (command[0] in ("code", "diff") or tuple(command[:2]) == ("check", "--from")):
                continue  # the file that gives the error is reached by a link and has no size: captures follow no links, trees of libraries skip empty files
            for hidden in inner or ([path] if path.is_file() and "--python" not in command else []):
                with self.subTest(f"{' '.join(map(str, command))}: {hidden.name}"):
                    kept = hidden.with_name(hidden.name + ".kept")
                    hidden.rename(kept)
                    kept.rename(self.open / "kept")
                    hidden.symlink_to(NO_FILE)
                    try:
                        self.judge(command, path, hidden, os.strerror(5), {})
                    finally:
                        hidden.unlink()
                        (self.open / "kept").rename(hidden)

    def test_a_directory_where_a_file_belongs_is_called_that(self):
        for command, maker in TABLE:
            if self.skipped(command):
                continue
            path, inner = self.make(maker)
            for hidden in inner or ([path] if path.is_file() and "--python" not in command else []):
                with self.subTest(f"{' '.join(map(str, command))}: {hidden.name}"):
                    hidden.rename(self.open / "kept")
                    hidden.mkdir()
                    try:
                        process = self.run_as(self.words(command, path)[0], {})
                        said = process.stdout + process.stderr
                        self.assertIn(process.returncode, (0, 1, 2, 3), said)
                        self.assertNotRegex(said, "truncated|is empty|cut short", said)
                    finally:
                        hidden.rmdir()
                        (self.open / "kept").rename(hidden)
                        for made in self.open.glob("out*"):
                            shutil.rmtree(made) if made.is_dir() else made.unlink()


if __name__ == "__main__":
    unittest.main()
