#!/usr/bin/env bash
# The main job on the embedded default: this machine, a recorded healthy AMD machine, a broken one, and its explanation.
# Usage: tools/demo.sh path/to/firstfault
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
program=$1
runs=$(mktemp -d "${TMPDIR:-/tmp}/firstfault-demo-XXXXXX")
export FIRSTFAULT_RUNS=$runs

step() { printf '\n\033[1m%s\033[0m\n$ firstfault %s\n\n' "$1" "$2" | if [ -t 1 ]; then cat; else sed 's/\x1b\[[0-9;]*m//g'; fi; }
# Runs one command and insists on the exit code that belongs to it: a demo that hides a failure would be worse than none.
expect() {
  local wanted=$1; shift
  "$program" "$@"
  local got=$?
  if [ "$got" != "$wanted" ]; then echo "demo: exit code $got, expected $wanted: firstfault $*" >&2; exit 3; fi
}

step "1. This machine. (Without an AMD GPU rung 1 fails, and says so.)" "check"
"$program" check
code=$?
[ "$code" -le 1 ] || exit 3

step "2. The whole ladder on the embedded default, on the CPU: rung 1 is skipped, nothing is claimed about a device" "check --workload reference --device cpu"
began=$(date +%s)
expect 0 check --workload reference --device cpu
echo "(climbed in $(($(date +%s) - began)) s of wall time)"

step "3. A recorded machine on which rung 1 holds" "check --from examples/rx7900xtx-healthy.tar.zst"
expect 0 check --from examples/rx7900xtx-healthy.tar.zst

step "4. A recorded machine with a fault" "check --from examples/mi300x-render-group.tar.zst"
expect 1 check --from examples/mi300x-render-group.tar.zst

step "5. A log that somebody sent: what happened first?" "explain examples/logs/training-died"
expect 1 explain examples/logs/training-died

step "6. A dataset whose rows were shuffled by a merge: rung 3 fails, a corrected copy holds" "data check examples/dataset-shuffled"
expect 1 data check examples/dataset-shuffled
expect 0 data check examples/dataset-shuffled --fix -o "$runs/dataset-repaired"
expect 0 check --dataset "$runs/dataset-repaired" --rung dataset

step "7. A policy (rung 4): is it whole, finite, as its configuration says, and made for this dataset?" "model check examples/small-policy --dataset …/dataset-repaired"
expect 0 model check examples/small-policy --dataset "$runs/dataset-repaired"

cp -r examples/small-policy "$runs/interrupted-copy"
truncate -s -2000 "$runs/interrupted-copy/model.safetensors"
step "   The same after a copy that broke off" "model check $runs/interrupted-copy"
expect 1 model check "$runs/interrupted-copy"

step "8. A training run with one bad row: the last healthy step, the cause, the course of the loss" "train check $runs/train.log"
"$program" train reference --steps 60 --fault nan-sample > "$runs/train.log" || exit 3
expect 1 train check "$runs/train.log"

echo
echo "Runs of this demo: $runs (firstfault runs --runs $runs)"
