#!/usr/bin/env bash
# Runs the benchmarks of build/bench and the whole-command comparisons of bench/*.py; with a NAME only those that match.
# Every figure is a ratio to a named alternative in the same run; docs/performance.md records them with the machine.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
pattern=${1:-}
ran=0
for program in build/bench/*_bench; do
  [ -x "$program" ] && [[ "$(basename "$program")" == *"$pattern"* ]] || continue
  echo "== $(basename "$program")"; "$program"; ran=$((ran + 1))
done
for script in bench/*.py; do
  [ -f "$script" ] && [[ "$(basename "$script")" == *"$pattern"* ]] || continue
  echo "== $(basename "$script")"; FIRSTFAULT=build/bench/firstfault python3 "$script"; ran=$((ran + 1))
done
[ "$ran" -gt 0 ] || { echo "no benchmark matches '$pattern'" >&2; exit 2; }
