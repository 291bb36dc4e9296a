"""firstfault isolate on real commands."""
import pathlib, tempfile, unittest

from harness import document, run


class Isolate(unittest.TestCase):
    def test_the_switch_that_cures_is_named(self):
        process = run("isolate", "--json", "--only", "serialise,no-sdma", "--api", "hip", "--", "sh", "-c", 'test "$HSA_ENABLE_SDMA" = 0')
        self.assertEqual(process.returncode, 1)
        value = document(process)
        effects = {one["switch"]: one["effect"] for one in value["outcomes"]}
        self.assertEqual(effects, {"unchanged": "none", "serialise": "none", "no-sdma": "cured"})
        self.assertTrue(value["conclusion"].startswith("no-sdma changes the outcome"))
        self.assertEqual(len(value["outcomes"][0]["runs"]), 5)

    def test_a_signal_counts_and_an_exit_status_does_not(self):
        value = document(run("isolate", "--json", "--only", "one-thread", "--expect", "signal", "--repeat", "2", "--", "sh", "-c", "kill -SEGV $$"))
        self.assertEqual(value["outcomes"][0]["failed"], 2)
        process = run("isolate", "--json", "--only", "one-thread", "--expect", "signal", "--repeat", "2", "--", "sh", "-c", "exit 1")
        self.assertEqual((process.returncode, document(process)["outcomes"][0]["failed"]), (0, 0))

    def test_a_run_that_does_not_end_is_ended(self):
        value = document(run("isolate", "--json", "--only", "one-thread", "--limit", "0.3", "--repeat", "1", "--", "sleep", "60"))
        self.assertEqual(value["outcomes"][0]["failed"], 1)
        self.assertLess(value["outcomes"][0]["runs"][0]["seconds"], 10)

    def test_a_variable_that_comes_too_late_is_named(self):
        with tempfile.TemporaryDirectory() as folder:
            script = pathlib.Path(folder) / "train.py"
            script.write_text("import sys\nif 0:\n    import torch\nimport os\nos.environ['HSA_ENABLE_SDMA'] = '0'\n")
            process = run("isolate", "--json", "--only", "one-thread", "--repeat", "1", "--", "python3", script)
            self.assertEqual(process.returncode, 1)
            late = document(process)["late_variables"]
            self.assertEqual([(one["name"], one["line"], one["import_line"]) for one in late], [("HSA_ENABLE_SDMA", 5, 3)])
            text = run("isolate", "--only", "one-thread", "--repeat", "1", "--", "python3", script).stdout
            self.assertIn("HSA_ENABLE_SDMA", text)
            self.assertIn("runtime.environment-late", text)

    def test_a_setting_that_only_pytorch_has_is_made_when_torch_is_imported(self):
        """On a torch of three lines: what no environment variable sets is set in the user's process, and their own sitecustomize runs."""
        with tempfile.TemporaryDirectory() as folder:
            here = pathlib.Path(folder)
            (here / "torch.py").write_text("import types\nbackends = types.SimpleNamespace(cudnn=types.SimpleNamespace(enabled=True, benchmark=True))\n"
                                           "def use_deterministic_algorithms(on, warn_only=False):\n    backends.cudnn.deterministic = on\n")
            (here / "sitecustomize.py").write_text("import os\nos.environ['OWN'] = '1'\n")
            (here / "train.py").write_text("import os, sys, torch\nassert os.environ['OWN'] == '1'\nsys.exit(torch.backends.cudnn.enabled)\n")
            command = ("isolate", "--json", "--only", "no-dnn,deterministic,sdpa-math", "--api", "hip", "--")
            value = document(run(*command, "python3", here / "train.py", env={"PYTHONPATH": folder}))
            self.assertEqual({one["switch"]: one["effect"] for one in value["outcomes"]}, {"unchanged": "none", "sdpa-math": "none", "no-dnn": "cured", "deterministic": "none"})
            self.assertEqual([one["set"] for one in value["outcomes"]][2], ["FIRSTFAULT_TORCH_SETTING=no-dnn"])
            # What is no Python command has no such settings.
            value = document(run(*command, "true"))
            self.assertEqual([one["switch"] for one in value["outcomes"]], ["unchanged"])

    def test_wrong_usage(self):
        for arguments in (["isolate"], ["isolate", "--only", "nonsense", "--", "true"], ["isolate", "--expect", "text", "--", "true"],
                          ["isolate", "--expect", "slow", "--", "true"]):
            self.assertEqual(run(*arguments).returncode, 2, arguments)
        for program in ("/nonexistent/program", "no-such-program-anywhere"):
            process = run("isolate", "--json", "--", program)
            self.assertEqual((process.returncode, document(process)["where"]), (2, program))

    def test_the_switches_are_listed(self):
        value = document(run("isolate", "--list", "--json"))
        self.assertIn(["AMD_SERIALIZE_KERNEL=3"], [one["set"] for one in value["switches"]])
        self.assertIn("what", value["switches"][0])


if __name__ == "__main__":
    unittest.main()
