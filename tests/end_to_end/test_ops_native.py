"""firstfault ops run --native, ops compare, ops compile, stress: right on the CPU and on a stand-in for HIP; every planted fault is found."""
import json, os, pathlib, re, signal, subprocess, tempfile, time, unittest

from harness import BINARY, document, run

DOUBLE = pathlib.Path(BINARY).parent / "hip_double"
VENDOR = pathlib.Path(BINARY).parent / "vendor_double"
# Planted fault: the family to run, the operators that must find it and how.
PLANTED = {"flipped-bit": ("memory", "memory.round-trip", "fail"), "flipped-bit-device": ("memory", "memory.patterns", "fail"),
           "wrong-kernel": ("elementwise", "elementwise.add.f32", "fail"), "off-by-one": ("reduction", "reduction.sum.f32.exact", "fail"),
           "swapped-operand": ("gemm", "gemm.f32.exact", "nan"), "race": ("atomics", "atomics.histogram", "fail"),
           "out-of-range": ("launch", "launch.guards", "fail"), "short-launch": ("launch", "launch.block-sizes", "fail"),
           "hang": ("launch", "launch.ends", "hang"), "crash": ("launch", "launch.ends", "crash")}


class Base(unittest.TestCase):
    def setUp(self):
        self.runs = tempfile.TemporaryDirectory()
        self.addCleanup(self.runs.cleanup)
        self.env = {"FIRSTFAULT_RUNS": self.runs.name}

    def ops(self, *arguments, env=None, timeout=600):
        process = run("ops", "run", "--native", "--json", *arguments, env={**self.env, **(env or {})}, timeout=timeout)
        return process.returncode, document(process)


class Native(Base):
    def test_everything_holds_on_the_cpu(self):
        code, value = self.ops("--device", "cpu", "--repeat", "2", "--limit", "60")
        bad = [(o["name"], o["detail"]) for o in value["operators"] if o["status"] not in ("pass", "unsupported")]
        self.assertEqual((code, bad), (0, []))
        self.assertGreater(value["summary"]["pass"], 150)
        unsupported = {o["family"] for o in value["operators"] if o["status"] == "unsupported"}
        self.assertLessEqual(unsupported, {"blas", "dnn", "launch", "collective"})  # no vendor library, no graphs on a CPU

    def test_both_wavefronts(self):
        for wavefront in ("32", "64"):
            code, value = self.ops("--device", "cpu", "--wavefront", wavefront, "--family", "wave,lds", "--repeat", "2")
            self.assertEqual((code, value["device"]["wavefront"]), (0, int(wavefront)))

    def test_a_plant_that_cannot_be_is_refused(self):
        for layer in ("--native", "--torch"):
            with self.subTest(layer):
                process = run("ops", "run", layer, "--device", "cpu", "--plant", "nonsense")
                self.assertEqual(process.returncode, 2, process.stdout + process.stderr)
                self.assertIn("--plant", process.stderr)

    def test_planted_faults_are_found_where_they_are(self):
        for plant, (family, finder, status) in PLANTED.items():
            with self.subTest(plant):
                code, value = self.ops("--device", "cpu", "--family", family, "--name", finder, "--plant", plant, "--repeat", "2", "--limit", "8")
                self.assertEqual(code, 1)
                self.assertEqual({o["status"] for o in value["operators"]}, {status})

    def test_without_a_plant_the_same_operators_pass(self):
        code, value = self.ops("--device", "cpu", "--name", ",".join(f for _, f, _ in PLANTED.values()), "--repeat", "2", "--limit", "60")
        self.assertEqual(code, 0, [o for o in value["operators"] if o["status"] != "pass"])

    def test_an_unknown_plant_is_a_usage_error(self):
        process = run("ops", "run", "--native", "--device", "cpu", "--plant", "nothing", env=self.env)
        self.assertEqual(process.returncode, 2)
        self.assertIn("flipped-bit", process.stderr)
        process = run("stress", "all", "--device", "cpu", "--plant", "wrong-kernel", env=self.env)  # a fault of ops run only
        self.assertEqual(process.returncode, 2)
        self.assertIn("short-launch", process.stderr)

    def test_an_unknown_family_or_type_lists_the_known_ones(self):
        for option, known in (("--family", ("memory", "gemm", "collective")), ("--dtype", ("f32", "bf16"))):
            with self.subTest(option):
                process = run("ops", "run", "--native", "--device", "cpu", option, "wrong", env=self.env)
                self.assertEqual(process.returncode, 2, process.stdout)
                self.assertIn('"wrong"', process.stderr)
                for name in known:
                    self.assertIn(name, process.stderr)

    def test_the_plants_are_listed(self):
        for arguments, listed, not_listed in ((("ops", "run", "--native"), "wrong-kernel", None), (("stress", "all"), "short-launch", "wrong-kernel")):
            process = run(*arguments, "--plant", "help", env=self.env)
            self.assertEqual(process.returncode, 0)
            self.assertIn(listed, process.stdout)
            if not_listed:
                self.assertNotIn(not_listed, process.stdout)

    def test_runs_are_compared(self):
        self.ops("--device", "cpu", "--family", "launch", "--repeat", "2", "--runs", self.runs.name + "/a")
        self.ops("--device", "cpu", "--family", "launch", "--plant", "short-launch", "--repeat", "2", "--runs", self.runs.name + "/b")
        a, b = (next(pathlib.Path(self.runs.name, x).iterdir()) for x in "ab")
        process = run("ops", "compare", a, b, "--json")
        value = document(process)
        self.assertEqual(process.returncode, 1)
        self.assertIn(("launch.block-sizes", "broken"), {(c["name"], c["kind"]) for c in value["changes"]})
        self.assertEqual(run("ops", "compare", a, a).returncode, 0)
        self.assertEqual(run("ops", "compare", a, __file__).returncode, 3)

    def test_the_last_run_of_operators_is_meant_whatever_ran_since(self):
        self.ops("--device", "cpu", "--name", "launch.guards", "--repeat", "1")
        run("stress", "launch", "--for", "1s", "--device", "cpu", env=self.env)
        self.assertEqual(run("ops", "compare", "last", "last", env=self.env).returncode, 0)
        process = run("ops", "fallback", "last", "--json", env=self.env)  # of PyTorch's operators there is none
        self.assertEqual(process.returncode, 2)
        self.assertIn("no run of torch operators", document(process)["what"])
        stress = next(p for p in pathlib.Path(self.runs.name).iterdir() if p.name.endswith("-stress"))
        process = run("ops", "compare", stress, "last", "--json", env=self.env)
        self.assertEqual((process.returncode, bool(document(process)["remedy"])), (3, True))

    def test_rung_2_names_the_layer(self):
        process = run("check", "--device", "cpu", "--rung", "compute", "--json", env=self.env, timeout=600)
        value = document(process)
        compute = next(r for r in value["rungs"] if r["rung"] == "compute")
        self.assertEqual((process.returncode, compute["status"]), (0, "pass"))
        states = {c["id"]: c["status"] for c in compute["checks"]}
        for check in ("runtime-opens", "context", "allocation", "copies", "launches", "kernels", "gemm", "neural"):
            self.assertEqual(states["compute." + check], "pass", check)


