"""The operators of a real PyTorch (Debian's), of one with planted faults, and interpreters without one."""
import json, os, pathlib, stat, subprocess, tempfile, unittest

from harness import ROOT, document, run

# The interpreter whose PyTorch is tried; another one than Debian's when named.
PYTHON = os.environ.get("FIRSTFAULT_OPS_PYTHON") or "/usr/bin/python3"
TORCH = os.environ.get("FIRSTFAULT_TORCH_PYTHON", PYTHON)
PLANTED = str(ROOT / "tests/planted")
THREADS = {"OMP_NUM_THREADS": "1"}
# What starts PyTorch many times; tools/long_tests.sh sets it.
long = unittest.skipUnless(os.environ.get("FIRSTFAULT_LONG"), "a long test")
HAS_TORCH = subprocess.run([PYTHON, "-c", "import torch"], capture_output=True).returncode == 0
with_torch = unittest.skipUnless(HAS_TORCH, f"no PyTorch for {PYTHON} (Debian: python3-torch; ./dev setup says where there is none)")


class Folder(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.folder = pathlib.Path(holder.name)

    def ops(self, *arguments, plant="", **more):
        env = dict(THREADS, FIRSTFAULT_RUNS=str(self.folder / "runs"))
        if plant:
            env.update(PYTHONPATH=PLANTED, FIRSTFAULT_PLANT=plant)
        return run(*arguments, env=env, cwd=self.folder, timeout=1200, **more)

    def python(self, text):
        """An interpreter whose torch is this text."""
        package = self.folder / "fake" / "torch"
        package.mkdir(parents=True)
        (package / "__init__.py").write_text(text)
        script = self.folder / "python"
        script.write_text("#!/bin/sh\nPYTHONPATH=%s exec %s \"$@\"\n" % (package.parent, PYTHON))
        script.chmod(script.stat().st_mode | stat.S_IXUSR)
        return str(script)


class WithoutTorch(Folder):
    def test_an_interpreter_that_is_none(self):
        (self.folder / "x.py").write_text("")
        (self.folder / "ops.json").write_text(json.dumps({"schema": "firstfault/ops/1", "layer": "torch", "device": {}, "repeat": 1, "operators": []}))
        for command in (("ops", "run", "--torch", "--device", "cpu"), ("ops", "reduce", "exp"), ("ops", "isolate", "exp"), ("ops", "fallback", "ops.json"), ("nan", "x.py")):
            for python in ("/nonexistent/python", "no-such-python-anywhere"):
                with self.subTest(command[:2], python=python):
                    process = self.ops(*command, "--python", python, "--json")
                    self.assertEqual((process.returncode, document(process)["where"]), (2, python))

    def test_a_torch_that_does_not_import(self):
        process = self.ops("ops", "run", "--torch", "--python", self.python("raise ImportError('libamdhip64.so.6: cannot open shared object file')"), "--device", "cpu", "--json")
        self.assertEqual(process.returncode, 3)
        self.assertIn("libamdhip64.so.6", document(process)["what"])

    def test_rung_2_names_why_torch_does_not_import(self):
        for text, cause in (("raise ImportError('libamdhip64.so.6: cannot open shared object file')", "runtime.library-missing"),
                            ("raise ImportError('x.so: undefined symbol: _ZN3c10')", "runtime.undefined-symbol"),
                            ("import os; os.kill(os.getpid(), 11)", "runtime.library-missing")):
            with self.subTest(text), tempfile.TemporaryDirectory() as holder:
                self.folder = pathlib.Path(holder)
                process = self.ops("check", "--rung", "compute", "--only", "compute.torch-imports", "--device", "cpu", "--python", self.python(text), "--json")
                checks = [c for r in document(process)["rungs"] for c in r["checks"] if c["id"] == "compute.torch-imports"]
                self.assertEqual([c["status"] for c in checks], ["fail"])
                self.assertEqual(checks[0]["causes"], [cause])

    def test_wrong_usage(self):
        self.assertEqual(self.ops("ops", "run").returncode, 2)
        self.assertEqual(self.ops("ops", "run", "--torch", "--native").returncode, 2)
        self.assertEqual(self.ops("ops", "run", "--torch", "--family", "nonsense", "--python", PYTHON).returncode, 2)
        self.assertEqual(self.ops("ops", "run", "--torch", "--dtype", "f8", "--python", PYTHON).returncode, 2)
        self.assertEqual(self.ops("ops", "reduce", "nonsense", "--python", PYTHON).returncode, 2)
        self.assertEqual(self.ops("nan", "nonsense.py").returncode, 2)


@with_torch
class RealTorch(Folder):
    def test_operators_pass_and_runs_compare(self):
        process = self.ops("ops", "run", "--torch", "--python", PYTHON, "--device", "cpu", "--dtype", "float32,float64", "--name", "add,exp,linear,softmax,lstm,sdpa", "--repeat", "2", "--json")
        value = document(process)
        self.assertEqual(process.returncode, 0, process.stdout[-2000:])
        status = {one["name"]: one["status"] for one in value["operators"]}
        self.assertEqual(status["exp.f32"], "pass")
        self.assertEqual(status["linear.f64"], "pass")
        self.assertIn(status["sdpa_flash.f32"], ("pass", "unsupported"))
        self.assertGreater({one["name"]: one["time_ms"] for one in value["operators"]}["linear.f32"], 0)
        compared = document(self.ops("ops", "compare", "last", "last", "--json"))
        self.assertEqual(compared["changes"], [])

    def test_collectives_over_gloo(self):
        value = document(self.ops("ops", "run", "--torch", "--python", PYTHON, "--device", "cpu", "--dtype", "float32", "--family", "distributed", "--repeat", "2", "--json"))
        status = {one["name"]: one["status"] for one in value["operators"]}
        self.assertEqual(len(status), 10)
        for name in ("all_reduce_sum", "broadcast", "all_gather", "barrier", "ddp_step"):
            self.assertEqual(status[name + ".f32"], "pass", value)
        self.assertEqual(set(status.values()) - {"pass", "unsupported"}, set())

    @long
    def test_rung_2_on_the_cpu(self):
        value = document(self.ops("check", "--rung", "compute", "--only", "compute.torch-matmul", "--device", "cpu", "--python", PYTHON, "--json"))
        status = {c["id"]: c["status"] for r in value["rungs"] for c in r["checks"]}
        self.assertEqual((status["compute.torch-imports"], status["compute.torch-matmul"]), ("pass", "pass"))


@with_torch
class PlantedFaults(Folder):
    def test_each_is_found_costs_itself_only_and_is_rerouted(self):
        plant = "exp:ulp,softmax:odd,sum:nondet,silu:nanlarge,cumsum:crash,topk:hang,layer_norm:leak"
        process = self.ops("ops", "run", "--torch", "--python", PYTHON, "--device", "cpu", "--dtype", "float32,float64", "--limit", "15",
                           "--name", "exp,softmax,sum,silu,cumsum,topk,layer_norm,sort", "--json", plant=plant)
        self.assertTrue(process.stdout, process.stderr)
        value = document(process)
        self.assertEqual(process.returncode, 1)
        status = {one["name"]: one["status"] for one in value["operators"]}
        detail = {one["name"]: one["detail"] for one in value["operators"]}
        expected = {"exp.f32": "fail", "softmax.f32": "fail", "sum.f32": "nondeterministic", "silu.f32": "nan", "cumsum.f32": "crash", "topk.f32": "hang", "layer_norm.f32": "fail",
                    "sort.f32": "pass", "exp2.f32": "pass", "topk.f64": "pass", "cumsum.f64": "pass"}
        self.assertEqual({name: status[name] for name in expected}, expected)
        self.assertIn("odd inputs", detail["softmax.f32"])
        self.assertIn("bytes behind", detail["layer_norm.f32"])
        self.assertIn("SIGSEGV", detail["cumsum.f32"])
        evidence = pathlib.Path(value["run"]) / "artifacts/evidence"
        self.assertIn("Segmentation fault", (evidence / "cumsum.f32.stderr.txt").read_text())

        process = self.ops("ops", "fallback", "last", "-o", "fallback.py", "--json", plant=plant)
        routes = {one["name"] + "." + one["dtype"]: one["to_dtype"] for one in document(process)["routes"]}
        self.assertEqual(routes, {name: "f64" for name, verdict in expected.items() if verdict != "pass"} | {"sum_all.f32": "f64"})
        # A small training that calls all seven: right without the faults, and with them by way of the module.
        script = self.folder / "train.py"
        script.write_text(TRAINING)
        ended = {}
        for kind, env in (("right", dict(os.environ, **THREADS)), ("rerouted", dict(os.environ, PYTHONPATH=PLANTED, FIRSTFAULT_PLANT=plant, REROUTE="1", **THREADS))):
            ended[kind] = subprocess.run([PYTHON, script], env=env, cwd=self.folder, capture_output=True, text=True, timeout=120)
            self.assertEqual(ended[kind].returncode, 0, ended[kind].stderr)
        losses = {kind: [float(word) for word in process.stdout.split()] for kind, process in ended.items()}
        self.assertEqual(len(losses["right"]), 4)
        self.assertLess(losses["right"][-1], losses["right"][0])
        for right, rerouted in zip(losses["right"], losses["rerouted"]):
            self.assertAlmostEqual(right, rerouted, delta=1e-5 * abs(right))
        self.assertEqual(ended["rerouted"].stderr.count("torch.cumsum in float32 (crash)"), 1)

    def test_the_time_for_a_fallback_is_bounded(self):
        plant = "exp:ulp,softmax:odd"
        python = self.folder / "python"  # how soon PyTorch starts is the machine's: this one lists its operators, and then does not start
        python.write_text("#!/bin/sh\ncd %s\nif [ -e slow ]; then [ -e listed ] && exec sleep 250; touch listed; fi\ncd - >/dev/null\nexec %s \"$@\"\n" % (self.folder, PYTHON))
        python.chmod(0o755)
        self.ops("ops", "run", "--torch", "--python", python, "--device", "cpu", "--dtype", "float32", "--repeat", "2", "--name", "exp,softmax", "--json", plant=plant)
        (self.folder / "slow").touch()
        process = self.ops("ops", "fallback", "last", "-o", "fallback.py", "--python", python, "--seconds", "1", "--json", plant=plant)
        value = document(process)
        self.assertEqual((process.returncode, value["routes"], value["file"]), (1, [], None))
        self.assertIn("within 1 s", value["left_out"][0])

    @long
    def test_reduced_to_a_short_script_that_fails_by_itself(self):
        for plant, name in (("exp:ulp", "exp"), ("softmax:odd", "softmax"), ("sum:nondet", "sum"), ("silu:nanlarge", "silu"), ("cumsum:crash", "cumsum"),
                            ("topk:hang", "topk"), ("layer_norm:leak", "layer_norm")):
            with self.subTest(plant):
                value = document(self.ops("ops", "reduce", name + ".f32", "--python", PYTHON, "--device", "cpu", "--limit", "5" if "hang" in plant else "60", "--seconds", "300", "-o", self.folder, "--json", plant=plant))
                self.assertTrue(value["failed"])
                self.assertTrue(value["script_fails"], value)
                self.assertLess(len(value["script"].splitlines()), 30)
                self.assertTrue(all(pathlib.Path(path).exists() for path in value["files"]))
        process = self.ops("ops", "reduce", "softmax.f32", "--python", PYTHON, "--device", "cpu", "--json")
        self.assertEqual((process.returncode, document(process)["failed"]), (0, False))

    @long
    def test_isolated_to_the_switch(self):
        value = document(self.ops("ops", "isolate", "linear.f32", "--python", PYTHON, "--device", "cpu", "--only", "serialise,one-thread", "--repeat", "5", "--json", plant="linear:serial"))
        effects = {one["switch"]: one["effect"] for one in value["outcomes"]}
        self.assertEqual(effects, {"unchanged": "none", "serialise": "cured", "one-thread": "none"})


TRAINING = """
import os
import torch
import torch.nn.functional as F
if os.environ.get("REROUTE"):
    import fallback
torch.manual_seed(0)
w = torch.randn(7, 7).requires_grad_(True)
x = torch.randn(5, 7) * 30
optimizer = torch.optim.SGD([w], lr=0.05)
for step in range(4):
    h = F.layer_norm(F.silu(x @ w), (7,))
    h = torch.cumsum(torch.exp(h * 0.1), 1).topk(5, 1)[0]
    loss = (torch.softmax(h, -1) * torch.arange(5.0)).sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(float(loss.detach()))
"""

MODEL = """
import torch, torch.nn as nn
torch.manual_seed(0)
class Block(nn.Module):
    def __init__(self, i):
        super().__init__(); self.i = i; self.up = nn.Linear(8, 8); self.act = nn.SiLU()
    def forward(self, x):
        h = self.up(x)
        %s
        return x + self.act(h)
net = nn.Sequential(*[Block(i) for i in range(6)])
for step in range(2):
    loss = net(torch.ones(2, 8)).square().mean()
    loss.backward()
"""


@with_torch
class NanSearch(Folder):
    def search(self, line, plant=""):
        (self.folder / "model.py").write_text(MODEL % line)
        process = self.ops("nan", "model.py", "--python", PYTHON, "--json", plant=plant)
        return process.returncode, document(process)

    def test_clean(self):
        code, value = self.search("pass")
        self.assertEqual((code, value["finite"]), (0, True))
        self.assertEqual(value["clean"]["backward_steps"], 2)

    def test_forward(self):
        code, value = self.search("h = torch.log(h * 0) if self.i == 3 else h")
        found = value["found"]
        self.assertEqual((code, found["stage"], found["module"], found["operator"], found["verdict"]), (1, "forward", "3", "aten.log.default", "arithmetic"))
        self.assertTrue(found["inputs_finite"])

    def test_masks_of_minus_infinity_are_no_fault(self):
        for text in ("y = x.masked_fill(torch.ones_like(x).triu(1).bool(), float('-inf'))", "y = x.clone(); y[..., 3] = float('-inf')"):
            with self.subTest(text):
                (self.folder / "model.py").write_text(
                    "import torch, torch.nn as nn\nclass Mask(nn.Module):\n    def forward(self, x):\n        %s\n        return y\n" % text +
                    "class Same(nn.Module):\n    def forward(self, x):\n        return x + 1\n"
                    "m = nn.Sequential(nn.Linear(4, 4), Mask(), Same(), nn.Softmax(-1))\nm(torch.ones(4, 4)).sum().backward()\n")
                process = self.ops("nan", "model.py", "--python", PYTHON, "--json")
                self.assertEqual((process.returncode, document(process)["finite"]), (0, True), process.stdout)

    def test_backward(self):
        code, value = self.search("h = h + torch.sqrt((h * 0).abs()) if self.i == 4 else h")
        found = value["found"]
        self.assertEqual((code, found["stage"], found["module"], found["operator"]), (1, "backward", "4", "SqrtBackward0"))

    def test_a_gradient_that_only_a_parameter_gets(self):
        code, value = self.search("h = h + self.up.bias * torch.sqrt((self.up.bias * 0).abs()) if self.i == 2 else h")
        found = value["found"]
        self.assertEqual((code, found["stage"], found["module"], found["operator"]), (1, "backward", "2", "SqrtBackward0"))

    def test_between_two_models_of_the_script(self):
        (self.folder / "model.py").write_text(
            "import torch, torch.nn as nn\na, b = nn.Sequential(nn.Linear(4, 4), nn.Softplus()), nn.Linear(4, 2)\n"  # a ReLU that is off would stop the NaN
            "h = a(torch.ones(3, 4))\nb(torch.sqrt((h * 0).abs()) + h).sum().backward()\n")
        found = document(self.ops("nan", "model.py", "--python", PYTHON, "--json"))["found"]
        self.assertEqual((found["stage"], found["module"], found["operator"]), ("backward", "", "SqrtBackward0"))

    def test_what_stopped_the_script_itself_is_found(self):
        (self.folder / "model.py").write_text(
            "import torch\nnet = torch.nn.Linear(2, 2)\nwith torch.no_grad():\n    y = net(torch.full((1, 2), float('inf')))\nassert torch.isfinite(y).all(), 'bad'\n")
        found = document(self.ops("nan", "model.py", "--python", PYTHON, "--json"))["found"]
        self.assertEqual((found["stage"], found["module"], found["verdict"]), ("forward", "Linear", "inputs"))
        self.assertEqual(found["sentence"], "Forward pass 0: the first value that is not finite is what Linear (Linear) was given (0 nan, 2 inf of 2 values, shape [1, 2]): "
                         "made outside of every module, or data.")

    def test_a_parameter_that_is_not_finite(self):
        (self.folder / "model.py").write_text(
            "import torch\nnet = torch.nn.Linear(2, 2)\nwith torch.no_grad():\n    net.bias[1] = float('nan')\nnet(torch.ones(1, 2)).sum().backward()\n")
        found = document(self.ops("nan", "model.py", "--python", PYTHON, "--json"))["found"]
        self.assertEqual((found["verdict"], found["cause"]), ("parameters", "model.nonfinite"))
        self.assertEqual(found["sentence"], "Forward pass 1: the first value that is not finite is a parameter of Linear (Linear): bias (1 nan, 0 inf of 2 values, shape [2]).")

    def test_a_step_that_the_grad_scaler_skips_is_no_fault(self):
        version = subprocess.run([TORCH, "-c", "import torch; print(torch.__version__)"], capture_output=True, text=True).stdout
        if tuple(map(int, (version or "0.0").split(".")[:2])) < (2, 3):
            self.skipTest("FIRSTFAULT_TORCH_PYTHON names no PyTorch whose GradScaler works on the CPU")
        script = MODEL.replace("for step in range(2):", "scaler = torch.amp.GradScaler('cpu', init_scale=SCALE)\noptimizer = torch.optim.SGD(net.parameters(), lr=1e-3)\nfor step in range(4):").replace(
            "    loss.backward()", "    optimizer.zero_grad()\n    scaler.scale(loss).backward()\n    scaler.step(optimizer)\n    scaler.update()")
        for scale, line, expected in (("2.0**127", "h = h * 30", (0, True)), ("65536.0", "h = h + torch.sqrt((h * 0).abs()) if self.i == 4 else h", (1, False))):
            with self.subTest(line):
                (self.folder / "model.py").write_text((script % line).replace("SCALE", scale))
                process = self.ops("nan", "model.py", "--python", TORCH, "--json")
                value = document(process)
                self.assertEqual((process.returncode, value["finite"]), expected, value)
                if value["finite"]:
                    self.assertGreater(value["clean"]["scaler_skips"], 0)
                else:
                    self.assertEqual((value["found"]["module"], value["found"]["operator"], value["found"]["verdict"]), ("4", "SqrtBackward0", "arithmetic"))

    @long
    def test_a_wrong_kernel_is_told_from_an_overflow(self):
        # What is above 20 in block 2 stays so after it: forward meets block 2 first, backward block 5.
        for plant, stage, module, operator in (("silu:kernel", "forward", "2.act", "aten.silu.default"), ("silu:kernelback", "backward", "5.act", "SiluBackward0")):
            with self.subTest(plant):
                code, value = self.search("h = h + 60 if self.i == 2 else h", plant)
                found = value["found"]
                self.assertEqual((code, found["stage"], found["module"], found["operator"], found["verdict"], found["cause"]),
                                 (1, stage, module, operator, "wrong-operator", "precision.library-numerics"))

    @long
    def test_what_a_mask_takes_away_is_harmless(self):
        code, value = self.search("h = h + torch.sqrt(nn.ReLU()(h - 100)) if self.i == 4 else h")
        self.assertEqual((code, value["finite"]), (0, True))
        self.assertGreater(value["clean"]["masked"], 0)


if __name__ == "__main__":
    unittest.main()
