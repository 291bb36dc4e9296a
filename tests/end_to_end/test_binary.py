"""code, libs, core and hang as a user runs them: exit codes, documents, and a real library compared with LLVM's tools."""
import json, os, pathlib, re, shutil, subprocess, tempfile, time, unittest, zipfile

from harness import BINARY, ROOT, document, run, validate

FIXTURES = ROOT / "tests/elf/fixtures"


class Code(unittest.TestCase):
    def test_what_is_asked_for_and_not_there_is_said_with_what_is(self):
        for words, said in [(["--kernel", "nope"], 'No kernel\'s name contains "nope". There are add, tile.'),
                            (["--target", "gfx1100"], "No code for gfx1100 was found. There is code for gfx90a:sramecc+:xnack-."),
                            (["--disassemble", "--at", "0x999999"], "No function holds the address 0x999999.")]:
            with self.subTest(words):
                process = run("code", FIXTURES / "gfx90a.co", *words)
                if "libLLVM" in process.stderr:
                    self.skipTest("no decoder here")
                self.assertEqual(process.returncode, 1, process.stdout + process.stderr)
                self.assertIn(said, process.stdout)
                result = run("code", FIXTURES / "gfx90a.co", *words, "--json")
                self.assertEqual(result.returncode, 1)
                self.assertEqual(document(result)["not_found"], said)
        answer = document(run("code", FIXTURES / "gfx90a.co", "--for", "gfx9999", "--json"))["for"][0]
        self.assertIn("no target that is known here", answer["remark"])
        self.assertNotIn("remark", document(run("code", FIXTURES / "gfx90a.co", "--for", "gfx1100", "--json"))["for"][0])
        generic = run("code", FIXTURES / "gfx90a.co", "--for", "gfx11-generic")
        self.assertEqual(generic.returncode, 2)
        self.assertIn("is a generic target", generic.stderr)
        fits = run("code", FIXTURES / "gfx1100.co", "--kernel", "tile", "--block", "16,16")
        self.assertIn("fits a workgroup of 256 work-items", fits.stdout)
        self.assertNotIn("fits", run("code", FIXTURES / "gfx1100.co", "--kernel", "tile", "--block", "512").stdout)

    def test_a_covered_gpu_exits_0_and_an_uncovered_one_names_the_library(self):
        covered = run("code", FIXTURES / "library.so", "--for", "gfx1100", "--json")
        self.assertEqual(covered.returncode, 0, covered.stderr)
        self.assertEqual(document(covered)["for"][0]["answer"], "native")
        absent = run("code", FIXTURES / "library.so", "--for", "gfx1201", "--json")
        self.assertEqual(absent.returncode, 1)
        answer = document(absent)["for"][0]
        self.assertEqual(answer["answer"], "none")
        self.assertEqual(answer["first_to_fail"]["component"], "library.so")
        text = run("code", FIXTURES / "library.so", "--for", "gfx1201")
        self.assertIn("First to fail: library.so", text.stdout)

    def test_wrong_usage_and_an_absent_file_exit_2(self):
        self.assertEqual(run("code").returncode, 2)
        self.assertEqual(run("code", FIXTURES / "library.so", "--for", "RX 7900").returncode, 2)
        self.assertEqual(run("code", FIXTURES / "library.so", "--block", "0").returncode, 2)
        self.assertEqual(run("code", "/absent", "--json").returncode, 2)
        for command in [["code", "build", "/absent.hip", "--target", "gfx1100"], ["libs", "/absent"], ["libs", "diff", "/absent", "/bin/ls"], ["core", "/absent"]]:
            failed = run(*command, "--json")
            self.assertEqual(failed.returncode, 2, command)
            self.assertEqual(document(failed)["schema"], "firstfault/error/1")
        self.assertEqual(run("code", FIXTURES / "gfx1100.co", "--at", "0x10").returncode, 2, "--at without --disassemble")
        self.assertEqual(run("code", FIXTURES / "gfx1100.co", "--disassemble", "--at", "+4").returncode, 2, "an offset without a kernel")

    def test_an_unknown_target_is_a_usage_error_and_a_missing_compiler_is_not(self):
        for command in [["code", "build", ROOT / "tests/elf/fixtures/kernels.hip", "--target", "gfx1100,gfx1999"], ["ops", "compile", "--target", "gfx1999"]]:
            failed = run(*command, "--json")
            self.assertEqual(failed.returncode, 2, command)
            self.assertIn("gfx1999", document(failed)["what"])
        absent = run("code", "build", FIXTURES / "kernels.hip", "--target", "gfx1100", "--compiler", "/absent/clang++", "--json")
        self.assertEqual(absent.returncode, 3)
        if not list(pathlib.Path("/usr/lib/x86_64-linux-gnu").glob("libhiprtc.so*")) and not list(pathlib.Path("/opt").glob("rocm*")):
            absent = run("ops", "compile", "--target", "gfx1100", "--json")
            self.assertEqual(absent.returncode, 3, absent.stdout)
            self.assertEqual({row["status"] for row in document(absent)["results"]}, {"not-run"})

    @unittest.skipUnless(os.geteuid() == 0, "only root can become somebody who may not read")
    def test_what_may_not_be_read_exits_3_in_every_command(self):
        with tempfile.TemporaryDirectory() as directory:
            os.chmod(directory, 0o755)
            secret, program = pathlib.Path(directory) / "secret.so", pathlib.Path(directory) / "firstfault"
            shutil.copy(BINARY, program)
            shutil.copy(FIXTURES / "library.so", secret)
            os.chmod(secret, 0)
            commands = [["code", secret], ["code", secret, "--kernels"], ["code", "build", secret, "--target", "gfx1100"], ["libs", secret],
                        ["libs", "diff", secret, "/bin/ls"], ["libs", "diff", "/bin/ls", secret], ["core", secret]]
            for command in commands:
                done = subprocess.run([program, *map(str, command), "--json"], user=65534, group=65534, extra_groups=[], capture_output=True, text=True, env={"PATH": "/usr/bin:/bin", "HOME": directory})
                self.assertEqual(done.returncode, 3, f"{command}: {done.stdout} {done.stderr}")
                self.assertIn("ermission denied", done.stdout + done.stderr, command)
            for command in [["hang", "4194304"], ["hang", "no-number"], ["hang"], ["hang", "1", "--job", "2"]]:
                self.assertEqual(run(*command).returncode, 2, command)

    def test_a_file_without_gpu_code_lacks_nothing(self):
        result = run("code", "/bin/ls", "--for", "gfx1100")
        self.assertEqual(result.returncode, 0)
        self.assertIn("holds no GPU code", result.stdout)

    def test_without_a_disassembler_the_answer_says_what_to_install(self):
        result = run("code", FIXTURES / "gfx1100.co", "--disassemble", "--disassembler", "/absent/libLLVM.so")
        self.assertEqual(result.returncode, 3)
        self.assertIn("libllvm19", result.stderr)
        self.assertIn("add", result.stdout, "the table of kernels is shown all the same")

    @unittest.skipUnless(shutil.which("llvm-objdump-19"), "no llvm-objdump-19")
    def test_instructions_are_what_llvm_objdump_prints(self):
        for name in ["gfx1100.co", "gfx90a.co", "gfx906-v4.co", "gfx11-generic.co", "lines.co"]:
            told = subprocess.run(["llvm-objdump-19", "-d", FIXTURES / name], capture_output=True, text=True, check=True).stdout
            expected = {}
            for line in told.splitlines():
                match = re.match(r"\t(.+?)\s*// ([0-9A-F]{12}): ([0-9A-F ]+?)(?: <.*>)?$", line)
                if match:
                    expected[int(match[2], 16)] = (" ".join(match[1].split()), match[3].lower().strip())
            self.assertGreater(len(expected), 40)
            result = document(run("code", FIXTURES / name, "--disassemble", "--json"))
            seen = {row["address"]: (" ".join(row["text"].split()), row["bytes"]) for function in result["disassembly"] for row in function["instructions"]}
            self.assertGreater(len(seen), 40)
            for address, row in seen.items():
                self.assertEqual(row, expected[address], f"{name} {address:#x}")

    @unittest.skipUnless(shutil.which("clang++-19"), "no clang++-19")
    def test_a_kernel_is_compiled_and_judged_for_two_targets(self):
        with tempfile.TemporaryDirectory() as directory:
            source = pathlib.Path(directory) / "k.hip"
            source.write_text('#include <hip/hip_runtime.h>\nextern "C" __global__ void __launch_bounds__(64) fill(float* a) { a[threadIdx.x] = 1; }\n')
            result = run("code", "build", source, "--target", "gfx1100,gfx90a", "--disassemble", "--json", "--compiler", shutil.which("clang++-19"))
            self.assertEqual(result.returncode, 0, result.stderr)
            value = document(result)
            self.assertEqual([kernel["target"] for kernel in value["kernels"]], ["gfx1100", "gfx90a"])
            self.assertTrue(all(kernel["max_flat_workgroup_size"] == 64 and "occupancy" in kernel for kernel in value["kernels"]))
            self.assertTrue(any("k.hip:2" in row.get("source", "") for function in value["disassembly"] for row in function["instructions"]))
            too_many = run("code", "build", source, "--target", "gfx1100", "--block", "128", "--json")
            self.assertEqual(too_many.returncode, 1)
            self.assertIn("launch bounds", document(too_many)["kernels"][0]["faults"][0])
            source.write_text("__global__ void k() { nothing_of_that_name(); }\n")
            refused = run("code", "build", source, "--target", "gfx1100", "--json")
            self.assertEqual(refused.returncode, 1)
            self.assertIn("nothing_of_that_name", document(refused)["targets"][0]["diagnostics"])

    def test_a_whole_directory_is_one_document(self):
        result = document(run("code", FIXTURES, "--kernels", "--json"))
        self.assertEqual({kernel["name"] for kernel in result["kernels"]}, {"add", "tile", "first", "second"})
        self.assertTrue(all(isinstance(kernel["vgpr_count"], int) for kernel in result["kernels"]))
        self.assertEqual(result["errors"], [])

    def test_kernels_inside_wheels_are_those_of_the_file(self):
        with tempfile.TemporaryDirectory() as directory:
            wheel = pathlib.Path(directory) / "k-1-py3-none-any.whl"
            with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
                for name in ["library-compressed.so", "gfx803-v2.co"]:
                    archive.write(FIXTURES / name, f"k/lib/{name}")
            inside = document(run("code", wheel, "--kernels", "--json"))["kernels"]
            outside = document(run("code", FIXTURES / "gfx803-v2.co", FIXTURES / "library-compressed.so", "--kernels", "--json"))["kernels"]
            self.assertEqual(len(inside), 6)
            self.assertEqual([{**row, "file": ""} for row in inside], [{**row, "file": ""} for row in outside])
            self.assertEqual({row["file"] for row in inside}, {f"{wheel}!k/lib/library-compressed.so", f"{wheel}!k/lib/gfx803-v2.co"})

    def test_kernels_of_a_split_package_are_found_in_its_archives(self):
        with tempfile.TemporaryDirectory() as directory:
            root = pathlib.Path(directory) / "torch"
            (root / "lib").mkdir(parents=True), (root / ".kpack").mkdir()
            shutil.copy(FIXTURES / "split.so", root / "lib/libkernels.so.1")
            lacks = run("code", root, "--for", "gfx1100", "--json")
            self.assertEqual(lacks.returncode, 1)
            self.assertTrue(document(lacks)["components"][0]["kpack_missing"])
            shutil.copy(FIXTURES / "packed.kpack", root / ".kpack/kernels_gfx90a.kpack")
            shutil.copy(FIXTURES / "stored.kpack", root / ".kpack/kernels_gfx1100.kpack")
            for target, exit_code in [("gfx1100", 0), ("gfx90a:xnack-", 1), ("gfx942", 1)]:  # libother.so has gfx1100 alone
                self.assertEqual(run("code", root, "--for", target).returncode, exit_code, target)
            kernels = document(run("code", root, "--kernels", "--json"))["kernels"]
            self.assertEqual(len(kernels), 8)
            plain = {row["name"]: row for row in document(run("code", FIXTURES / "gfx90a.co", "--kernels", "--json"))["kernels"]}
            for row in kernels:
                if row["target"].startswith("gfx90a"):
                    self.assertEqual({**row, "file": ""}, {**plain[row["name"]], "file": ""})
            self.assertIn(f"{root}/.kpack/kernels_gfx90a.kpack!lib/libkernels.so.1#1", {row["file"] for row in kernels})
            wheel = pathlib.Path(directory) / "device-1-py3-none-any.whl"
            with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
                archive.write(FIXTURES / "packed.kpack", "torch/.kpack/kernels_gfx90a.kpack")
            self.assertEqual(len(document(run("code", wheel, "--kernels", "--json"))["kernels"]), 4)

    def test_what_cannot_be_looked_at_exits_3_with_a_remedy(self):
        with tempfile.TemporaryDirectory() as directory:
            for name, content in [("empty.so", b""), ("text.so", b"hello\n"), ("noise.core", bytes(range(256)) * 16), ("packed.zst", b"\x28\xb5\x2f\xfd" + bytes(64))]:
                path = pathlib.Path(directory) / name
                path.write_bytes(content)
                for command in ["code", "libs", "core"]:
                    failed = run(command, path)
                    self.assertEqual(failed.returncode, 3, f"{command} {name}: {failed.stdout}")
                    self.assertRegex(failed.stderr, r"\n  \w", f"{command} {name}: no remedy")
            cut = pathlib.Path(directory) / "cut.so"
            cut.write_bytes((FIXTURES / "library.so").read_bytes()[:1000])
            for path in [cut, FIXTURES / "gfx1100.co", FIXTURES / "bundled.o"]:
                self.assertEqual(run("libs", path).returncode, 3, path)

    @unittest.skipUnless(shutil.which("llvm-readelf-19"), "no llvm-readelf-19")
    def test_kernels_are_what_llvm_readelf_says_field_by_field(self):
        import yaml
        for name in ["gfx1100.co", "gfx90a.co", "gfx906-v4.co", "gfx11-generic.co"]:
            told = subprocess.run(["llvm-readelf-19", "-n", FIXTURES / name], capture_output=True, text=True, check=True).stdout
            metadata = yaml.safe_load(told[told.index("---"):told.index("...")])
            kernels = {kernel["name"]: kernel for kernel in document(run("code", FIXTURES / name, "--kernels", "--json"))["kernels"]}
            self.assertEqual(len(kernels), len(metadata["amdhsa.kernels"]))
            for expected in metadata["amdhsa.kernels"]:
                for field, value in expected.items():
                    if field == ".args":
                        value = [{key.lstrip("."): item for key, item in row.items()} for row in value]
                    self.assertEqual(kernels[expected[".name"]][field.lstrip(".")], value, f"{name} {field}")

    @unittest.skipUnless(shutil.which("clang-19") and shutil.which("llvm-readelf-19"), "no clang-19")
    def test_every_target_of_the_compiler_reads_as_llvm_names_it(self):
        listed = subprocess.run(["clang-19", "--target=amdgcn-amd-amdhsa", "-nogpulib", "--print-supported-cpus"], capture_output=True, text=True)
        listed = listed.stdout + listed.stderr
        targets = sorted(set(re.findall(r"gfx[0-9a-z-]+", listed)))
        self.assertGreater(len(targets), 40)
        with tempfile.TemporaryDirectory() as directory:
            made = []
            for target in targets:
                out = pathlib.Path(directory) / f"{target}.o"
                arguments = ["clang-19", "--target=amdgcn-amd-amdhsa", f"-mcpu={target}", "-nogpulib", "-x", "cl", "-c", "-o", out, "-"]
                if target.endswith("-generic"):
                    arguments.insert(1, "-mcode-object-version=6")
                if subprocess.run(arguments, input=b"kernel void k(global int *a) { a[0] = 1; }", capture_output=True).returncode == 0:
                    made.append((target, out))
            self.assertGreater(len(made), 40)
            files = {file["path"]: file for file in document(run("code", directory, "--json", timeout=120))["files"]}
            for target, out in made:
                flags = subprocess.run(["llvm-readelf-19", "-h", out], capture_output=True, text=True).stdout
                name = re.search(r"Flags: +0x[0-9A-F]+, ([^,\n]+)", flags).group(1)
                row = files[str(out)]["targets"][0]
                self.assertEqual(row["target"].split(":")[0], name)
                abi = int(re.search(r"ABI Version: +(\d+)", flags).group(1))
                self.assertEqual(row["code_object_versions"], [abi + 2])


