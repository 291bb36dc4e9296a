"""firstfault model load, diff and budget."""
import json, math, os, pathlib, shutil, subprocess, sys, tempfile, unittest

import models
from harness import BINARY, document, run

STAND_INS = pathlib.Path(__file__).parent / "stand_ins"
NAN = float("nan")


class Case(unittest.TestCase):
    def setUp(self):
        self.tmp = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.tmp, True)

    def weights(self, name, tensors=None):
        path = self.tmp / name
        path.write_bytes(models.safetensors(tensors or {"a.weight": models.f32(3, 4), "b.bias": models.f32(5)}))
        return path


def by_id(value):
    return {c["id"]: c for c in value["checks"]}


class Load(Case):
    """With stand-ins for torch and safetensors, which can fail as real ones do."""

    def load(self, path, fault="", gpu=False, *more):
        env = {"PYTHONPATH": str(STAND_INS), "MODEL_LOAD_FAULT": fault, "MODEL_LOAD_GPU": "1" if gpu else ""}
        process = run("model", "load", path, "--python", sys.executable, "--json", *more, env=env)
        return process.returncode, document(process)

    def test_every_tensor_is_equal_on_the_cpu_and_after_the_device(self):
        path = self.weights("a.safetensors")
        code, value = self.load(path)
        self.assertEqual((code, value["first_fault"]), (0, None))
        checks = by_id(value)
        self.assertEqual(checks["model.load-equal"]["measured"]["equal"], 2)
        self.assertEqual(checks["model.load-device"]["status"], "skip")
        self.assertGreater(checks["model.loads"]["measured"]["host_peak_bytes"], 1 << 20)
        code, value = self.load(path, "", True)
        device = by_id(value)["model.load-device"]
        self.assertEqual((code, device["status"], device["measured"]["equal"], device["measured"]["device_peak_bytes"]), (0, "pass", 2, 12345))
        self.assertEqual(by_id(self.load(path, "", True, "--device", "cpu")[1])["model.load-device"]["status"], "skip")

    def test_each_failure_is_placed_and_named(self):
        path = self.weights("a.safetensors")
        for fault, gpu, check, cause in (("read-error", False, "model.loads", "model.load-failed"), ("read-crash", False, "model.loads", "model.load-failed"),
                                         ("read-killed", False, "model.loads", "memory.host-exhausted"), ("read-alters", False, "model.load-equal", "model.load-altered"),
                                         ("drop", False, "model.load-equal", "model.load-altered"), ("transfer-memory", True, "model.load-device", "memory.vram-exhausted"),
                                         ("transfer-crash", True, "model.load-device", "model.load-failed"), ("transfer-alters", True, "model.load-device", "model.load-altered")):
            with self.subTest(fault):
                code, value = self.load(path, fault, gpu)
                self.assertEqual((code, value["first_fault"]), (1, check), value)
                found = by_id(value)[check]
                self.assertEqual(found["causes"][0], cause, found)
                self.assertTrue(found["fix"] and found["verify"])
        self.assertIn("SIGSEGV", by_id(self.load(path, "transfer-crash", True)[1])["model.load-device"]["summary"])
        self.assertIn("the way to Stand-in GPU", by_id(self.load(path, "transfer-memory", True)[1])["model.load-device"]["summary"])

    def test_a_framework_that_does_not_start_is_an_error_and_no_fault_of_the_model(self):
        path = self.weights("a.safetensors")
        code, value = self.load(path, "import")
        self.assertEqual((code, by_id(value)["model.loads"]["status"]), (3, "error"))
        self.assertIn("libamdhip64", by_id(value)["model.loads"]["summary"])
        code, value = self.load(path, "no-safetensors")
        found = by_id(value)["model.loads"]
        self.assertEqual((code, found["status"], found["causes"]), (3, "error", []))
        self.assertIn("the environment lacks safetensors", found["summary"])
        process = run("model", "load", path, "--python", self.tmp / "nowhere", "--json")
        self.assertEqual((process.returncode, document(process)["where"]), (2, str(self.tmp / "nowhere")))

    def test_a_damaged_file_is_not_given_to_the_framework(self):
        path = self.weights("a.safetensors")
        path.write_bytes(path.read_bytes()[:-3])
        code, value = self.load(path)
        self.assertEqual((code, value["first_fault"], by_id(value)["model.loads"]["status"]), (1, "model.files-whole", "skip"))

    def test_nan_after_loading(self):
        path = self.weights("a.safetensors", {"a": ("F32", (2,), models.floats(1, NAN))})
        code, value = self.load(path)
        self.assertEqual((code, value["first_fault"]), (1, "model.load-finite"))


