"""code, libs, core and hang as a user runs them: exit codes, documents, and a real library compared with LLVM's tools."""
import os, pathlib, re, shutil, subprocess, tempfile, time, unittest

from harness import ROOT, document, run

FIXTURES = ROOT / "tests/elf/fixtures"


class Code(unittest.TestCase):
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

    def test_wrong_usage_exits_2_and_an_absent_file_3(self):
        self.assertEqual(run("code").returncode, 2)
        self.assertEqual(run("code", FIXTURES / "library.so", "--for", "RX 7900").returncode, 2)
        self.assertEqual(run("code", FIXTURES / "library.so", "--block", "0").returncode, 2)
        self.assertEqual(run("code", "/absent", "--json").returncode, 3)

    def test_a_whole_directory_is_one_document(self):
        result = document(run("code", FIXTURES, "--kernels", "--json"))
        self.assertEqual({kernel["name"] for kernel in result["kernels"]}, {"add", "tile"})
        self.assertTrue(all(isinstance(kernel["vgpr_count"], int) for kernel in result["kernels"]))
        self.assertEqual(result["errors"], [])

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


class Others(unittest.TestCase):
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
        self.assertEqual(run("hang", child.pid).returncode, 3)


if __name__ == "__main__":
    unittest.main()
