#!/usr/bin/env bash
# Runs the native operators on AMD machine code without an AMD GPU: clang compiles our kernels for each target, the stand-in for
# HIP hands every launch to the emulator that FIRSTFAULT_AMD_EMULATOR names (a Python module), and the results are judged
# as on a device. Usage: tools/emulator.sh FIRSTFAULT DOUBLE_FOLDER OUT [TARGET...]
set -uo pipefail
program=$1 double=$2 out=$3; shift 3
targets=("$@"); [ ${#targets[@]} -gt 0 ] || targets=(gfx90a gfx942 gfx1100 gfx1201)
mkdir -p "$out"
[ -n "${FIRSTFAULT_AMD_EMULATOR:-}" ] || { echo "FIRSTFAULT_AMD_EMULATOR is not set: no emulator at hand" >&2; exit 3; }
failed=0
for target in "${targets[@]}"; do
  rm -f "$out/$target.log"
  FIRSTFAULT_LIBRARIES=$double FF_DOUBLE_TARGET=$target FF_EMULATOR_LOG=$out/$target.log FIRSTFAULT_RUNS=$out/runs \
    "$program" ops run --native --device hip --small --repeat "${FF_EMULATOR_REPEAT:-1}" --limit 1800 --json > "$out/$target.json" 2> "$out/$target.err"
  python3 - "$out/$target.json" "$out/$target.log" "$target" <<'PY' || failed=1
import collections, json, re, sys
document = json.load(open(sys.argv[1]))
ran, refused = collections.Counter(), {}
for line in open(sys.argv[2]):
    kernel, verdict, *rest = line.rstrip("\n").split("\t")
    if verdict == "ok": ran[kernel] += 1
    else: refused[kernel] = f"{verdict}: {rest[0] if rest else ''}"
# What docs/compute.md records of the emulator: subnormal quotients, a rounding of two numbers, and gfx1201's small loads and conversions.
known = [r"special\.(f32|f64|bf16)$", r"convert\.f32\.(e4m3|e5m2)(fnuz)?$"] + ([r"reduction\..*(i8|bf16)"] if sys.argv[3] == "gfx1201" else [])
faults = [o for o in document["operators"] if o["status"] not in ("pass", "unsupported")]
print(f"{sys.argv[3]}: {document['summary']['pass']} operators right, {len(faults)} at fault, {document['summary']['unsupported']} unsupported; {len(ran)} kernels in {sum(ran.values())} launches")
for kernel, why in sorted(refused.items()): print(f"  refused {kernel}: {why[:160]}")
new = [o for o in faults if not any(re.match(k, o["name"]) for k in known)]
for o in faults: print(f"  {o['status']}{'' if o in new else ' (known)'} {o['name']}: {o['detail'][:200]}")
sys.exit(1 if new else 0)
PY
done
exit $failed
