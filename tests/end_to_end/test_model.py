"""firstfault model check: silent on whole models, every seeded fault found and named, in agreement with safetensors itself."""
import io, json, os, pathlib, pickle, random, shutil, struct, tempfile, unittest, zipfile

import models
from harness import SHARED, document, run

LFS = "version https://git-lfs.github.com/spec/v1\noid sha256:" + "0" * 64 + "\nsize 206699736\n"
MUTATIONS = 2000
PLACES = int(os.environ.get("FIRSTFAULT_PLACES", 2))  # of each seeded fault; 20 in the long test


def check(path, *more):
    process = run("model", "check", path, "--json", *more)
    return process.returncode, document(process)


def first(value):
    """Check, status and causes of the first fault, or of the first warning."""
    for status in ("fail", "error", "warn"):
        for c in value["checks"]:
            if c["status"] == status:
                return c["id"], status, c["causes"], c["summary"]
    return None


def edit_json(path, change):
    value = json.loads(path.read_text())
    change(value)
    path.write_text(json.dumps(value))


def rewrite(root, file, change):
    """Reads a safetensors file's tensors, lets `change` alter them, writes it back."""
    raw = (root / file).read_bytes()
    n = struct.unpack("<Q", raw[:8])[0]
    header = json.loads(raw[8:8 + n])
    tensors = {k: (t["dtype"], tuple(t["shape"]), raw[8 + n + t["data_offsets"][0]:8 + n + t["data_offsets"][1]]) for k, t in header.items() if k != "__metadata__"}
    change(tensors)
    (root / file).write_bytes(models.safetensors(tensors))


