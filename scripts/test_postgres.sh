#!/usr/bin/env bash
# Holds the PostgreSQL store to the protocols on each version that is installed, then behind PgBouncer.
#
#   scripts/test_postgres.sh [arguments of pytest]
#
# What is not installed is named and left out; with PERDURE_TEST_REQUIRE_ALL=1 that is a failure.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

failed=()
told=()

run() {
    local name="$1" chosen="$2"
    shift 2
    echo "== $name" >&2
    if env "$@" .venv/bin/python -m pytest -q -n "${WORKERS:-2}" tests/conformance tests/backends/postgres \
        -m "not slow" -k "$chosen" "${arguments[@]}"; then
        told+=("$name: passed")
    else
        failed+=("$name")
        told+=("$name: FAILED")
    fi
}

is_there() {
    PYTHONPATH=tests .venv/bin/python -c "$1" 2>/dev/null && return
    told+=("$2: NOT TESTED, not installed")
    [[ ${PERDURE_TEST_REQUIRE_ALL:-0} != 1 ]] || failed+=("$2")
    return 1
}

arguments=("$@")
for version in 15 16 17 18; do
    if is_there "from servers.postgres import binaries; binaries($version)" "PostgreSQL $version"; then
        run "PostgreSQL $version" "postgres and not pooler" "PERDURE_TEST_PG_VERSION=$version"
    fi
done
if is_there "from servers.pooler import version; version()" "PgBouncer"; then
    run "behind PgBouncer" "pooled or pooler" PERDURE_TEST_POOLER=plain
fi
keeps="from servers.pooler import PREPARES_SINCE, version; assert version() >= PREPARES_SINCE"
if is_there "$keeps" "PgBouncer that keeps prepared statements (1.21)"; then
    run "behind PgBouncer, prepared" pooled PERDURE_TEST_POOLER=prepared
fi

printf '%s\n' "${told[@]}" >&2
[[ ${#failed[@]} == 0 ]]
