#!/usr/bin/env bash
# Runs examples/demo.yaml as a job on a fresh SQLite file: progress, a summary, exit code 0.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

folder="$(mktemp -d "${TMPDIR:-/tmp}/perdure-demo.XXXXXX")"
trap 'rm -rf "$folder"' EXIT

PERDURE_STORE="sqlite:///$folder/demo.db" .venv/bin/perdure job run examples/demo.yaml "$@"
