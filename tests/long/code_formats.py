#!/usr/bin/env python3
"""`firstfault code` on what this machine's compilers can write, against LLVM's own tools.

    tests/long/code_formats.py FIRSTFAULT [--triton PYTHON]

Every target of clang 19, linked, in code object versions 4, 5 and 6 where the compiler writes them: header and every kernel field as
llvm-readelf prints them. Every format of clang-offload-bundler 19 (-type=i, ii, cui, hipi, d, ll, bc, s, o, a, gch; each packed too, and
packed in versions 1 and 2), clang-offload-packager and objects of the new driver: the targets that LLVM's tools list, and the same
kernels as the bare code objects. With a Python that has Triton: its compiler's code objects for eight targets, without a GPU.
"""
import argparse, collections, json, os, pathlib, re, subprocess, sys, tempfile
import yaml

FIXTURES = pathlib.Path(__file__).resolve().parents[1] / "elf/fixtures"
LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
FAILED = []
KERNEL = 'kernel void k(global int *a, local int *t, long n) { t[0] = a[1]; for (long i = 0; i < n; i++) a[i] += t[0]; }'


def tool(*argv, env=None, check=True, input=None):
    done = subprocess.run([str(part) for part in argv], capture_output=True, text=True, errors="replace", env={**os.environ, **(env or {})}, input=input)
    if check and done.returncode != 0:
        sys.exit(f"{argv}: {done.stderr}")
    return done


def code(binary, path, *more):
    return json.loads(tool(binary, "code", path, "--json", *more, check=False).stdout)


def plain(value):
    if isinstance(value, dict):
        return {key.lstrip("."): plain(item) for key, item in value.items()}
    return [plain(item) for item in value] if isinstance(value, list) else value


def same_as_readelf(binary, path):
    """Header and kernels of one code object; the number of fields compared."""
    text = tool("llvm-readelf-19", "-h", "-n", path).stdout
    flags = re.search(r"Flags: +0x[0-9A-Fa-f]+(?:, ([^\n]+))?", text).group(1).split(", ")
    target = flags[0] + "".join(f":{name[:-1]}{name[-1]}" for name in sorted(flags[1:]) if name[-1] in "+-")
    version = int(re.search(r"ABI Version: +(\d+)", text).group(1)) + 2
    document = code(binary, path, "--kernels")
    row = document["files"][0]["targets"][0]
    if (row["target"], row["code_object_versions"]) != (target, [version]) or document["files"][0]["problems"]:
        FAILED.append(f"{path.name}: {row} {document['files'][0]['problems']}, LLVM {target} version {version}")
    kernels = {kernel["name"]: kernel for kernel in document["kernels"]}
    fields = 0
    for expected in plain(yaml.load(text[text.index("---"):text.index("\n...")], Loader=LOADER)["amdhsa.kernels"]):
        fields += len(expected)
        wrong = {name: (value, kernels.get(expected["name"], {}).get(name)) for name, value in expected.items() if kernels.get(expected["name"], {}).get(name) != value}
        if wrong:
            FAILED.append(f"{path.name} {expected['name']}: {wrong}")
    return fields


def clang_targets(binary, work):
    listed = tool("clang-19", "--target=amdgcn-amd-amdhsa", "-nogpulib", "--print-supported-cpus", check=False)
    targets = sorted(set(re.findall(r"gfx[0-9a-z-]+", listed.stdout + listed.stderr)))
    made, fields, versions = 0, 0, collections.Counter()
    for target in targets:
        settings = [""]
        if target in ("gfx90a", "gfx942"):
            settings += [":sramecc+:xnack-", ":xnack+", ":sramecc-"]
        for setting in settings:
            for version in (4, 5, 6):
                out = work / f"{target}{setting.replace(':', '_')}-v{version}.co"
                done = tool("clang-19", "--target=amdgcn-amd-amdhsa", f"-mcpu={target}{setting}", f"-mcode-object-version={version}", "-nogpulib", "-x", "cl", "-O2",
                            "-fuse-ld=lld", "-o", out, "-", check=False, input=KERNEL)
                if done.returncode != 0:
                    continue  # a generic target before version 6
                made += 1
                versions[version] += 1
                fields += same_as_readelf(binary, out)
    print(f"clang 19: {len(targets)} targets, {made} code objects (" + ", ".join(f"{n} of V{v}" for v, n in sorted(versions.items())) + f"), {fields} kernel fields")
    if made < 100:
        FAILED.append(f"only {made} code objects were made")


def kernel_rows(document):
    return sorted(json.dumps({**kernel, "file": "", "target": kernel["target"].split(":")[0]}, sort_keys=True) for kernel in document.get("kernels", []))


