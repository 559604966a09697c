#!/usr/bin/env bash
# Installs what the tests need beside Python's packages, from Debian's: PgBouncer, a PostgreSQL 15 and Prometheus.
#
# For a machine that is the tests' own (CI), as root. Does nothing when all are there, and starts no service.
set -euo pipefail

missing=()
[[ -x /usr/sbin/pgbouncer ]] || missing+=(pgbouncer)
[[ -x /usr/lib/postgresql/15/bin/postgres ]] || missing+=(postgresql-15)
command -v prometheus >/dev/null && command -v promtool >/dev/null || missing+=(prometheus)
if [[ ${#missing[@]} == 0 ]]; then exit 0; fi

if ! command -v apt-get >/dev/null || [[ $(id -u) != 0 ]]; then
    echo "install_system: without apt-get and root, install by hand: ${missing[*]}" >&2
    exit 1
fi

echo "install_system: ${missing[*]}" >&2
export DEBIAN_FRONTEND=noninteractive
if [[ " ${missing[*]} " == *" postgresql-15 "* && ! -e /etc/postgresql-common/createcluster.conf ]]; then
    # The programs are wanted, not a cluster that runs.
    mkdir -p /etc/postgresql-common
    echo "create_main_cluster = false" >/etc/postgresql-common/createcluster.conf
fi
apt-get update -qq
# Nothing that is installed starts by itself.
policy=/usr/sbin/policy-rc.d
if [[ ! -e $policy ]]; then
    printf '#!/bin/sh\nexit 101\n' >"$policy"
    chmod +x "$policy"
    trap 'rm -f "$policy"' EXIT
fi
apt-get install -qq -y --no-install-recommends -o Dpkg::Options::=--force-confold "${missing[@]}" >/dev/null
