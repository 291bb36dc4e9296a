#!/usr/bin/env python3
"""`firstfault code` against LLVM's own tools, field by field, on real libraries and wheels.

    tests/long/code_llvm.py FIRSTFAULT [--objects N] FILE|DIRECTORY|WHEEL...

The other side shares nothing with FirstFault: llvm-objcopy cuts .hip_fatbin out, clang-offload-bundler lists and unbundles every
bundle (CCOB version 3, which LLVM 19 does not know, goes through the zstd program first), llvm-readelf prints each code object's
header and metadata. Compared: targets with their settings and how often they occur in each file; code object versions; of every
kernel every field of its metadata (registers, LDS, scratch, spills, wavefront, arguments with their offsets). Targets of all code
objects are compared; the kernels of at most N of them for each input (default 200, evenly spread), as readelf's text of rocBLAS
alone would be gigabytes. Exit code 1 when anything differs.
"""
import argparse, collections, json, os, pathlib, re, shutil, subprocess, sys, tempfile, zipfile
import yaml

BUNDLE, PACKED = b"__CLANG_OFFLOAD_BUNDLE__", b"CCOB"
LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def tool(*argv):
    done = subprocess.run(list(map(str, argv)), capture_output=True)
    return done.returncode, done.stdout, done.stderr.decode(errors="replace")


def pieces(section):
    """Bundles of a section: from each magic at a page to the next one."""
    starts = [at for at in range(0, len(section), 4096) if section.startswith(BUNDLE, at) or section.startswith(PACKED, at)]
    return [section[start:end] for start, end in zip(starts, starts[1:] + [len(section)])]


def plain_bundle(piece, work):
    """Decompressed by the zstd program, for what LLVM 19's bundler refuses (version 3)."""
    if not piece.startswith(PACKED):
        return piece
    version = int.from_bytes(piece[4:6], "little")
    if version == 2:
        return piece[: int.from_bytes(piece[8:12], "little")]  # the bundler refuses padding behind it
    if version < 3:
        return piece
    size = int.from_bytes(piece[8:16], "little")
    packed = work / "packed.zst"
    packed.write_bytes(piece[32:size])
    code, out, error = tool("zstd", "-q", "-d", "-c", packed)
    assert code == 0, error
    assert len(out) == int.from_bytes(piece[16:24], "little"), "uncompressed size"
    return out


def table(bundle):
    """Header of a plain bundle: id -> bytes. For targets that LLVM 19 does not know and so cannot unbundle (gfx950, gfx1153)."""
    found, at = {}, 32
    for _ in range(int.from_bytes(bundle[24:32], "little")):
        offset, size, length = (int.from_bytes(bundle[at + i : at + i + 8], "little") for i in (0, 8, 16))
        found[bundle[at + 24 : at + 24 + length].decode()] = bundle[offset : offset + size]
        at += 24 + length
    return found


def unbundled(piece, work):
    """(id, code) of each device entry, as clang-offload-bundler gives them."""
    global UNKNOWN
    source = work / "bundle"
    source.write_bytes(plain_bundle(piece, work))
    code, out, error = tool("clang-offload-bundler-19", "-type=o", "-list", f"-input={source}")
    assert code == 0, error
    ids = [line for line in out.decode().split() if line and not line.startswith("host-")]
    known = [name for name in ids if target_of(name.rstrip("-")).split(":")[0] in KNOWN]
    codes = {}
    if known:
        outputs = [work / f"out{number}" for number in range(len(known))]
        code, _, error = tool("clang-offload-bundler-19", "-type=o", "-unbundle", f"-input={source}", "-targets=" + ",".join(known),
                              *[f"-output={path}" for path in outputs])
        assert code == 0, error
        codes = {name: path.read_bytes() for name, path in zip(known, outputs)}
    if len(known) < len(ids):
        plain = source.read_bytes()
        if plain.startswith(PACKED):
            size = int.from_bytes(plain[8:12], "little")
            (work / "packed.zst").write_bytes(plain[24:size])
            plain = tool("zstd", "-q", "-d", "-c", work / "packed.zst")[1]
        rows = table(plain)
        for name in ids:
            if name in codes:
                assert codes[name] == rows[name], f"{name}: the bundler gives other bytes than the table"
            else:
                UNKNOWN += 1
                codes[name] = rows.get(name, rows.get(name.rstrip("-")))
    return [(name.rstrip("-"), codes[name]) for name in ids]


