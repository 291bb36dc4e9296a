#!/usr/bin/env bash
# Regenerates the reference pages from the program itself. A test compares them with what the program prints.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
for page in checks causes; do
  build/dev/firstfault docs "$page" > "docs/$page.md.new"
  mv "docs/$page.md.new" "docs/$page.md"
  echo "docs/$page.md"
done