def bundles(binary, work):
    codes = [FIXTURES / "gfx1100.co", FIXTURES / "gfx90a.co"]
    expected = sorted(row for path in codes for row in kernel_rows(code(binary, path, "--kernels")))
    text, empty, host = work / "text.ll", work / "host", work / "host.o"
    text.write_text("; device\n")
    empty.write_text("")
    tool("clang-19", "-x", "c", "-c", "-o", host, "-", input="int host;")
    ids = "host-x86_64-unknown-linux-gnu,hipv4-amdgcn-amd-amdhsa--gfx1100,hipv4-amdgcn-amd-amdhsa--gfx90a:sramecc+:xnack-"
    seen = 0
    for kind in ["i", "ii", "cui", "hipi", "d", "ll", "s", "bc", "gch", "ast", "o"]:
        for packed in ["", "1", "2"]:
            out = work / f"bundle-{kind}-{packed or 'plain'}"
            textual = kind in ("i", "ii", "cui", "hipi", "d", "ll", "s")
            sources = [text] * 3 if textual else [host if kind == "o" else empty, *codes]
            tool("clang-offload-bundler-19", f"-type={kind}", f"-targets={ids}", *[f"-input={path}" for path in sources], f"-output={out}",
                 *(["-compress"] if packed else []), env={"COMPRESSED_BUNDLE_FORMAT_VERSION": packed or "2"})
            listed = tool("clang-offload-bundler-19", f"-type={kind}", "-list", f"-input={out}").stdout.split()
            names = {name.split("--", 1)[1] for name in listed if not name.startswith("host-")}
            document = code(binary, out, "--kernels")
            targets = {row["target"] for row in document["files"][0]["targets"]}
            if targets != names or document["files"][0]["problems"]:
                FAILED.append(f"{out.name}: {targets} {document['files'][0]['problems']}, LLVM {names}")
            if not textual and kernel_rows(document) != expected:
                FAILED.append(f"{out.name}: other kernels than in the code objects")
            seen += 1
    archive = work / "bundle.a"
    tool("llvm-ar-19", "rcs", archive, work / "bundle-o-plain")
    packager = work / "packed.bin"
    tool("clang-offload-packager-19", "-o", packager, *[f"--image=file={path},triple=amdgcn-amd-amdhsa,arch={arch},kind=hip" for path, arch in zip(codes, ["gfx1100", "gfx90a:sramecc+:xnack-"])])
    for path in (archive, packager):
        if kernel_rows(code(binary, path, "--kernels")) != expected:
            FAILED.append(f"{path.name}: other kernels than in the code objects")
        seen += 1
    new_driver = work / "new.o"
    tool("clang-19", "-x", "hip", "-nogpuinc", "-nogpulib", "--offload-new-driver", "-fgpu-rdc", "-c", "-O2", "--offload-arch=gfx1100", "--offload-arch=gfx90a:xnack-", "-o", new_driver, FIXTURES / "kernels.hip")
    told = tool("llvm-objdump-19", "--offloading", new_driver).stdout
    arches = set(re.findall(r"arch +(\S+)", told))
    targets = {row["target"] for row in code(binary, new_driver)["files"][0]["targets"]}
    if targets != arches:
        FAILED.append(f"new.o: {targets}, llvm-objdump --offloading {arches}")
    print(f"clang-offload-bundler, packager, new driver: {seen + 1} containers")


TRITON = '''
import pathlib, sys, triton, triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource, compile
@triton.jit
def add(a, b, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(a + i, tl.load(a + i, i < n) + tl.load(b + i, i < n), i < n)
@triton.jit
def dot(a, b, c, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)[:, None] * BLOCK + tl.arange(0, BLOCK)[None, :]
    tl.store(c + i, tl.dot(tl.load(a + i), tl.load(b + i)))
for arch in sys.argv[2:]:
    for name, source in [("add", ASTSource(add, {"a": "*fp32", "b": "*fp32", "n": "i32"}, {"BLOCK": 256})), ("dot", ASTSource(dot, {"a": "*fp16", "b": "*fp16", "c": "*fp32"}, {"BLOCK": 64}))]:
        try:
            made = compile(source, target=GPUTarget("hip", arch, 64 if arch.startswith("gfx9") else 32))
        except RuntimeError as error:
            continue  # a target, or a matrix product on it, that this Triton does not know
        (pathlib.Path(sys.argv[1]) / f"{name}.{arch}.hsaco").write_bytes(made.asm["hsaco"])
print(triton.__version__)
'''


def triton(binary, python, work):
    folder, script = work / "triton", work / "make.py"
    folder.mkdir()
    script.write_text(TRITON)
    asked = ["gfx90a", "gfx942", "gfx950", "gfx1030", "gfx1100", "gfx1151", "gfx1200", "gfx1201"]
    done = tool(python, script, folder, *asked, env={"TRITON_CACHE_DIR": str(work / "cache")})
    arches = {path.name.split(".")[1] for path in folder.iterdir()}
    if len(arches) < 5:
        FAILED.append(f"Triton compiled for {arches} only")
    fields = 0
    for path in sorted(folder.iterdir()):
        if "gfx950" in path.name:  # newer than LLVM 19: its readelf shows no name
            row = code(binary, path)["files"][0]["targets"][0]["target"]
            if row.split(":")[0] != "gfx950":
                FAILED.append(f"{path.name}: {row}")
        else:
            fields += same_as_readelf(binary, path)
    cache = code(binary, work / "cache")
    targets = {row["target"].split(":")[0] for file in cache["files"] for row in file["targets"]}
    if targets != arches:
        FAILED.append(f"Triton's cache: {targets}")
    print(f"Triton {done.stdout.split()[-1]}: {len(list(folder.iterdir()))} code objects of {', '.join(sorted(arches))}, {fields} kernel fields")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("firstfault")
    parser.add_argument("--triton")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        work = pathlib.Path(directory)
        clang_targets(arguments.firstfault, work)
        bundles(arguments.firstfault, work)
        if arguments.triton:
            triton(arguments.firstfault, arguments.triton, work)
    for line in FAILED:
        print("DIFFERS", line[:1000])
    print(f"{len(FAILED)} differences")
    sys.exit(1 if FAILED else 0)


main()