@unittest.skipUnless(DOUBLE.is_dir(), "the stand-in for HIP is not built")
class Hip(Base):
    """The HIP back end over a library that plays an AMD GPU."""

    def setUp(self):
        super().setUp()
        self.env["FIRSTFAULT_LIBRARIES"] = str(DOUBLE)

    def test_the_suite_runs_on_wave64_and_wave32(self):
        for target, wavefront in (("gfx90a:sramecc+:xnack-", 64), ("gfx1100", 32)):
            code, value = self.ops("--device", "hip", "--small", "--repeat", "2", "--limit", "60", "--family", "allocation,memory,launch,wave,lds,atomics,gemm",
                                   env={"FF_DOUBLE_TARGET": target})
            bad = [(o["name"], o["detail"]) for o in value["operators"] if o["status"] not in ("pass", "unsupported")]
            self.assertEqual((code, bad), (0, []))
            self.assertEqual((value["device"]["target"], value["device"]["wavefront"]), (target, wavefront))

    def check(self, **env):
        process = run("check", "--device", "hip", "--rung", "compute", "--json", env={**self.env, **env}, timeout=600)
        value = document(process)
        checks = next(r for r in value["rungs"] if r["rung"] == "compute")["checks"]
        return process.returncode, value["first_fault"], next(c for c in checks if c["id"] == value["first_fault"])

    def test_no_device_is_found_at_the_runtime(self):
        code, first, check = self.check(FF_DOUBLE_DEVICES="0")
        self.assertEqual((code, first), (1, "compute.runtime-opens"))
        self.assertIn("hipErrorNoDevice (100)", check["summary"])
        self.assertEqual(check["causes"][0], "runtime.visible-devices")

    def test_a_context_that_cannot_be_made_is_found_as_that(self):
        code, first, check = self.check(FF_DOUBLE_FAIL="hipSetDevice:2")
        self.assertEqual((code, first, check["causes"][0]), (1, "compute.context", "memory.held-by-others"))

    def test_a_failing_call_is_found_by_the_operator_that_makes_it(self):
        for fault, family, error in (("hipMalloc:2", "allocation", "hipErrorOutOfMemory (2)"), ("hipMemcpyDtoH:719:9", "memory", "hipErrorLaunchFailure (719)"),
                                     ("hipModuleLoadData:200", "launch", "hipErrorInvalidImage (200)"), ("hiprtcCompileProgram:6", "launch", "HIPRTC_ERROR_COMPILATION (6)")):
            with self.subTest(fault):
                code, value = self.ops("--device", "hip", "--small", "--repeat", "1", "--family", family, env={"FF_DOUBLE_FAIL": fault})
                crashed = [o for o in value["operators"] if o["status"] == "crash"]
                self.assertEqual(code, 1)
                self.assertIn(error, crashed[0]["detail"])

    def test_a_broken_library_is_named(self):
        with tempfile.TemporaryDirectory() as folder:
            pathlib.Path(folder, "libamdhip64.so.6").write_bytes(b"\x7fELF" + b"\0" * 100)
            process = run("ops", "run", "--native", "--device", "hip", "--json", env={**self.env, "FIRSTFAULT_LIBRARIES": folder})
        if process.returncode == 0:
            self.skipTest("this machine has a HIP of its own")
        value = document(process)
        self.assertEqual(process.returncode, 3)
        self.assertTrue(value["remedy"])

    def test_collectives_and_vendor_products(self):
        """Stand-ins for RCCL, rocBLAS and hipBLASLt: every call with its arguments, over one device and over three."""
        env = {"FIRSTFAULT_LIBRARIES": "%s:%s" % (DOUBLE, VENDOR), "FF_DOUBLE_TARGET": "gfx942:sramecc+:xnack-"}
        for devices in ("1", "2", "3"):
            code, value = self.ops("--device", "hip", "--small", "--repeat", "2", "--family", "collective,blas", env={**env, "FF_DOUBLE_DEVICES": devices})
            status = {o["name"]: o["status"] for o in value["operators"]}
            self.assertEqual({n: s for n, s in status.items() if s not in ("pass", "unsupported")}, {})
            self.assertEqual((code, status["collective.all-reduce.bf16"], status["collective.all-to-all.f32"], status["blas.bf16.exact"]), (0, "pass", "pass", "pass"))
            self.assertEqual((status["blas.e4m3fnuz.e4m3fnuz.exact"], status["blas.e4m3.e4m3.exact"]), ("pass", "unsupported"))
            self.assertEqual(status["collective.peer-copy"], "pass" if devices != "1" else "unsupported")
            self.assertIn("%s rank" % devices, next(o["detail"] for o in value["operators"] if o["name"] == "collective.all-reduce.f32"))
        code, value = self.ops("--device", "hip", "--small", "--repeat", "2", "--family", "collective", "--plant", "wrong-rank", env={**env, "FF_DOUBLE_DEVICES": "3"})
        self.assertEqual({o["status"] for o in value["operators"] if o["name"] != "collective.peer-copy"}, {"fail"})
        for fault, error in (("ncclCommInitAll:3", "ncclCommInitAll: internal error (3)"), ("ncclAllReduce:3", "ncclAllReduce: internal error (3)"),
                             ("hipblasLtMatmul:6", "hipblasLtMatmul: HIPBLAS_STATUS_INTERNAL_ERROR (6)"), ("rocblas_gemm_strided_batched_ex:6", "rocblas_gemm_strided_batched_ex: rocblas_status_internal_error (6)")):
            with self.subTest(fault):
                code, value = self.ops("--device", "hip", "--small", "--repeat", "1", "--name", "collective.all-reduce.f32,blas.f32.exact,blas.e4m3fnuz.e4m3fnuz", env={**env, "FF_VENDOR_FAIL": fault})
                self.assertEqual((code, [error in o["detail"] for o in value["operators"] if o["status"] in ("crash", "fail")]), (1, [True]))

    def test_convolutions_through_miopen(self):
        """A stand-in for MIOpen: plain and Winograd solutions of immediate mode, and its search; each judged by the analysis that holds for it."""
        env = {"FIRSTFAULT_LIBRARIES": "%s:%s" % (DOUBLE, VENDOR)}
        convolutions = lambda **more: self.ops("--device", "hip", "--small", "--repeat", "2", "--family", "dnn", env={**env, **more})  # noqa: E731
        code, value = convolutions()
        status = {o["name"]: o["status"] for o in value["operators"]}
        self.assertEqual((code, {n for n, s in status.items() if s != "pass"}), (0, {"dnn.conv.tf32.exact", "dnn.conv.tf32.random"}))
        detail = next(o["detail"] for o in value["operators"] if o["name"] == "dnn.conv.f32.exact")
        for part in ("6 shapes", "GEMM", "Winograd", "direct", "MIOpen 3.2.0", "exact data"):
            self.assertIn(part, detail)
        for algorithm, in_detail in (("direct", "direct, solution 85"), ("Winograd", "Winograd, solution 53"), ("GEMM", "GEMM, MIOpen")):
            with self.subTest(algorithm):
                code, value = convolutions(FF_VENDOR_WRONG=algorithm)
                wrong = [o for o in value["operators"] if o["status"] == "fail"]
                self.assertEqual(code, 1)
                self.assertIn("dnn.conv.f32.exact", [o["name"] for o in wrong])
                self.assertIn(in_detail, wrong[0]["detail"])
                self.assertIn("elements are wrong", wrong[0]["detail"])
        code, value = convolutions(FF_VENDOR_SOLUTIONS="0")
        self.assertEqual((code, {o["status"] for o in value["operators"]}), (0, {"unsupported"}))
        code, value = self.ops("--device", "hip", "--small", "--family", "dnn")  # the stand-in for HIP alone
        if not any(o["status"] == "pass" for o in value["operators"]):  # no MIOpen on this machine
            self.assertEqual((code, {o["status"] for o in value["operators"]}), (0, {"unsupported"}))
            self.assertIn("install MIOpen", value["operators"][0]["detail"])

    @unittest.skipUnless(os.environ.get("FIRSTFAULT_LONG"), "a long test")
    def test_rung_2_tells_miopen_from_the_device(self):
        env = {"FIRSTFAULT_LIBRARIES": "%s:%s" % (DOUBLE, VENDOR)}
        for more, causes in (({"FF_VENDOR_FAIL": "miopenConvolutionForwardCompileSolution:7"}, ["library-coverage.miopen-compile-failed", "library-coverage.miopen-database-missing"]),
                             ({"FF_VENDOR_WRONG": "Winograd"}, ["precision.library-numerics", "hardware.wrong-results"])):
            with self.subTest(more):
                code, first, check = self.check(**env, **more)
                self.assertEqual((code, first, check["causes"]), (1, "compute.convolution", causes))

    @unittest.skipUnless(os.environ.get("FIRSTFAULT_LONG"), "a long test")
    def test_every_call_that_fails_costs_an_operator_and_no_more(self):
        text = (pathlib.Path(__file__).resolve().parents[1] / "gpu/hip_double.cpp").read_text()
        calls = sorted(set(re.findall(r"^int (hip\w+)\(", text, re.M)))
        self.assertGreater(len(calls), 45)
        for call in calls:
            for code in (1, 2, 719, 999):
                with self.subTest(call=call, code=code):
                    process = run("ops", "run", "--native", "--json", "--device", "hip", "--small", "--repeat", "1", "--family", "allocation,memory,launch",
                                  env={**self.env, "FF_DOUBLE_FAIL": "%s:%d" % (call, code)}, timeout=600)
                    self.assertIn(process.returncode, (0, 1, 3), process.stderr)
                    if process.returncode == 3:
                        self.assertTrue(document(process)["remedy"])
                    else:
                        self.assertNotIn("hang", {o["status"] for o in document(process)["operators"]})

    def test_kernels_compile_without_a_device(self):
        process = run("ops", "compile", "--target", "gfx942", "--json", env={**self.env, "FF_DOUBLE_DEVICES": "0"})
        value = document(process)
        self.assertEqual((process.returncode, {r["status"] for r in value["results"]}), (0, {"pass"}))
        self.assertEqual(run("ops", "compile", "--target", "riscv").returncode, 2)

    def test_a_missing_compiler_is_no_verdict_about_kernels(self):
        with tempfile.TemporaryDirectory() as folder:
            for library in ("libamdhip64.so.6", "libhiprtc.so.6"):
                pathlib.Path(folder, library).write_bytes(b"\x7fELF" + b"\0" * 100)
            process = run("ops", "compile", "--target", "gfx942", "--json", env={**self.env, "FIRSTFAULT_LIBRARIES": folder})
        if process.returncode == 0:
            self.skipTest("this machine has a hipRTC of its own")
        self.assertEqual(process.returncode, 3)
        self.assertEqual({r["status"] for r in document(process)["results"]}, {"not-run"})