class Diff(Case):
    def diff(self, a, b, *more):
        process = run("model", "diff", a, b, "--json", *more)
        return process.returncode, document(process)

    def test_the_same_model_was_not_trained(self):
        a = self.weights("a.safetensors")
        code, value = self.diff(a, a)
        self.assertEqual((code, value["equal"], value["moved"], value["tensors"]), (0, 2, 0, []))
        code, value = self.diff(a, a, "--fine-tune")
        self.assertEqual(code, 1)
        self.assertIn("nothing moved", value["faults"][0])

    def test_distances_are_right_and_added_and_removed_tensors_are_listed(self):
        a = self.weights("a.safetensors", {"m.x.weight": ("F32", (2, 2), models.floats(3, 0, 4, 0)), "m.old": models.f32(2), "m.s": models.f32(2)})
        b = self.weights("b.safetensors", {"m.x.weight": ("F32", (2, 2), models.floats(3, 1, 2, 0)), "m.new": models.f32(2), "m.s": models.f32(3)})
        code, value = self.diff(a, b, "--fine-tune")
        self.assertEqual(code, 0, value["faults"])
        self.assertEqual({t["name"]: t["change"] for t in value["tensors"]}, {"m.x.weight": "values", "m.old": "removed", "m.new": "added", "m.s": "shape"})
        distance = next(t for t in value["tensors"] if t["name"] == "m.x.weight")["distance"]
        self.assertAlmostEqual(distance["l2"], 5 ** 0.5)
        self.assertAlmostEqual(distance["relative"], 5 ** 0.5 / 5)
        self.assertEqual((distance["max"], distance["changed_elements"]), (2, 2))

    def test_only_norm_layers_moved(self):
        t = {"h.0.norm1.weight": models.f32(4), "h.0.linear.weight": models.f32(4, 4)}
        a = self.weights("a.safetensors", t)
        b = self.weights("b.safetensors", {**t, "h.0.norm1.weight": ("F32", (4,), models.floats(1, 2, 3, 4))})
        code, value = self.diff(a, b, "--fine-tune")
        self.assertEqual(code, 1)
        self.assertIn("only normalisation layers moved", value["faults"][0])

    def test_prefixes_types_and_formats_mix(self):
        values = models.floats(1, -2, 0.5)
        a = self.weights("a.safetensors", {"w": ("F32", (3,), values)})
        b = self.weights("b.safetensors", {"module.w": ("BF16", (3,), b"\x80\x3f\x00\xc0\x00\x3f")})
        code, value = self.diff(a, b)
        self.assertEqual((value["wrapper"], value["type_changed"], value["equal"]), ("module.", 1, 1))
        zipped = self.tmp / "c.pt"
        zipped.write_bytes(models.torch_zip(values))
        self.assertEqual(self.diff(a, zipped)[1]["equal"], 1)
        sharded = models.sharded(self.tmp / "sharded")
        whole = self.weights("whole.safetensors", {f"model.layers.{i}.{p}.weight": models.f32(16, 16) for i in (1, 2) for p in "qkv"})
        self.assertEqual(self.diff(sharded, whole)[1]["moved"] + self.diff(sharded, whole)[1]["equal"], 6)

    def test_frozen_parts_that_moved_and_steps_that_do_not_fit(self):
        def checkpoint(step, moved, optimizer_step=None):
            root = self.tmp / f"run{step}-{optimizer_step}/checkpoints/{step:06d}"
            models.policy(root / "pretrained_model")
            config = json.loads((root / "pretrained_model/config.json").read_text())
            config.update(type="smolvla", train_expert_only=True)
            (root / "pretrained_model/config.json").write_text(json.dumps(config))
            (root / "pretrained_model/model.safetensors").write_bytes(models.safetensors({
                "model.vlm_with_expert.vlm.a.weight": ("F32", (2,), models.floats(1, 2 + moved)), "model.vlm_with_expert.lm_expert.b.weight": ("F32", (2,), models.floats(step, 1))}))
            models.training_state(root / "training_state", step, optimizer_step)
            return root
        a, b = checkpoint(100, 0), checkpoint(200, 0)
        code, value = self.diff(a, b, "--fine-tune")
        self.assertEqual((code, value["faults"]), (0, []))
        self.assertIn("step 100 to step 200: 100 steps", value["verdict"])
        code, value = self.diff(a, checkpoint(300, 1), "--fine-tune")
        self.assertEqual(code, 1)
        self.assertIn("train_expert_only", value["faults"][0])
        code, value = self.diff(a, checkpoint(400, 0, 350), "--fine-tune")
        self.assertEqual(code, 1)
        self.assertIn("the optimiser's by 250", value["faults"][0])

    def test_what_should_stay_and_what_should_move_can_be_said(self):
        def weights(name, body, head, running=0):
            return self.weights(name, {"model.backbone.conv.weight": ("F32", (2,), models.floats(1, body)), "model.head.weight": ("F32", (2,), models.floats(1, head)),
                                       "model.backbone.bn.running_mean": ("F32", (1,), models.floats(running))})
        a, good, wrong, running = weights("a.safetensors", 2, 3), weights("b.safetensors", 2, 4), weights("c.safetensors", 5, 3), weights("d.safetensors", 2, 4, 1)
        said = ("--fine-tune", "--frozen", "backbone", "--trained", "head")
        self.assertEqual(self.diff(a, good, *said)[0], 0)
        code, value = self.diff(a, wrong, *said)
        self.assertEqual((code, len(value["faults"])), (1, 2), value["faults"])
        self.assertIn('1 of its tensors moved, first "model.backbone.conv.weight"', value["faults"][0])
        self.assertIn("none of its 1 tensors did", value["faults"][1])
        self.assertIn("statistics of batch normalisation", self.diff(a, running, *said)[1]["faults"][0])
        for wrong_use in (("--fine-tune", "--frozen", "backbnoe"), ("--frozen", "backbone")):
            self.assertEqual(run("model", "diff", a, good, *wrong_use).returncode, 2)

    def test_wrong_arguments(self):
        a = self.weights("a.safetensors")
        self.assertEqual(run("model", "diff", a, self.tmp / "nowhere").returncode, 2)
        (self.tmp / "cut.safetensors").write_bytes(a.read_bytes()[:-2])
        process = run("model", "diff", a, self.tmp / "cut.safetensors", "--json")
        self.assertEqual(process.returncode, 3)
        self.assertIn("incomplete", document(process)["what"])


