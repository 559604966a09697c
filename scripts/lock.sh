#!/usr/bin/env bash
# Resolves the dependencies anew: one set of hashed lock files for all supported Pythons, with no registry's address.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

uv="${UV:-.tools/uv/bin/uv}"
export UV_CUSTOM_COMPILE_COMMAND="make lock"

compile() {
    local lock="$1"
    shift
    "$uv" pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
        --no-annotate --upgrade --output-file "$lock" "$@"
}

compile requirements.lock pyproject.toml --group build
compile requirements-dev.lock pyproject.toml --group build --group dev --constraint requirements.lock
compile requirements-bench.lock --group bench --constraint requirements-dev.lock
echo 'uv' | compile requirements-uv.lock -