def set_float(file, tensor, value):
    def change(root, rng):
        def one(tensors):
            dtype, shape, content = tensors[tensor]
            i = rng.randrange(len(content) // 4)
            tensors[tensor] = (dtype, shape, content[:4 * i] + struct.pack("<f", value) + content[4 * i + 4:])
        rewrite(root, file, one)
    return change


def fill(file, tensor, value):
    def change(root, rng):
        def one(tensors):
            dtype, shape, content = tensors[tensor]
            tensors[tensor] = (dtype, shape, struct.pack("<f", value) * (len(content) // 4))
        rewrite(root, file, one)
    return change


def header_edit(edit):
    """Alters the header's text of model.safetensors, keeping its data."""
    def change(root, rng):
        path = root / "model.safetensors"
        raw = path.read_bytes()
        n = struct.unpack("<Q", raw[:8])[0]
        header = json.loads(raw[8:8 + n])
        edit(header, rng)
        text = json.dumps(header).encode()
        path.write_bytes(struct.pack("<Q", len(text)) + text + raw[8 + n:])
    return change


def some(header, rng):
    return header[rng.choice([k for k in sorted(header) if k != "__metadata__"])]


def cut(file):
    def change(root, rng):
        raw = (root / file).read_bytes()
        (root / file).write_bytes(raw[:rng.randrange(1, len(raw))])
    return change


def write(file, content):
    return lambda root, rng: (root / file).write_bytes(content if isinstance(content, bytes) else content.encode())


def remove(file):
    return lambda root, rng: (root / file).unlink()


def config(change):
    return lambda root, rng: edit_json(root / "config.json", change)


def drop(file, tensor):
    return lambda root, rng: rewrite(root, file, lambda t: t.pop(tensor))


def shorten(file, tensor):
    def one(t):
        dtype, shape, content = t[tensor]
        t[tensor] = (dtype, (shape[0] - 1,), content[:-4])
    return lambda root, rng: rewrite(root, file, one)


PRE, POST = "policy_preprocessor_step_1_normalizer_processor.safetensors", "policy_postprocessor_step_0_unnormalizer_processor.safetensors"
W, HEAD = "model.safetensors", "model.action_head.weight"
NAN, INF = float("nan"), float("inf")
# name: (model, fault, check, cause, status)
POLICY = {
    "cut weights": (cut(W), "model.files-whole", "model.truncated"),
    "cut statistics": (cut(PRE), "model.files-whole", "model.truncated"),
    "empty weights": (write(W, b""), "model.files-whole", "model.truncated"),
    "pointer weights": (write(W, LFS), "model.files-whole", "model.lfs-pointer"),
    "pointer statistics": (write(POST, LFS), "model.files-whole", "model.lfs-pointer"),
    "page": (write(W, "<!DOCTYPE html><html><body>404</body></html>"), "model.files-whole", "model.header-invalid"),
    "zip under another name": (write(W, models.torch_zip(models.floats(1, 2))), "model.header", "model.header-invalid"),
    "zeros": (write(W, b"\0" * 4096), "model.header", "model.header-invalid"),
    "noise": (lambda root, rng: (root / W).write_bytes(rng.randbytes(5000)), "model.header", "model.header-invalid"),
    "trailing": (lambda root, rng: (root / W).write_bytes((root / W).read_bytes() + b"x" * rng.randrange(1, 9)), "model.header", "model.header-invalid"),
    "unknown type": (header_edit(lambda h, rng: some(h, rng).update(dtype="F12")), "model.header", "model.dtype-unsupported"),
    "wrong type": (header_edit(lambda h, rng: some(h, rng).update(dtype="F64")), "model.header", "model.header-invalid"),
    "wrong shape": (header_edit(lambda h, rng: some(h, rng)["shape"].append(2)), "model.header", "model.header-invalid"),
    "negative shape": (header_edit(lambda h, rng: some(h, rng)["shape"].append(-1)), "model.header", "model.header-invalid"),
    "offsets swapped": (header_edit(lambda h, rng: some(h, rng)["data_offsets"].reverse()), "model.header", "model.header-invalid"),
    "offset moved": (header_edit(lambda h, rng: some(h, rng)["data_offsets"].__setitem__(0, 1)), "model.header", "model.header-invalid"),
    "field lost": (header_edit(lambda h, rng: some(h, rng).pop(rng.choice(["dtype", "shape", "data_offsets"]))), "model.header", "model.header-invalid"),
    "metadata of numbers": (header_edit(lambda h, rng: h.update(__metadata__={"step": 3})), "model.header", "model.header-invalid"),
    "not a number": (set_float(W, HEAD, NAN), "model.finite", "model.nonfinite"),
    "infinity": (set_float(W, "model.backbone.conv1.weight", INF), "model.finite", "model.nonfinite"),
    "minus infinity": (set_float(W, HEAD, -INF), "model.finite", "model.nonfinite"),
    "no configuration": (remove("config.json"), "model.config", "model.config-missing"),
    "configuration cut": (write("config.json", '{"type": "act"'), "model.config", "model.config-missing"),
    "no weights": (remove(W), "model.config", "model.config-missing"),
    "no statistics file": (remove(PRE), "model.normalization", "model.normalization-missing"),
    "no processors": (lambda root, rng: [p.unlink() for p in root.glob("policy_*")], "model.normalization", "model.normalization-missing"),
    "no postprocessor": (remove("policy_postprocessor.json"), "model.normalization", "model.normalization-missing"),
    "statistics never set": (fill(PRE, "observation.state.mean", INF), "model.normalization", "model.normalization-missing"),
    "statistics not finite": (set_float(POST, "action.std", NAN), "model.normalization", "model.normalization-missing"),
    "feature without statistics": (drop(PRE, "observation.state.std"), "model.normalization", "model.normalization-missing"),
    "negative deviation": (set_float(PRE, "observation.state.std", -0.5), "model.normalization", "model.normalization-missing"),
    "statistics of another width": (shorten(POST, "action.mean"), "model.normalization", "model.shape-mismatch"),
    "no state file named": (lambda root, rng: edit_json(root / "policy_preprocessor.json", lambda v: v["steps"][1].pop("state_file")), "model.normalization", "model.normalization-missing"),
    "another action head": (config(lambda v: v["output_features"]["action"].update(shape=[6])), "model.features", "model.shape-mismatch"),
    "another chunk": (config(lambda v: v.update(chunk_size=20)), "model.features", "model.shape-mismatch"),
    "more actions than the chunk has": (config(lambda v: v.update(n_action_steps=11)), "model.features", "model.shape-mismatch"),
    "another scale on the way out": (set_float(POST, "action.mean", 3.0), "model.normalization", "model.normalization-missing"),
    "dangerous pickle beside": (lambda root, rng: (root / "extra.pt").write_bytes(models.torch_zip(models.floats(1), models.tensor_pickle("w", 1, models.evil()))), "model.pickle-safe", "model.unsafe-pickle"),
}
SHARDS = {
    "shard missing": (remove("model-00002-of-00002.safetensors"), "model.shards", "model.truncated"),
    "tensor missing": (drop("model-00001-of-00002.safetensors", "model.layers.1.q.weight"), "model.shards", "model.key-mismatch"),
    "tensor not in the index": (lambda root, rng: edit_json(root / "model.safetensors.index.json", lambda v: v["weight_map"].pop("model.layers.2.k.weight")), "model.shards", "model.key-mismatch"),
    "tensor in another shard": (lambda root, rng: edit_json(root / "model.safetensors.index.json", lambda v: v["weight_map"].update({"model.layers.2.k.weight": "model-00001-of-00002.safetensors"})), "model.shards", "model.key-mismatch"),
    "index missing": (remove("model.safetensors.index.json"), "model.shards", "model.config-missing"),
    "index of another kind": (write("model.safetensors.index.json", "[]"), "model.shards", "model.header-invalid"),
    "shard cut": (cut("model-00002-of-00002.safetensors"), "model.files-whole", "model.truncated"),
}


class Directories(unittest.TestCase):
    def setUp(self):
        self.tmp = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.tmp)

    def seeded(self, make, faults):
        clean = make(self.tmp / "clean")
        code, value = check(clean)
        self.assertEqual((code, first(value)), (0, None))
        for place, (name, (fault, wanted, cause)) in enumerate(faults.items()):
            for seed in range(PLACES):
                with self.subTest(name, seed=seed):
                    root = self.tmp / f"{place}-{seed}"
                    shutil.copytree(clean, root)
                    fault(root, random.Random(seed * 1000 + place))
                    code, value = check(root)
                    self.assertEqual(code, 1, value)
                    found = first(value)
                    self.assertEqual(found[0], wanted, found)
                    self.assertEqual(found[2][0], cause, found)
                    shutil.rmtree(root)

    def test_a_lerobot_policy_and_its_faults(self):
        self.seeded(models.policy, POLICY)

    def test_a_sharded_model_and_its_faults(self):
        self.seeded(models.sharded, SHARDS)

    def test_an_old_policy_has_its_statistics_in_the_weights(self):
        root = models.policy(self.tmp / "old", old=True)
        code, value = check(root)
        self.assertEqual(code, 0)
        self.assertEqual(first(value)[:3], ("model.normalization", "warn", ["model.normalization-missing"]))
        fill(W, "unnormalize_outputs.buffer_action.std", INF)(root, random.Random(1))
        code, value = check(root)
        self.assertEqual((code, first(value)[0]), (1, "model.normalization"))
        self.assertIn("never set", first(value)[3])

    def test_a_run_and_a_checkpoint_lead_to_the_policy(self):
        checkpoint = self.tmp / "run/checkpoints/000100"
        models.policy(checkpoint / "pretrained_model")
        models.policy(self.tmp / "run/checkpoints/000050/pretrained_model")
        models.training_state(checkpoint / "training_state", 100)
        state = checkpoint / "training_state/optimizer_state.safetensors"
        for path in (self.tmp / "run", self.tmp / "run/checkpoints", checkpoint, checkpoint / "pretrained_model"):
            code, value = check(path)
            self.assertEqual((code, first(value)), (0, None), path)
            self.assertEqual(pathlib.Path(value["checks"][0]["measured"]["root"]).resolve(), (checkpoint / "pretrained_model").resolve())
        state.write_bytes(models.safetensors({"state/0/exp_avg": ("F32", (1,), models.floats(NAN))}))
        self.assertEqual(first(check(self.tmp / "run")[1])[0], "model.finite")

    def test_weights_that_are_zero_throughout_or_beyond_sense(self):
        path = self.tmp / "model.safetensors"
        zero, some = models.floats(0, 0, 0, 0), models.floats(0.5, -0.25, 0.125, 0)
        for name, tensors, told in (
                ("every tensor is zero", {"a.weight": zero, "b.weight": zero}, (1, ("model.finite", "fail", ["model.not-loaded"]))),
                ("one tensor is zero", {"a.weight": zero, "b.weight": some}, (0, None)),
                ("one value is beyond sense", {"a.weight": some, "b.weight": models.floats(0.5, 1e30, 1, 2)}, (0, ("model.finite", "warn", ["model.nonfinite"]))),
                ("a mask", {"a.weight": some, "masked_bias": models.floats(-1e30, 0, 0, 0)}, (0, None))):
            with self.subTest(name):
                path.write_bytes(models.safetensors({n: ("F32", (4,), v) for n, v in tensors.items()}))
                code, value = check(path)
                found = first(value)
                self.assertEqual((code, found[:3] if found else None), told)

    def test_features_are_compared_with_a_dataset(self):
        root = models.policy(self.tmp / "policy")
        dataset = self.tmp / "set"
        (dataset / "meta").mkdir(parents=True)

        def info(state=7, action=7, camera="observation.images.top", size=(48, 64, 3)):
            (dataset / "meta/info.json").write_text(json.dumps({"codebase_version": "v3.0", "features": {
                "observation.state": {"dtype": "float32", "shape": [state]}, "action": {"dtype": "float32", "shape": [action]},
                camera: {"dtype": "video", "shape": list(size), "names": ["height", "width", "channels"]}}}))
        info()
        self.assertEqual(first(check(root, "--dataset", dataset)[1]), None)
        for change, cause in ((dict(action=6), "model.shape-mismatch"), (dict(state=14), "model.shape-mismatch"), (dict(camera="observation.images.front"), "model.key-mismatch")):
            info(**change)
            code, value = check(root, "--dataset", dataset)
            self.assertEqual((code, first(value)[0], first(value)[2][0]), (1, "model.features", cause))
        info(size=(96, 128, 3))
        self.assertEqual(first(check(root, "--dataset", dataset)[1])[:2], ("model.features", "warn"))
        info()
        (dataset / "meta/stats.json").write_text(json.dumps({"action": {"mean": [5.0] * 7, "std": [1.0] * 7}}))
        found = first(check(root, "--dataset", dataset)[1])
        self.assertEqual(found[:2], ("model.normalization", "warn"))
        self.assertIn("other data", found[3])

    def test_a_language_policy_needs_its_tokenizer(self):
        clean = models.policy(self.tmp / "clean")

        def language(step, steps=None):
            root = pathlib.Path(shutil.copytree(clean, self.tmp / f"language{len(list(self.tmp.iterdir()))}"))
            edit_json(root / "config.json", lambda v: v.update(type="smolvla", vlm_model_name="another", tokenizer_max_length=48, max_action_dim=32, max_state_dim=32))
            edit_json(root / "policy_preprocessor.json", lambda v: v["steps"].extend([step] if step else []))
            return [(c["status"], c["causes"], c["summary"]) for c in check(root)[1]["checks"] if c["id"] == "model.features"][0]
        tokenizer = lambda **more: {"registry_name": "tokenizer_processor", "config": {"max_length": 48, "tokenizer_name": "hub/name", **more}}
        self.assertEqual(language(tokenizer())[0], "skip")
        status, causes, summary = language(None)
        self.assertEqual((status, causes), ("fail", ["model.config-missing"]))
        self.assertIn("tokenizer_processor", summary)
        self.assertEqual(language(tokenizer(max_length=64))[:2], ("warn", ["model.shape-mismatch"]))
        self.assertEqual(language(tokenizer(tokenizer_name="/nowhere/vlm"))[:2], ("warn", ["model.config-missing"]))

    def test_the_device_counts_the_same(self):
        tensors = {"a": models.f32(33, 5), "b": ("BF16", (7,), struct.pack("<7H", 0x3f80, 0x7f80, 0xff80, 0x7fc0, 0, 1, 0x7f7f)), "c": ("F16", (3,), struct.pack("<3H", 0x7bff, 0x7c00, 0x7e01)),
                   "d": ("F64", (3,), struct.pack("<3d", 1.0, NAN, -INF)), "e": ("I32", (2,), struct.pack("<2i", -1, 2)), "f": ("F32", (0,), b"")}
        for kind in ("F8_E4M3", "F8_E5M2", "F8_E8M0", "F8_E4M3FNUZ", "F8_E5M2FNUZ"):  # every code, and one value more than fills a vector
            tensors[kind] = (kind, (257,), bytes(range(256)) + b"\xff")
        path = self.tmp / "all.safetensors"
        path.write_bytes(models.safetensors(tensors))
        scan = lambda *more: next(c for c in check(path, *more)[1]["checks"] if c["id"] == "model.device-finite")
        found = scan("--device", "cpu")
        self.assertEqual((found["status"], found["measured"]["tensors"], found["measured"]["different"]), ("pass", 9, 0), found)
        self.assertEqual(scan()["status"], "skip")
        if not any(pathlib.Path("/dev").glob("nvidiactl")) and not pathlib.Path("/dev/kfd").exists():
            found = scan("--device", "gpu")
            self.assertEqual((found["status"], check(path, "--device", "gpu")[0]), ("error", 1))  # the NaN of the file is the fault
            self.assertIn("no GPU runtime", found["summary"])

    def test_whole_files_without_a_tensor_are_no_weights(self):
        path = self.tmp / "a.pt"
        saved = io.BytesIO()  # as torch.save({"epoch": 3}, PATH) writes it
        with zipfile.ZipFile(saved, "w") as z:
            z.writestr("a/data.pkl", pickle.dumps({"epoch": 3}, 2))
            z.writestr("a/version", "3\n")
        for content in (pickle.dumps({"epoch": 3}), saved.getvalue()):
            path.write_bytes(content)
            code, value = check(path)
            self.assertEqual((code, first(value)[0], first(value)[2]), (1, "model.header", ["model.header-invalid"]), first(value))
            self.assertIn("holds no tensor", first(value)[3])
        (self.tmp / "none.safetensors").write_bytes(models.safetensors({}))
        self.assertEqual(check(self.tmp / "none.safetensors")[0], 1)
        # A pickle that ends inside a list, which no reader takes, and an archive of a torch that nobody has any more.
        path.write_bytes(models.torch_zip(b"", b"\x80\x02((."))
        self.assertIn("leaves no value", first(check(path)[1])[3])
        path.write_bytes(b"a" * 257 + b"ustar" + bytes(300))
        self.assertIn("not read here", str(check(path)[1]["checks"]))
        # Beside weights such a file may be anything.
        root = models.policy(self.tmp / "policy")
        (root / "notes.pt").write_bytes(pickle.dumps({"epoch": 3}))
        self.assertEqual(check(root)[0], 0)

    def test_a_path_without_a_model_is_a_fault_that_says_what_to_give(self):
        (self.tmp / "empty").mkdir()
        code, value = check(self.tmp / "empty")
        self.assertEqual((code, first(value)[0], first(value)[2]), (1, "model.present", ["model.config-missing"]))

    def test_it_is_rung_four_of_the_ladder(self):
        root = models.policy(self.tmp / "policy")
        set_float(W, HEAD, NAN)(root, random.Random(3))
        process = run("check", "--runs", self.tmp / "runs", "--rung", "model", "--policy", root, "--json")
        self.assertEqual(process.returncode, 1, process.stderr)
        self.assertEqual(json.loads(process.stdout)["first_fault"], "model.finite")


class TorchFiles(unittest.TestCase):
    def setUp(self):
        self.tmp = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.tmp)
        self.path = self.tmp / "a.pt"

    def found(self, content):
        self.path.write_bytes(content)
        return first(check(self.path)[1])

    def test_a_plain_state_dict_is_fine(self):
        self.assertIsNone(self.found(models.torch_zip(models.floats(1, 2, 3))))

    def test_code_is_named(self):
        for module, function in (("os", "system"), ("builtins", "exec"), ("subprocess", "Popen"), ("omegaconf.dictconfig", "DictConfig")):
            found = self.found(models.torch_zip(models.floats(1), models.tensor_pickle("w", 1, models.evil(module, function))))
            self.assertEqual((found[0], found[1], found[2]), ("model.pickle-safe", "fail", ["model.unsafe-pickle"]))
            self.assertIn(f"{module}.{function}", found[3])

    def test_values_sizes_and_checksums_are_checked(self):
        found = self.found(models.torch_zip(models.floats(1, NAN, 3)))
        self.assertEqual(found[0], "model.finite")
        self.assertIn('"w"', found[3])
        self.assertEqual(self.found(models.torch_zip(models.floats(1, 2), models.tensor_pickle("w", 3)))[0], "model.header")
        whole = models.torch_zip(models.floats(1, 2, 3))
        at = whole.index(models.floats(1, 2, 3))
        found = self.found(whole[:at] + b"\x55" + whole[at + 1:])
        self.assertEqual(found[0], "model.header")
        self.assertIn("checksum", found[3])

    def test_every_truncation_is_a_fault(self):
        whole = models.torch_zip(models.floats(1, 2, 3))
        for size in range(0, len(whole), 7):
            self.assertEqual(self.found(whole[:size])[2], ["model.truncated"], size)


class Reference(unittest.TestCase):
    """Accept or refuse as the safetensors package does. Skipped where the package is absent."""

    def test_agrees_with_the_reference_on_mutations(self):
        try:
            from safetensors import safe_open
            import numpy  # noqa: F401, which safe_open needs
        except ImportError:
            self.skipTest("the safetensors package is not installed")
        rng = random.Random(20240607)
        tmp = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, tmp)
        bases = [models.safetensors({f"t.{d}": (d, (2, 2), b"\x01" * 4 * n) for d, n in models.SIZES.items()}, {"format": "pt"}),
                 models.safetensors({"a": ("F32", (), models.floats(1)), "b": ("U8", (0, 3), b""), "c": ("BF16", (1, 2, 1), b"\x80\x3f" * 2)}), models.safetensors({})]
        path = tmp / "a.safetensors"
        accepted = refused = 0
        for _ in range(MUTATIONS):
            path.write_bytes(mutate(rng, rng.choice(bases)))
            try:
                with safe_open(path, "np") as f:
                    f.keys()
                good = True
            except Exception:
                good = False
            value = json.loads(run("model", "check", path, "--json").stdout)
            mine = all(c["status"] != "fail" or "holds no tensor" in c["summary"] for c in value["checks"] if c["id"] in ("model.present", "model.files-whole", "model.header"))
            self.assertEqual(mine, good, (path.read_bytes(), first(value)))
            accepted += good
            refused += not good
        self.assertGreater(accepted, MUTATIONS // 20)
        self.assertGreater(refused, MUTATIONS // 4)


def mutate(rng, content):
    """One to three changes: of bytes, of the header's text with its length kept right, of the length, of the end."""
    for _ in range(rng.randrange(1, 4)):
        kind = rng.randrange(8)
        n = struct.unpack("<Q", content[:8])[0] if len(content) >= 8 else 0
        text, data = content[8:8 + n], content[8 + n:]
        if kind == 0 and content:
            i = rng.randrange(len(content))
            content = content[:i] + bytes([rng.randrange(256)]) + content[i + 1:]
        elif kind == 1:
            content = content[:rng.randrange(len(content) + 1)]
        elif kind == 2:
            content += rng.randbytes(rng.randrange(1, 9))
        elif kind == 3:
            content = struct.pack("<Q", max(0, n + rng.randrange(-9, 9)) if rng.random() < 0.8 else rng.getrandbits(64)) + content[8:]
        else:
            swaps = [(b'"F32"', b'"F16"'), (b'"U8"', b'"I8"'), (b"2,2", b"4"), (b"2,2", b"2,-2"), (b"2,2", b"2.0,2"), (b"2,2", b"1e0,4"), (b"[", b"[ "), (b":", b" : "), (b"{", b"{\n"), (b"}", b"} "), (b",", b",,"),
                     (b'"shape"', b'"extra":[1,{"x":null}],"shape"'), (b'"dtype"', b'"dtype":"F32","dtype"'), (b'"t.F32"', b'"t.U8"'), (b'"pt"', b"1"), (b'"pt"', b"null"), (b"0,", b"00,"), (b"0,", b"-0,"),
                     (b'"t', b'"\\u0074'), (b'"t', b'"\\ud83d\\ude00'), (b'"t', b'"\\ud83d'), (b'"t', b'"\xff'), (b'"t', b'"\xc3\xa9'), (b"]", b",0]"), (b'"__metadata__"', b'"metadata"'), (b'"dtype"', b'"Dtype"'),
                     (b"[0,", b"[18446744073709551616,"), (b"2,2", b"18446744073709551615,0"), (b"2,2", b"0,18446744073709551615,2"), (b"2,2", b"")]
            old, new = rng.choice(swaps)
            if rng.random() < 0.5:
                old, new = (old, new) if old in text else (b"}", b"}  ")
            places = [i for i in range(len(text)) if text.startswith(old, i)]
            if places:
                i = rng.choice(places)
                text = text[:i] + new + text[i + len(old):]
            content = struct.pack("<Q", len(text)) + text + data
    return content


@unittest.skipUnless((SHARED / "samples").is_dir(), "no shared samples")
class Samples(unittest.TestCase):
    def test_real_files_are_whole_and_the_pointers_are_named(self):
        for path in sorted((SHARED / "samples/safetensors_lerobot").glob("*.safetensors")) + sorted((SHARED / "samples/torch_pt").glob("*.pt*")):
            with self.subTest(path.name):
                code, value = check(path)
                self.assertEqual(code, 0, first(value))
        found = first(check(SHARED / "samples/lerobot_ckpt_act_lfs_pointers")[1])
        self.assertEqual((found[0], found[2][0]), ("model.files-whole", "model.lfs-pointer"))


if __name__ == "__main__":
    unittest.main()
