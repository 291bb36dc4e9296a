#!/usr/bin/env bash
# The tests that need PyPI or corpora beside the repository; run by hand (./dev test --long), after ./dev test.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
venv=build/long-venv
[ -x "$venv/bin/python" ] || /usr/bin/python3 -m venv "$venv"
"$venv/bin/python" -m pip install -q safetensors numpy jsonschema

echo "== model check against the reference safetensors library"
(cd tests/end_to_end && FIRSTFAULT=../../build/dev/firstfault "../../$venv/bin/python" -B -m unittest -q test_model.py)

if [ -d ../shared/cases ]; then
  echo "== recorded incidents"
  python3 ../shared/tools/cases_eval.py ../shared/cases --command "$PWD/build/dev/firstfault explain --json {files}" \
    --min-top1 0.92 --min-top3 0.97 --max-wrong 0 --max-false 0
fi