GPT2 = {"model_type": "gpt2", "n_embd": 8, "n_layer": 2, "n_head": 2, "n_positions": 16, "vocab_size": 20}


def gpt2(h=8, layers=2, n=16, v=20):
    """Every tensor of a tiny GPT-2, by transformers' names."""
    out = {"transformer.wte.weight": models.f32(v, h), "transformer.wpe.weight": models.f32(n, h), "transformer.ln_f.weight": models.f32(h), "transformer.ln_f.bias": models.f32(h)}
    for i in range(layers):
        for name, shape in (("ln_1.weight", (h,)), ("ln_1.bias", (h,)), ("ln_2.weight", (h,)), ("ln_2.bias", (h,)), ("attn.c_attn.weight", (h, 3 * h)), ("attn.c_attn.bias", (3 * h,)),
                            ("attn.c_proj.weight", (h, h)), ("attn.c_proj.bias", (h,)), ("mlp.c_fc.weight", (h, 4 * h)), ("mlp.c_fc.bias", (4 * h,)), ("mlp.c_proj.weight", (4 * h, h)), ("mlp.c_proj.bias", (h,))):
            out[f"transformer.h.{i}.{name}"] = models.f32(*shape)
    return out


class Architecture(Case):
    """Names and shapes that config.json calls for, against the weights."""

    def found(self, config, tensors, file="model.safetensors", config_file="config.json"):
        root = self.tmp / str(len(list(self.tmp.iterdir())))
        root.mkdir()
        (root / config_file).write_text(json.dumps(config))
        (root / file).write_bytes(models.safetensors(tensors))
        process = run("model", "check", root, "--json")
        return by_id(document(process))["model.architecture"]

    def test_a_whole_model_in_each_spelling(self):
        t = gpt2()
        self.assertEqual(self.found(GPT2, t)["status"], "pass")
        self.assertEqual(self.found(GPT2, {k.removeprefix("transformer."): v for k, v in t.items()})["status"], "pass")
        self.assertEqual(self.found(GPT2, {**t, "lm_head.weight": models.f32(20, 8)})["status"], "pass")
        self.assertEqual(self.found({"model_type": "unheard-of"}, t)["status"], "skip")

    def test_what_does_not_fit_is_named(self):
        t = gpt2()
        lost = {k: v for k, v in t.items() if k != "transformer.h.1.attn.c_proj.weight"}
        for config, tensors, status, cause, word in (
                (GPT2, lost, "fail", "model.key-mismatch", "h.1.attn.c_proj.weight"),
                ({**GPT2, "n_layer": 3}, t, "fail", "model.key-mismatch", "h.2."),
                ({**GPT2, "n_layer": 1}, t, "warn", "model.key-mismatch", "h.1."),
                ({**GPT2, "vocab_size": 21}, t, "fail", "model.shape-mismatch", "[21, 8]"),
                ({**GPT2, "n_positions": 32}, t, "fail", "model.shape-mismatch", "wpe"),
                (GPT2, {"module." + k: v for k, v in t.items()}, "fail", "model.key-mismatch", '"module."'),
                (GPT2, {"_orig_mod." + k: v for k, v in t.items()}, "fail", "model.key-mismatch", "_orig_mod."),
                (GPT2, {"a": models.f32(2), "b": models.f32(2)}, "fail", "model.key-mismatch", "none of the"),
                (GPT2, {**t, "transformer.h.0.extra": models.f32(2)}, "warn", "model.key-mismatch", "extra"),
                ({**GPT2, "n_embd": "wide"}, t, "fail", "model.config-missing", "n_embd"),
                ({**GPT2, "tie_word_embeddings": False}, t, "fail", "model.key-mismatch", "lm_head.weight"),
                (GPT2, dict(list(t.items())[:3]), "fail", "model.not-loaded", "random")):
            with self.subTest(word):
                found = self.found(config, tensors)
                self.assertEqual((found["status"], found["causes"][0]), (status, cause), found)
                self.assertIn(word, found["summary"])

    def test_untrained_norm_layers_give_it_away(self):
        t = {k: (v[0], v[1], models.floats(*([1.0 if k.endswith("weight") else 0.0] * v[1][0]))) if ".ln_" in k else v for k, v in gpt2().items()}
        found = self.found(GPT2, t)
        self.assertEqual((found["status"], found["causes"]), ("warn", ["model.not-loaded"]))
        # Adaptive norms (Pi0.5): their matrices start at 0, their biases as those of any linear layer.
        zero = lambda *shape: ("F32", shape, models.floats(*([0.0] * math.prod(shape))))
        adaptive = {f"model.layers.{i}.input_layernorm.dense.{p}": v for i in range(3) for p, v in (("weight", zero(6, 2)), ("bias", models.f32(6)))}
        root = self.tmp / "adaptive"
        root.mkdir()
        check = lambda tensors: (root / "model.safetensors").write_bytes(models.safetensors(tensors)) and next(
            c for c in document(run("model", "check", root / "model.safetensors", "--json"))["checks"] if c["id"] == "model.architecture")
        self.assertEqual(check(adaptive)["causes"], ["model.not-loaded"])
        self.assertNotEqual(check({**adaptive, "model.layers.1.input_layernorm.dense.weight": models.f32(6, 2)})["status"], "warn")
        t["transformer.ln_f.bias"] = models.f32(8)
        self.assertEqual(self.found(GPT2, t)["status"], "pass")

    def test_adapters(self):
        base = self.tmp / "base"
        base.mkdir()
        (base / "config.json").write_text(json.dumps(GPT2))
        (base / "model.safetensors").write_bytes(models.safetensors(gpt2()))
        config = {"peft_type": "LORA", "r": 2, "target_modules": ["c_attn"], "base_model_name_or_path": str(base)}
        zero = ("F32", (24, 2), models.floats(*[0.0] * 48))
        t = {f"base_model.model.transformer.h.{i}.attn.c_attn.lora_{half}.weight": models.f32(*shape) for i in range(2) for half, shape in (("A", (2, 8)), ("B", (24, 2)))}
        name = "base_model.model.transformer.h.0.attn.c_attn.lora_{}.weight"
        look = lambda c, x: self.found(c, x, "adapter_model.safetensors", "adapter_config.json")
        self.assertEqual(look(config, t)["status"], "pass")
        for c, x, status, cause, word in (({**config, "r": 4}, t, "fail", "model.shape-mismatch", "rank 2"), ({**config, "target_modules": ["c_attn", "c_fc"]}, t, "fail", "model.key-mismatch", "c_fc"),
                                          (config, {k: v for k, v in t.items() if k != name.format("B")}, "fail", "model.key-mismatch", "no lora_B"),
                                          (config, {**t, name.format("B"): models.f32(24, 3)}, "fail", "model.shape-mismatch", "do not multiply"),
                                          (config, {**t, name.format("B"): models.f32(12, 2)}, "fail", "model.shape-mismatch", "the base's"),
                                          (config, {k.replace("h.0", "h.7"): v for k, v in t.items()}, "fail", "model.key-mismatch", "not in the base"),
                                          (config, {k: zero if "lora_B" in k else v for k, v in t.items()}, "warn", "model.not-loaded", "zero")):
            with self.subTest(word):
                found = look(c, x)
                self.assertEqual((found["status"], found["causes"][0]), (status, cause), found)
                self.assertIn(word, found["summary"])

    def test_a_policy_wider_than_its_padding(self):
        root = models.policy(self.tmp / "policy")
        config = json.loads((root / "config.json").read_text())
        (root / "config.json").write_text(json.dumps({**config, "type": "smolvla", "max_action_dim": 6}))
        found = by_id(document(run("model", "check", root, "--json")))["model.features"]
        self.assertEqual((found["status"], found["causes"][0]), ("fail", "model.shape-mismatch"))
        self.assertIn("max_action_dim", found["summary"])


