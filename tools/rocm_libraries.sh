#!/usr/bin/env bash
# Real ROCm libraries to read: those of Debian forky and sid, downloaded through apt with lists of its own and unpacked (nothing is
# installed), and PyPI's wheels that hold GPU code. Usage: tools/rocm_libraries.sh FOLDER PYTHON. Needs about 8 GB, half of it rocBLAS.
set -euo pipefail
folder=$1 python=$2
packages=(librccl1 libmiopen1 librocrand1 libhipblaslt1 librocblas4)
wheels=(bitsandbytes==0.50.2 jax-rocm60-plugin==0.5.0 jax-rocm7-plugin==0.10.2)
mkdir -p "$folder"/apt/{lists/partial,cache/archives/partial} "$folder/wheels"
keys="[signed-by=/usr/share/keyrings/debian-archive-keyring.gpg]"
for suite in forky sid; do echo "deb $keys http://deb.debian.org/debian $suite main"; done >"$folder/apt/sources.list"
: >"$folder/apt/status"
cat >"$folder/apt/apt.conf" <<EOF
Dir::Etc::sourcelist "$folder/apt/sources.list";
Dir::Etc::sourceparts "-";
Dir::State::lists "$folder/apt/lists";
Dir::State::status "$folder/apt/status";
Dir::Cache "$folder/apt/cache";
Acquire::Languages "none";
APT::Sandbox::User "root";
EOF
export APT_CONFIG="$folder/apt/apt.conf"
for package in "${packages[@]}"; do
  [ -d "$folder/$package" ] && continue
  ls "$folder"/apt/lists/*Packages* >/dev/null 2>&1 || apt-get update -q >/dev/null
  free=$(df --output=avail -BG "$folder" | tail -n 1 | tr -dc 0-9)
  if [ "$package" = librocblas4 ] && [ "$free" -lt 8 ]; then echo "$package left out: $free GB free, 8 are needed" >&2; continue; fi
  rm -rf "$folder/part"; mkdir "$folder/part"
  (cd "$folder/part" && apt-get download -q "$package" >/dev/null && dpkg-deb -x "$package"_*.deb . && rm -f ./*.deb)
  mv "$folder/part" "$folder/$package"
done
unset APT_CONFIG
for wheel in "${wheels[@]}"; do
  name=${wheel%%==*}
  compgen -G "$folder/wheels/${name//-/_}-*.whl" >/dev/null && continue
  "$python" -m pip download -q --no-deps --only-binary=:all: --python-version 3.11 -d "$folder/wheels" "$wheel" || echo "$wheel is not to be had" >&2
done
