#!/usr/bin/env bash
# Runs examples/demo.yaml as a job on a fresh store: progress, a summary, exit code 0.
#
#   scripts/demo.sh [arguments of `perdure job run`]
#
# STORE=sqlite (the default) makes a file; STORE=postgres starts a server of its own, which ends with the demo.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

demo=(.venv/bin/perdure job run examples/demo.yaml "$@")

case "${STORE:-sqlite}" in
    sqlite)
        folder="$(mktemp -d "${TMPDIR:-/tmp}/perdure-demo.XXXXXX")"
        trap 'rm -rf "$folder"' EXIT
        PERDURE_STORE="sqlite:///$folder/demo.db" "${demo[@]}"
        ;;
    postgres)
        echo "demo: on a PostgreSQL server of its own" >&2
        PYTHONPATH=tests .venv/bin/python -m servers "${demo[@]}"
        ;;
    *)
        echo "demo: STORE is sqlite or postgres, not $STORE" >&2
        exit 2
        ;;
esac