class TrainingState(Case):
    def first_fault(self, **change):
        root = self.tmp / f"{len(list(self.tmp.iterdir()))}/checkpoints/000100"
        models.policy(root / "pretrained_model")
        models.training_state(root / "training_state", 100, **change)
        process = run("model", "check", root, "--json")
        found = by_id(document(process))["model.training-state"]
        return process.returncode, found

    def test_a_checkpoint_that_belongs_together(self):
        code, found = self.first_fault()
        self.assertEqual((code, found["status"], found["measured"]["step"]), (0, "pass", 100), found)

    def test_what_does_not_fit_is_named(self):
        for change, code, status, cause in (({"optimizer_step": 90}, 1, "fail", "training.resume-state-missing"), ({"scheduler_step": 1}, 1, "fail", "training.resume-state-missing"),
                                            ({"written_step": 50}, 1, "fail", "training.resume-state-missing"), ({"written_step": None}, 1, "fail", "training.resume-reset"),
                                            ({"negative": True}, 1, "fail", "training.resume-state-missing"), ({"behind": 20}, 0, "warn", "training.gradient-zero"),
                                            ({"rate": 0.5}, 0, "warn", "training.learning-rate"), ({"optimizer": False}, 1, "fail", "training.resume-state-missing"),
                                            ({"still": True}, 0, "warn", "training.gradient-zero")):
            with self.subTest(change):
                got, found = self.first_fault(**change)
                self.assertEqual((got, found["status"], found["causes"][0]), (code, status, cause), found)

    def test_gathered_gradients_and_several_processes_are_no_fault(self):
        self.assertEqual(self.first_fault(optimizer_step=25, accumulation=4)[1]["status"], "pass")
        self.assertEqual(self.first_fault(scheduler_step=400, processes=4)[1]["status"], "pass")


