#!/usr/bin/env bash
# A real HIP runtime and hipRTC on a machine without a GPU: makes a Debian chroot (about 30 s), in which the program has to take the
# runtime's "no device" path and compile every kernel for every target. Usage: tools/hip_chroot.sh FIRSTFAULT FOLDER [SUITE]
set -euo pipefail
program=$1 root=$2 suite=${3:-forky}
if [ "$(id -u)" != 0 ] || ! command -v debootstrap >/dev/null; then echo "skipped: needs root and debootstrap" >&2; exit 0; fi
if [ ! -e "$root/usr/lib/x86_64-linux-gnu/libamdhip64.so.6" ]; then
  rm -rf "$root"; mkdir -p "$root"
  debootstrap --variant=minbase --include=libamdhip64-6,libhiprtc6,libhiprtc-builtins6 "$suite" "$root" http://deb.debian.org/debian sid >/dev/null
fi
mkdir -p "$root/proc" "$root/ff"; mountpoint -q "$root/proc" || mount -t proc proc "$root/proc"
trap 'umount "$root/proc" 2>/dev/null || true' EXIT
cp "$program" "$root/ff/firstfault"
set +e
text=$(FIRSTFAULT_RUNS=/ff/runs chroot "$root" /ff/firstfault ops run --native --device hip 2>&1); code=$?
set -e
echo "$text"
[ "$code" = 3 ] && grep -q 'hipErrorNoDevice (100)' <<<"$text" || { echo "the no-device path was not taken" >&2; exit 1; }
chroot "$root" /ff/firstfault ops compile --target gfx90a,gfx942,gfx950,gfx1030,gfx1100,gfx1151,gfx1201

# Kernels from source with the real hipRTC, and what it refuses.
cat > "$root/ff/k.hip" <<'SOURCE'
extern "C" __global__ void __launch_bounds__(256) fill(float* a) {
  __shared__ float t[1024];
  t[threadIdx.x] = a[threadIdx.x];
  __syncthreads();
  a[threadIdx.x] = t[255 - threadIdx.x] + expf(a[256]);
}
SOURCE
echo '__global__ void k() { nothing_of_that_name(); }' > "$root/ff/bad.hip"
expect() {  # expect CODE COMMAND...: leaves what it printed in $text
  local code=$1 got; shift
  set +e; text=$("$@" 2>&1); got=$?; set -e
  [ "$got" = "$code" ] || { printf 'exit code %s, not %s: %s\n%s\n' "$got" "$code" "$*" "$text" >&2; exit 1; }
}
expect 0 chroot "$root" /ff/firstfault code build /ff/k.hip --target gfx90a:xnack-,gfx942,gfx1030,gfx1100,gfx1151,gfx1201 --json
python3 - "$text" <<'CHECK'
import json, sys
document = json.loads(sys.argv[1])
assert "libhiprtc" in document["compiler"] and not document["stand_in_headers"], document["compiler"]
kernels = {kernel["target"]: kernel for kernel in document["kernels"]}
assert len(kernels) == 6, sorted(kernels)
for target, kernel in kernels.items():
    assert kernel["max_flat_workgroup_size"] == 256 and kernel["group_segment_fixed_size"] == 4096, kernel
    assert kernel["wavefront_size"] == (64 if target.startswith("gfx9") else 32), kernel
    assert kernel["faults"] == [] and kernel["descriptor"]["group_segment_fixed_size"] == 4096, kernel
print("code build with hipRTC:", ", ".join(f"{t}: {k['vgpr_count']} VGPR, {k['sgpr_count']} SGPR" for t, k in sorted(kernels.items())))
CHECK
expect 2 chroot "$root" /ff/firstfault code build /ff/k.hip --target gfx1999
expect 2 chroot "$root" /ff/firstfault code build /ff/absent.hip --target gfx1100
expect 1 chroot "$root" /ff/firstfault code build /ff/bad.hip --target gfx1100
grep -q nothing_of_that_name <<<"$text" || { echo "the compiler's own words are missing: $text" >&2; exit 1; }