class Pack(Base):
    def test_one_command_runs_and_packs(self):
        with tempfile.TemporaryDirectory() as folder:
            process = run("ops", "pack", "-o", "here.tar.zst", "--steps", "snapshot,stress", "--device", "cpu", "--for", "1s", "--json", env={**self.env, "HF_TOKEN": "hf_abcdefghijklmnopqrstuvwxyz012345"}, cwd=folder, timeout=600)
            value = document(process)
            self.assertEqual([(s["step"], s["exit_code"]) for s in value["steps"]], [("snapshot", 0), ("stress", 0)], value)
            self.assertEqual(process.returncode, 0)
            names = subprocess.run(["tar", "--zstd", "-tf", "here.tar.zst"], cwd=folder, capture_output=True, text=True, check=True).stdout.split()
            for name in ("pack.json", "machine.tar.zst", "stress.json"):
                self.assertIn(name, names)
            self.assertTrue(any(name.startswith("runs/") and name.endswith("stress.json") for name in names), names)
            subprocess.run(["tar", "--zstd", "-xf", "here.tar.zst"], cwd=folder, check=True)
            self.assertFalse([p for p in pathlib.Path(folder).rglob("*") if p.is_file() and b"hf_abcdefghij" in p.read_bytes()])

    def test_wrong_usage(self):
        self.assertEqual(run("ops", "pack", "--steps", "everything", env=self.env).returncode, 2)
        self.assertEqual(run("ops", "pack", "--python", "/nonexistent/python", env=self.env).returncode, 2)