class Budget(Case):
    LLAMA = {"model_type": "llama", "hidden_size": 2048, "intermediate_size": 8192, "num_hidden_layers": 16, "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 128256, "tie_word_embeddings": True}

    def budget(self, config, *more, gpu="gfx1100"):
        path = self.tmp / "config.json"
        path.write_text(json.dumps(config))
        process = run("model", "budget", path, "--gpu", gpu, "--json", *more)
        return process.returncode, document(process)

    def test_a_gpu_without_a_unit_is_not_taken_for_a_part_of_a_name(self):
        path = self.tmp / "config.json"
        path.write_text(json.dumps(self.LLAMA))
        for gpu in ("", "16", "0GiB", "-4GiB", "1e30GiB", "gfx9999"):
            process = run("model", "budget", path, "--gpu", gpu)
            self.assertEqual(process.returncode, 2, (gpu, process.stdout))
            self.assertIn("--gpu", process.stderr)

    def test_the_static_lines_are_exact(self):
        code, value = self.budget(self.LLAMA, "--task", "train", "--batch", "1", "--tokens", "128", "--precision", "bf16")
        self.assertEqual(value["parameters"], 1235814400)  # that of the published 1B model
        lines = {line["what"]: line["bytes"] for line in value["lines"]}
        self.assertEqual((lines["weights"], lines["gradients"], lines["optimiser state"]), (2 * 1235814400, 2 * 1235814400, 4 * 1235814400))
        for name in ("forward", "backward", "step"):
            counted = sum(line["bytes"] for line in value["lines"] if name in line["counted_in"])
            self.assertAlmostEqual(counted, value["peaks"][f"{name}_bytes"], delta=100)
        self.assertEqual(value["allocated_bytes"], max(value["peaks"].values()))

    def test_predictions_are_near_the_peaks_that_were_measured(self):
        """budget_h200.jsonl is the output of bench/model_budget_measure.py on one NVIDIA H200 (torch 2.11, transformers 5.17)."""
        rows = [json.loads(line) for line in (pathlib.Path(__file__).parent / "budget_h200.jsonl").read_text().splitlines()]
        self.assertGreaterEqual(len(rows), 20)
        for row in rows:
            more = ["--task", row["task"], "--batch", str(row["batch"]), "--precision", row["precision"]]
            for key, option in (("tokens", "--tokens"), ("new", "--new-tokens"), ("lora_rank", "--lora-rank")):
                more += [option, str(row[key])] if key in row else []
            more += ["--checkpointing"] if row.get("checkpointing") else []
            more += ["--optimizer", "adamw-fused" if row.get("fused") else row.get("optimizer", "adamw")]
            with self.subTest(row["name"]):
                value = self.budget(row["config"], *more)[1]
                self.assertAlmostEqual(value["allocated_bytes"] / row["peak_allocated"], 1, delta=0.15)
                self.assertAlmostEqual(value["parameters"] / row["parameters"], 1, delta=0.005)

    def test_what_fits_and_what_does_not(self):
        code, value = self.budget(self.LLAMA, "--task", "train", "--batch", "8", "--precision", "bf16")
        self.assertEqual((code, value["fits"]), (1, False))
        self.assertEqual(value["short_bytes"], value["needed_bytes"]["typical"] - value["gpu"]["total_bytes"])
        largest = value["largest_batch"]
        self.assertTrue(1 <= largest < 8)
        self.assertEqual(self.budget(self.LLAMA, "--task", "train", "--batch", str(largest), "--precision", "bf16")[0], 0)
        self.assertEqual(self.budget(self.LLAMA, "--task", "train", "--batch", str(largest + 1), "--precision", "bf16")[0], 1)
        options = {o["change"]: o for o in value["options"]}
        self.assertLess(options["--checkpointing"]["needed_bytes"], value["needed_bytes"]["typical"])

    def test_more_of_anything_needs_more(self):
        def need(*more):
            return self.budget(self.LLAMA, *more)[1]["needed_bytes"]["typical"]
        base = ["--task", "train", "--precision", "bf16"]
        self.assertLess(need(*base, "--batch", "1"), need(*base, "--batch", "2"))
        self.assertLess(need(*base, "--tokens", "256"), need(*base, "--tokens", "512"))
        self.assertLess(need(*base), need("--task", "train", "--precision", "fp32"))
        self.assertLess(need("--task", "lora", "--lora-rank", "4"), need("--task", "lora", "--lora-rank", "256"))
        self.assertLess(need("--task", "infer"), need("--task", "infer", "--envs", "4", "--render", "640x480x2"))
        self.assertLess(need("--task", "infer", "--tokens", "1024"), need("--task", "infer", "--tokens", "100000"))

    def test_gpus(self):
        for text, total in (("16GiB", 16 << 30), ("24 GB", 24 * 10 ** 9), ("gfx1100", 24 << 30), ("RX 7900 XT", 20 << 30), ("7900 XTX", 24 << 30), ("MI300X", 192 << 30)):
            self.assertEqual(self.budget(self.LLAMA, gpu=text)[1]["gpu"]["total_bytes"], total, text)
        path = self.tmp / "config.json"
        for text in ("gfx000", "banana", "-3GiB", "0GiB"):
            process = run("model", "budget", path, f"--gpu={text}", "--json")
            self.assertEqual((process.returncode, document(process)["where"]), (2, "--gpu"), text)

    def test_bad_configurations_are_refused_with_the_field(self):
        path = self.tmp / "config.json"
        for config, word in (({"model_type": "mystery"}, "mystery"), ({"model_type": "llama"}, "hidden_size"), ({**self.LLAMA, "hidden_size": -4}, "hidden_size"),
                             ({**self.LLAMA, "num_hidden_layers": 1e9}, "tensors"), ({**self.LLAMA, "num_attention_heads": 0}, "zero")):
            path.write_text(json.dumps(config))
            process = run("model", "budget", path, "--gpu", "16GiB", "--json")
            self.assertEqual(process.returncode, 3, config)
            self.assertIn(word, json.dumps(document(process)))
        self.assertEqual(run("model", "budget", self.tmp / "nowhere", "--gpu", "16GiB").returncode, 2)


class Paths(Case):
    def test_a_path_that_does_not_exist_is_wrong_usage(self):
        for verb in (["check"], ["load", "--python", sys.executable]):
            process = run("model", verb[0], self.tmp / "nowhere", *verb[1:], "--json")
            self.assertEqual((process.returncode, document(process)["exit_code"]), (2, 2))

    @unittest.skipUnless(os.geteuid() == 0, "needs root, to become somebody else")
    def test_an_unreadable_file_is_said_to_be_that(self):
        os.chmod(self.tmp, 0o755)
        path = self.weights("a.safetensors")
        path.chmod(0)
        directory = self.tmp / "closed"
        models.policy(directory)
        directory.chmod(0)
        hidden = models.policy(self.tmp / "hidden")
        (hidden / "config.json").chmod(0)
        locked = models.policy(self.tmp / "locked")
        (locked / "model.safetensors").chmod(0)
        video = self.tmp / "v.mp4"
        video.write_bytes(b"x")
        video.chmod(0)

        def as_nobody(*arguments):
            process = subprocess.run([BINARY, *arguments, "--json"], capture_output=True, text=True, user=65534, group=65534, extra_groups=[])
            if process.returncode == 126:
                self.skipTest("nobody may not run the program here")
            return process
        # What may not be read is work that could not be done, named or inside what was named.
        for arguments in (("model", "check", path), ("model", "check", directory), ("model", "check", directory / "inside"), ("model", "load", path, "--python", sys.executable),
                          ("model", "diff", path, path), ("model", "budget", directory / "config.json", "--gpu", "16GiB"), ("video", "check", video), ("train", "check", path)):
            process = as_nobody(*arguments)
            self.assertEqual(process.returncode, 3, (arguments, process.stdout))
            self.assertIn("cannot be opened: Permission denied", process.stdout + process.stderr)
        for root, name in ((hidden, "config.json"), (locked, "model.safetensors")):
            process = as_nobody("model", "check", root)
            value = document(process)
            found = by_id(value)["model.present"]
            self.assertEqual((process.returncode, value["first_fault"], found["status"], found["causes"]), (3, "model.present", "error", ["permission.path-not-readable"]), value)
            self.assertIn(f"{name}: cannot be opened: Permission denied", found["summary"])
            self.assertEqual({c["status"] for c in value["checks"] if c["id"] != "model.present"}, {"skip"}, "nothing is said of the rest")


if __name__ == "__main__":
    unittest.main()