def code_objects(path, work):
    """(id or None, code) of every code object of a file."""
    with open(path, "rb") as file:
        head = file.read(64)
    if head.startswith((BUNDLE, PACKED)):
        return [row for piece in pieces(path.read_bytes()) for row in unbundled(piece, work)]
    if not head.startswith(b"\x7fELF"):
        return []
    if int.from_bytes(head[18:20], "little") == 224:
        return [(None, path.read_bytes())]
    section = work / "section"
    section.unlink(missing_ok=True)
    tool("llvm-objcopy-19", f"--dump-section=.hip_fatbin={section}", path, "/dev/null")
    if not section.exists():
        return []
    return [row for piece in pieces(section.read_bytes()) for row in unbundled(piece, work)]


def target_of(name):
    """The processor and settings of an id: what stands after the triple's environment."""
    match = re.search(r"(gfx[0-9a-z-]+|amdgcnspirv)((?::[a-z]+[+-])*)$", name)
    return match.group(0)


def readelf(code, work):
    source = work / "object"
    source.write_bytes(code)
    exit_code, out, error = tool("llvm-readelf-19", "-h", "-n", source)
    assert exit_code == 0, error
    text = out.decode()
    flags = re.search(r"Flags: +0x[0-9A-Fa-f]+(?:, ([^\n]+))?", text).group(1) or ""
    version = int(re.search(r"ABI Version: +(\d+)", text).group(1)) + 2
    # Linked from several assembled objects, as hipBLASLt's are, a code object has a note of each.
    notes = [yaml.load(note, Loader=LOADER) for note in re.findall(r"^ *(---\n.*?)^\.\.\.$", text, re.M | re.S)]
    stated = {note.get("amdhsa.target", "") for note in notes}
    return flags, version, [kernel for note in notes for kernel in note.get("amdhsa.kernels", [])], stated.pop() if len(stated) == 1 else ""