class Stress(Base):
    def stress(self, *arguments):
        process = run("stress", *arguments, "--device", "cpu", "--memory", "8M", "--json", env=self.env, timeout=600)
        return process.returncode, document(process)["results"]

    def test_all_kinds_pass_and_check_something(self):
        code, results = self.stress("all", "--for", "2s")
        self.assertEqual(code, 0, results)
        self.assertEqual([r["kind"] for r in results], ["memory", "gemm", "bandwidth", "atomics", "launch"])
        for r in results:
            self.assertEqual(r["status"], "pass")
            self.assertGreater(r["checked_bytes"], 0)
            self.assertGreater(r["errors_per_byte_at_most"], 0)

    def test_planted_faults_are_found(self):
        for kind, plant, status in (("memory", "flipped-bit-device", "fail"), ("gemm", "swapped-operand", "fail"), ("atomics", "race", "fail"), ("launch", "short-launch", "fail"),
                                    ("launch", "hang", "hang")):
            with self.subTest(plant):
                code, results = self.stress(kind, "--for", "1s", "--plant", plant, "--hang-limit", "8")
                self.assertEqual((code, results[0]["status"]), (1, status), results)

    def test_any_signal_stops_it_cleanly(self):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1):
            with self.subTest(number):
                process = subprocess.Popen([BINARY, "stress", "launch", "--for", "60s", "--device", "cpu", "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                           env={**os.environ, **self.env})
                children = pathlib.Path(f"/proc/{process.pid}/task")
                while not any(path.read_text() for path in children.glob("*/children")):  # it works: that takes as long as it takes
                    self.assertIsNone(process.poll())
                    time.sleep(0.02)
                process.send_signal(number)
                out, err = process.communicate(timeout=600)
                value = json.loads(out)
                self.assertEqual((process.returncode, value["interrupted_by"]), (128 + number, signal.Signals(number).name), err)
                self.assertEqual(value["results"][0]["status"], "pass")

    def test_wrong_arguments(self):
        self.assertEqual(run("stress", "memory", "--for", "soon", "--device", "cpu", env=self.env).returncode, 2)
        self.assertEqual(run("stress", "memory", "--memory", "lots", "--device", "cpu", env=self.env).returncode, 2)
        self.assertEqual(run("stress", "everything", env=self.env).returncode, 2)
        process = run("stress", "memory", "--memory", "900T", "--device", "cpu", env=self.env)
        self.assertEqual(process.returncode, 3, process.stdout)
        self.assertIn("free", process.stderr)


if __name__ == "__main__":
    unittest.main()