def programs(count):
    """Dynamically linked programs of this machine that need more than libc, the largest first."""
    found = []
    for path in sorted(pathlib.Path("/usr/bin").iterdir(), key=lambda p: -p.stat().st_size if p.exists() else 0):
        if path.is_symlink() or not os.access(path, os.X_OK) or not path.is_file():
            continue
        with open(path, "rb") as file:
            if file.read(4) != b"\x7fELF":
                continue
        traced = subprocess.run(["/lib64/ld-linux-x86-64.so.2", "--verify", path], capture_output=True)
        if traced.returncode == 0:
            found.append(path)
        if len(found) == count:
            break
    return found


class Others(unittest.TestCase):
    def test_libs_takes_the_files_that_the_loader_says_it_tries_last(self):
        checked = 0
        for path in programs(20):
            # The loader's own tracing, asked to list only: nothing of the program runs.
            environment = {"LD_TRACE_LOADED_OBJECTS": "1", "LD_DEBUG": "libs", "LD_BIND_NOW": "1", "LD_WARN": "1", "PATH": "/usr/bin:/bin"}
            traced = subprocess.run([path], env=environment, capture_output=True, text=True, errors="replace")
            taken, wanted = {}, None
            for line in traced.stderr.splitlines():
                if match := re.search(r"find library=(\S+) ", line):
                    wanted = match[1]
                elif match := re.search(r"trying file=(\S+)", line):
                    taken[wanted] = os.path.realpath(match[1])
            result = document(run("libs", path, "--no-torch", "--library-path", "", "--json"))
            predicted = {row["name"]: os.path.realpath(row["path"]) for row in result["loaded"][1:]}
            for name, file in taken.items():
                self.assertEqual(predicted.get(name), file, f"{path}: {name}")
            undefined = sorted(set(re.findall(r"undefined symbol: (\S+?)(?:, version \S+)?\s+\(", traced.stdout + traced.stderr)))
            self.assertEqual(sorted({row["symbol"] for row in result["unresolved_symbols"]}), undefined, path)
            self.assertGreater(result["symbols_looked_up"], 0)
            checked += 1
        self.assertGreaterEqual(checked, 15)

    @unittest.skipUnless(shutil.which("gcc"), "no gcc")
    def test_libs_diff_is_a_document_and_exits_1_when_a_symbol_went(self):
        with tempfile.TemporaryDirectory() as directory:
            for name, source in [("a", "int f(void){return 1;} int g(void){return 2;}"), ("b", "int f(void){return 1;}")]:
                subprocess.run(["gcc", "-shared", "-fPIC", "-x", "c", "-o", f"{directory}/{name}.so", "-"], input=source, text=True, check=True)
            worse = run("libs", "diff", f"{directory}/a.so", f"{directory}/b.so", "--json")
            self.assertEqual(worse.returncode, 1)
            self.assertEqual([row["symbol"] for row in document(worse)["removed"]], ["g"])
            self.assertEqual(run("libs", "diff", f"{directory}/b.so", f"{directory}/a.so").returncode, 0)

    def test_libs_agrees_with_the_loader_and_is_a_document(self):
        result = run("libs", "/bin/ls", "--trace", "--json", "--library-path", "")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertTrue(document(result)["trace"]["agrees"])
        self.assertEqual(run("libs", "/etc/passwd").returncode, 3)

    def test_core_refuses_other_files_with_3(self):
        self.assertEqual(run("core", "/bin/ls").returncode, 3)

    @unittest.skipUnless(shutil.which("gcc"), "no gcc")
    def test_core_is_a_document(self):
        with tempfile.TemporaryDirectory() as directory:
            subprocess.run(["gcc", "-g", "-pthread", "-o", f"{directory}/crash", ROOT / "tests/binary/fixtures/crash.c"], check=True)
            subprocess.run(["sh", "-c", "ulimit -c unlimited; exec ./crash null"], cwd=directory)
            cores = list(pathlib.Path(directory).glob("core*"))
            if not cores:
                self.skipTest("this machine leaves no core file in the working directory")
            result = run("core", cores[0], "--json")
            self.assertEqual(result.returncode, 1)
            self.assertEqual(document(result)["signal"]["name"], "SIGSEGV")
            commands = pathlib.Path(directory) / "gdb.txt"
            self.assertEqual(run("core", cores[0], "--rocgdb", commands).returncode, 1)
            if shutil.which("gdb"):
                told = subprocess.run(["gdb", "-nx", "-batch", "-x", commands], capture_output=True, text=True, timeout=60)
                self.assertIn("Program terminated with signal SIGSEGV", told.stdout + told.stderr)
                self.assertIn("crash", told.stdout)

    def test_core_enable_changes_nothing_unless_told_and_sets_the_shells_limit(self):
        script = f"ulimit -S -c 0; {BINARY} core enable --json; ulimit -c; {BINARY} core enable --apply --json >/dev/null; ulimit -c"
        shell = subprocess.run(["bash", "-c", script], capture_output=True, text=True)
        text, _, limits = shell.stdout.rpartition("}")
        value = json.loads(text + "}")
        validate(value)
        self.assertEqual(value["applied"], [])
        before, after = limits.split()
        self.assertEqual(before, "0")
        hard = subprocess.run(["bash", "-c", "ulimit -H -c"], capture_output=True, text=True).stdout.strip()
        self.assertEqual(after, hard)

    def test_hang_is_a_document(self):
        child = subprocess.Popen(["sleep", "60"])
        try:
            time.sleep(0.3)
            result = run("hang", child.pid, "--json", "--seconds", "0.3")
            self.assertEqual(result.returncode, 0)
            self.assertEqual(document(result)["verdict"]["id"], "sleep")
        finally:
            child.kill()
            child.wait()
        self.assertEqual(run("hang", child.pid).returncode, 2)

    def test_hang_reads_dumps_and_a_python_that_waits_for_a_lock(self):
        waiting = subprocess.Popen(["/usr/bin/python3", "-c", "import threading; l = threading.Lock(); l.acquire(); print('ready', flush=True); l.acquire()"], stdout=subprocess.PIPE)
        try:
            waiting.stdout.readline()
            with tempfile.TemporaryDirectory() as directory:
                result = document(run("hang", waiting.pid, "--json", "--seconds", "0.3", "--dumps", directory))
                self.assertEqual(result["verdict"]["id"], "lock")
                self.assertIsNone(result["ranks"])
                self.assertIn(waiting.poll(), [None], "it was not ended")
                subprocess.run(["/usr/bin/python3", ROOT / "tests/binary/make_flight_dumps.py", directory], check=True)
                result = document(run("hang", waiting.pid, "--json", "--seconds", "0.3", "--dumps", directory + "/nccl_trace_rank_"))
                self.assertEqual(result["verdict"]["id"], "waits-for-rank")
                self.assertEqual(result["ranks"]["missing"], [2])
                text = run("hang", waiting.pid, "--seconds", "0.3", "--dumps", directory + "/nccl_trace_rank_").stdout
                self.assertIn("rank 2 has not come to it", text)
        finally:
            waiting.kill()
            waiting.wait()
            waiting.stdout.close()


if __name__ == "__main__":
    unittest.main()