def plain(value):
    if isinstance(value, dict):
        return {key.lstrip("."): plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [plain(item) for item in value]
    return value


def firstfault(binary, path, *more):
    done = subprocess.run([binary, "code", str(path), "--json", *more], capture_output=True)
    if done.returncode not in (0, 1):
        sys.exit(f"firstfault code {path}: exit code {done.returncode}\n{done.stderr.decode()}")
    return json.loads(done.stdout)


class Comparison:
    def __init__(self, binary, limit):
        self.binary, self.limit = binary, limit
        self.files = self.objects = self.read = self.kernels = self.fields = self.spirv = 0
        self.targets, self.versions, self.differences = set(), collections.Counter(), []

    def differ(self, text):
        self.differences.append(text)
        print("DIFFERS", text, flush=True)

    def one_file(self, path, name, every, work):
        objects = code_objects(path, work)
        report = firstfault(self.binary, path)["files"]
        rows = report[0]["targets"] if report else []
        said = {row["target"]: row["objects"] for row in rows}
        if not objects:
            if said and not report[0].get("from_name"):
                self.differ(f"{name}: FirstFault lists {said}, LLVM nothing")
            return
        self.files += 1
        self.objects += len(objects)
        expected = collections.Counter()
        for identifier, code in objects:
            if identifier is None:
                flags = readelf(code, work)[0].split(", ")
                settings = sorted(flags[1:])
                target = flags[0] + "".join(f":{feature[:-1]}{feature[-1]}" for feature in settings if feature[-1] in "+-")
                expected[target] += 1
            else:
                expected[target_of(identifier)] += 1
        self.targets |= set(expected)
        if said != dict(expected):
            self.differ(f"{name}: targets {said}, LLVM {dict(expected)}")
        if report[0]["problems"]:
            self.differ(f"{name}: problems {report[0]['problems']}")
        picked = [row for number, row in enumerate(objects) if (self.objects - len(objects) + number) % every == 0]
        if not picked:
            return
        listed = collections.defaultdict(list)
        for kernel in firstfault(self.binary, path, "--kernels").get("kernels", []):
            listed[(kernel["target"], kernel["name"])].append(kernel)
        for identifier, code in picked:
            if not code.startswith(b"\x7fELF"):
                self.spirv += 1
                continue
            flags, version, kernels, stated = readelf(code, work)
            self.read += 1
            self.versions[version] += 1
            target = target_of(identifier) if identifier else None
            if identifier and stated and target_of(stated).split(":")[0] != target.split(":")[0]:
                self.differ(f"{name}: {identifier} holds code for {stated}")
            for kernel in kernels:
                expected_row = plain(kernel)
                self.kernels += 1
                self.fields += len(expected_row)
                candidates = listed.get((target, kernel[".name"]), []) if target else [
                    row for (_, kernel_name), rows in listed.items() if kernel_name == kernel[".name"] for row in rows]
                if not any(all(row.get(field) == value for field, value in expected_row.items()) for row in candidates):
                    close = candidates[0] if candidates else {}
                    wrong = {field: (value, close.get(field)) for field, value in expected_row.items() if close.get(field) != value}
                    self.differ(f"{name}: {target} {kernel['.name'][:80]}: {str(wrong)[:300]}")


def inputs(path, work):
    """(file, name) of everything that may hold code below a path."""
    if path.suffix == ".whl":
        folder = work / "wheel"
        shutil.rmtree(folder, ignore_errors=True)
        with zipfile.ZipFile(path) as archive:
            members = [m for m in archive.namelist() if m.endswith((".so", ".co", ".hsaco")) or ".so." in m]
            archive.extractall(folder, members)
        yield from ((folder / m, f"{path.name}!{m}") for m in sorted(members))
    elif path.is_dir():
        for file in sorted(path.rglob("*")):
            if file.is_file() and not file.is_symlink() and (file.suffix in (".so", ".co", ".hsaco") or ".so." in file.name):
                yield file, str(file.relative_to(path.parent))
    else:
        yield path, path.name


UNKNOWN = 0  # code objects of targets that LLVM 19 does not know
_, LISTED, MORE = tool("clang-19", "--target=amdgcn-amd-amdhsa", "-nogpulib", "--print-supported-cpus")
KNOWN = set(re.findall(r"gfx[0-9a-z-]+", LISTED.decode() + MORE))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("firstfault")
    parser.add_argument("--objects", type=int, default=200)
    parser.add_argument("paths", nargs="+", type=pathlib.Path)
    arguments = parser.parse_args()
    failed, total_read = False, 0
    for path in arguments.paths:
        with tempfile.TemporaryDirectory() as directory:
            work = pathlib.Path(directory)
            comparison = Comparison(arguments.firstfault, arguments.objects)
            total = sum(row["objects"] for file in firstfault(arguments.firstfault, path)["files"] for row in file["targets"])
            every = max(1, total // arguments.objects)
            for file, name in inputs(path, work):
                comparison.one_file(file, name, every, work)
            c = comparison
            print(f"{path.name}: {c.files} files, {c.objects} code objects of {len(c.targets)} targets; of {c.read} objects (versions "
                  f"{', '.join(f'V{v}' for v in sorted(c.versions))}) {c.kernels} kernels with {c.fields} fields; {len(c.differences)} differences", flush=True)
            if UNKNOWN:
                print(f"  {UNKNOWN} code objects so far are of targets that LLVM 19 does not know; they were cut out by the bundle's table")
            failed = failed or bool(c.differences)
            total_read += c.read
    sys.exit(1 if failed or total_read == 0 else 0)


main()
