#!/usr/bin/env bash
# Makes .venv from the lock files. Needs python3 (3.11 or later) and pip; uv comes into .tools/ by pip.
#
#   scripts/install.sh uv|runtime|dev|bench
#
# Does nothing when the environment already holds what is asked for. A user's pip configuration is respected: pip
# reads it itself, and uv is handed the index that pip would ask.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

wanted="${1:-dev}"
python="${PYTHON:-python3}"
uv=".tools/uv/bin/uv"
record=".venv/.perdure-installed"

fail() {
    echo "install: $*" >&2
    exit 1
}

check_python() {
    command -v "$python" >/dev/null || fail "there is no $python; install Python 3.11 or later, or set PYTHON"
    "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
        fail "$("$python" --version) is too old; install Python 3.11 or later, or set PYTHON to one"
    "$python" -m pip --version >/dev/null 2>&1 || fail "$python has no pip; install it (Debian: python3-pip)"
}

install_uv() {
    if [[ -x $uv && -f .tools/requirements-uv.lock ]] && cmp -s requirements-uv.lock .tools/requirements-uv.lock; then
        return
    fi
    echo "install: uv into .tools/" >&2
    rm -rf .tools/uv
    # A target directory needs neither root nor the venv module, and is never "externally managed".
    PIP_USER=0 PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore \
        "$python" -m pip install --quiet --target .tools/uv --require-hashes --no-deps -r requirements-uv.lock
    [[ -x $uv ]] || fail "pip did not bring $uv; is there a uv for this kind of machine?"
    cp requirements-uv.lock .tools/requirements-uv.lock
}

# What the environment is made of. The lock files are the whole truth, the rest is the project's own metadata.
fingerprint() {
    { cat requirements.lock requirements-dev.lock requirements-bench.lock pyproject.toml; "$python" --version; } |
        sha256sum | cut -d ' ' -f 1
}

# An environment made for more holds what less needs.
already_installed() {
    [[ -x .venv/bin/python && -f $record ]] && .venv/bin/python -c '' 2>/dev/null || return 1
    local have_level have_print
    read -r have_level have_print <"$record"
    [[ $have_print == "$(fingerprint)" && $(level "$have_level") -ge $(level "$wanted") ]]
}

level() {
    case "$1" in
        runtime) echo 1 ;;
        dev) echo 2 ;;
        bench) echo 3 ;;
        *) echo 0 ;;
    esac
}

install_environment() {
    local locks=(requirements.lock)
    case "$wanted" in
        runtime) ;;
        dev) locks=(requirements-dev.lock) ;;
        bench) locks=(requirements-dev.lock requirements-bench.lock) ;;
        *) fail "unknown: $wanted (uv, runtime, dev or bench)" ;;
    esac
    echo "install: .venv ($wanted)" >&2
    if [[ "$(.venv/bin/python --version 2>/dev/null || true)" != "$("$python" --version)" ]]; then
        "$uv" venv --quiet --clear --python "$("$python" -c 'import sys; print(sys.executable)')" .venv
    fi
    rm -f "$record"
    "$uv" pip sync --quiet --python .venv/bin/python --require-hashes "${locks[@]}"
    "$uv" pip install --quiet --python .venv/bin/python --no-deps --no-build-isolation --editable .
    echo "$wanted $(fingerprint)" >"$record"
}

if [[ $wanted != uv ]] && already_installed; then exit 0; fi
check_python
install_uv
if [[ $wanted == uv ]]; then exit 0; fi
source scripts/pip_settings.sh
install_environment
