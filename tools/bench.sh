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
  ran=$((ran + 1))
  echo "== $(basename "$script")"
  if [ "$(basename "$script")" = nan.py ]; then
    if [ -n "${FIRSTFAULT_TORCH_PYTHON:-}" ]; then python3 "$script" build/bench/firstfault --python "$FIRSTFAULT_TORCH_PYTHON"; else echo "set FIRSTFAULT_TORCH_PYTHON to a Python with torch"; fi
  elif [ "$(basename "$script")" = snapshot.py ]; then
    # Compares with torch.utils.collect_env, so it needs an interpreter that has torch.
    if [ -n "${FIRSTFAULT_TORCH_PYTHON:-}" ]; then python3 "$script" --firstfault build/bench/firstfault --python "$FIRSTFAULT_TORCH_PYTHON"; else echo "set FIRSTFAULT_TORCH_PYTHON to a Python with torch"; fi
  elif [ "$(basename "$script")" = code_tree.py ]; then
    if [ -n "${FIRSTFAULT_TREES:-}" ]; then python3 "$script" build/bench/firstfault $FIRSTFAULT_TREES; else echo "set FIRSTFAULT_TREES to a virtual environment or ROCm's libraries"; fi
  else
    python3 "$script" build/bench/firstfault
  fi
done
[ "$ran" -gt 0 ] || { echo "no benchmark matches '$pattern'" >&2; exit 2; }
