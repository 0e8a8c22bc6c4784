#!/bin/bash
# Of the official entrypoint: makes the cluster once, with POSTGRES_PASSWORD_FILE and POSTGRES_INITDB_ARGS, runs
# /docker-entrypoint-initdb.d/*.sh and *.sql on it without network, then starts what it was told.
set -euo pipefail
if [ "$1" = postgres ] && [ ! -s "$PGDATA/PG_VERSION" ]; then
    # shellcheck disable=SC2086
    initdb --username=postgres --pwfile="$POSTGRES_PASSWORD_FILE" --auth-local=trust \
        --auth-host=scram-sha-256 ${POSTGRES_INITDB_ARGS:-} >/dev/null
    echo 'host all all all scram-sha-256' >>"$PGDATA/pg_hba.conf"
    echo "listen_addresses = '*'" >>"$PGDATA/postgresql.conf"
    pg_ctl -D "$PGDATA" -w -s -o "-c listen_addresses=''" start
    for file in /docker-entrypoint-initdb.d/*; do
        case $file in
        *.sh) bash "$file" ;;
        *.sql) psql -v ON_ERROR_STOP=1 -U postgres -f "$file" ;;
        esac
    done
    pg_ctl -D "$PGDATA" -w -s -m fast stop
fi
exec "$@"
