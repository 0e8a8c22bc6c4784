#!/bin/bash
# Once, when the cluster is made: a database each for MLflow and the push service, whose users see nothing else.
set -euo pipefail
for name in mlflow push; do
    psql -q -v ON_ERROR_STOP=1 -U postgres -v name="$name" -v \
        password="$(cat "/run/secrets/oal/postgres-$name.password")" <<'SQL'
CREATE ROLE :"name" LOGIN PASSWORD :'password';
CREATE DATABASE :"name" OWNER :"name";
REVOKE ALL ON DATABASE :"name" FROM PUBLIC;
SQL
done
