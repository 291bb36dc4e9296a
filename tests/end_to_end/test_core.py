"""`firstfault core` against gdb: processes that die in nine ways, read by both."""
import pathlib, re, shutil, subprocess, tempfile, unittest

from harness import ROOT, document, run

CPP = """
#include <stdexcept>
#include <vector>
void throws(int n) { if (n == 1) throw std::runtime_error("the arm is not calibrated"); }
int main(int argc, char**) { throws(argc); }
"""
PYTHON = """
import ctypes
def innermost(): ctypes.string_at(8)
def outer(): innermost()
outer()
"""


def gdb(program, core):
    """Signal, faulting address, thread numbers (the one that died first), function names of its frames, innermost first."""
    done = subprocess.run(["gdb", "-nx", "-batch", "-iex", "set debuginfod enabled off", "-iex", "set auto-load off", "-ex", "thread", "-ex", "print $_siginfo.si_signo",
                           "-ex", "print $_siginfo._sifields._sigfault.si_addr", "-ex", "print/x $pc", "-ex", "info threads", "-ex", "bt 40", str(program), str(core)],
                          capture_output=True, text=True, errors="replace", timeout=120)
    text = done.stdout
    return {
        "signal": re.search(r"Program terminated with signal (SIG\w+)", text).group(1),
        "thread": int(re.search(r"\[Current thread is \d+ \((?:Thread \S+ \(LWP|LWP) (\d+)", text).group(1)),
        "address": int(re.search(r"\$2 = \(void \*\) (0x[0-9a-f]+)", text).group(1), 16) if "$2 = (void *)" in text else None,
        "instruction": int(re.search(r"\$\d+ = (0x[0-9a-f]+)\n(?:  Id|\* 1|  1)", text).group(1), 16) if re.search(r"\$\d+ = (0x[0-9a-f]+)\n", text) else None,
        "threads": sorted({int(number) for number in re.findall(r"^[* ] +\d+ +(?:Thread \S+ \(LWP|LWP) (\d+)", text, re.M)}),
        # Loading the core and "thread" print the innermost frame too.
        "frames": re.findall(r"^#\d+ +(?:0x[0-9a-f]+ in )?([^ (]+)", text[text.rindex("\n#0 ") + 1 :], re.M),
    }


@unittest.skipUnless(shutil.which("gdb") and shutil.which("gcc") and shutil.which("g++"), "no gdb or no gcc")
class AgainstGdb(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.path = pathlib.Path(cls.folder.name)
        subprocess.run(["gcc", "-g", "-O0", "-pthread", "-o", cls.path / "crash", ROOT / "tests/binary/fixtures/crash.c"], check=True)
        subprocess.run(["g++", "-g", "-O0", "-x", "c++", "-o", cls.path / "throws", "-"], input=CPP, text=True, check=True)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def die(self, name, *argv):
        """A core file of the program, in a folder of its own."""
        folder = self.path / f"core-of-{name}"
        folder.mkdir()
        subprocess.run(["sh", "-c", 'ulimit -c unlimited; exec "$@"', "sh", *map(str, argv)], cwd=folder, capture_output=True, timeout=60)
        cores = list(folder.glob("core*"))
        if not cores:
            self.skipTest("this machine leaves no core file in the working directory")
        return cores[0]

    def compare(self, name, program, *arguments, signal, what, address=True):
        core = self.die(name, program, *arguments)
        told = gdb(program, core)
        result = run("core", core, "--json", "--no-python")
        self.assertEqual(result.returncode, 1, result.stderr)
        value = document(result)
        first = value["threads"][0]
        self.assertEqual((value["signal"]["name"], told["signal"]), (signal, signal))
        self.assertEqual(first["id"], told["thread"], "the thread that died")
        self.assertEqual(sorted(thread["id"] for thread in value["threads"]), told["threads"])
        if address and told["address"] is not None:
            self.assertEqual(int(value["signal"]["address"], 16), told["address"])
        if told["instruction"] is not None:
            self.assertEqual(int(first["instruction"], 16), told["instruction"])
        # gdb counts inlined functions as frames and writes "??" where it knows no name. What both name stands in the same order.
        plain = lambda text: re.sub(r"[@(<].*|_impl$", "", text).removeprefix("__GI_").lstrip("_")
        ours = [plain(frame["function"]) for frame in first["frames"] if frame["function"]]
        theirs = [plain(frame) for frame in told["frames"] if frame != "??"]
        common = [frame for frame in theirs if frame in ours]
        self.assertGreaterEqual(len(set(common)), min(len(set(theirs)), 1), (ours, theirs))
        self.assertEqual([frame for frame in ours if frame in theirs][: len(common)], common[: len(ours)], (ours, theirs))
        self.assertIn(what, value["verdict"]["what"])
        return value, told

    def test_a_null_pointer(self):
        value, told = self.compare("null", self.path / "crash", "null", signal="SIGSEGV", what="null pointer")
        self.assertEqual(told["frames"][0], "null_pointer")
        self.assertEqual(value["threads"][0]["frames"][0]["function"], "null_pointer")
        self.assertEqual(value["verdict"]["owner"], "program")

    def test_an_abort_in_cpp(self):
        value, told = self.compare("throws", self.path / "throws", signal="SIGABRT", what="", address=False)
        self.assertIn("throws", " ".join(told["frames"]))
        self.assertTrue(any(frame["function"].startswith("throws") for frame in value["threads"][0]["frames"]), value["threads"][0]["frames"])
        self.assertEqual(value["verdict"]["owner"], "program")

    def test_an_exhausted_stack(self):
        value, told = self.compare("stack", self.path / "crash", "stack", signal="SIGSEGV", what="the stack is exhausted")
        self.assertEqual(set(told["frames"]), {"deep"})

    def test_a_bus_error_on_a_shortened_file(self):
        data = self.path / "data"
        value, _ = self.compare("bus", self.path / "crash", "bus", data, signal="SIGBUS", what=str(data))
        self.assertEqual(value["signal"]["code_name"], "BUS_ADRERR")

    def test_an_illegal_instruction(self):
        self.compare("illegal", self.path / "crash", "illegal", signal="SIGILL", what="instruction")

    def test_a_python_that_dies_in_a_c_extension(self):
        script = self.path / "script.py"
        script.write_text(PYTHON)
        value, told = self.compare("python", "/usr/bin/python3", script, signal="SIGSEGV", what="null pointer")
        self.assertTrue(any("_ctypes" in frame["module"] for frame in value["threads"][0]["frames"]), value["threads"][0]["frames"])

    def test_one_thread_of_several(self):
        value, told = self.compare("threads", self.path / "crash", "threads", signal="SIGSEGV", what="null pointer")
        self.assertEqual(len(told["threads"]), 3)
        self.assertNotEqual(told["thread"], value["process"]["pid"])

    def test_a_division_by_zero_and_a_called_null_pointer(self):
        self.compare("divide", self.path / "crash", "divide", "data", signal="SIGFPE", what="divided by zero")
        self.compare("call", self.path / "crash", "call", signal="SIGSEGV", what="null function pointer")


if __name__ == "__main__":
    unittest.main()
