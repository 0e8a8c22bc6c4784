{{- define "oal.postgres.config" -}}
start.sh: |
  # Makes the cluster once: beside its place, and moves it there when it is whole, since initdb writes PG_VERSION first. At every start makes what is missing of the databases, and sets the users' passwords to what the files say.
  set -euo pipefail
  export PGDATA=/var/lib/postgresql/data/pgdata
  secrets=/run/secrets/oal/secrets
  if [ ! -f "$PGDATA/PG_VERSION" ]; then
    rm -rf "$PGDATA" "$PGDATA.new" # an initdb that was cut off
    initdb --pgdata="$PGDATA.new" --username=postgres --auth-local=trust --auth-host=scram-sha-256 --encoding=UTF8 --locale=C
    mv "$PGDATA.new" "$PGDATA"
  fi
  pg_ctl -w -t 300 -o "-c listen_addresses= -c unix_socket_directories=/var/run/postgresql" start
  for user in {{ join " " (include "oal.postgres.databases" . | fromYamlArray) }}; do
    psql -q -v ON_ERROR_STOP=1 -h /var/run/postgresql -U postgres -v name="$user" -v password="$(cat "$secrets/postgres-$user.password")" <<'SQL'
  SELECT format('CREATE ROLE %I LOGIN', :'name') WHERE NOT EXISTS (SELECT FROM pg_roles WHERE rolname = :'name') \gexec
  ALTER ROLE :"name" PASSWORD :'password';
  SELECT format('CREATE DATABASE %I OWNER %I', :'name', :'name') WHERE NOT EXISTS (SELECT FROM pg_database WHERE datname = :'name') \gexec
  SELECT format('REVOKE ALL ON DATABASE %I FROM PUBLIC', :'name') \gexec
  SQL
  done
  pg_ctl -w -m fast stop
  exec postgres -c listen_addresses='*' -c unix_socket_directories=/var/run/postgresql -c shared_buffers={{ .Values.postgres.sharedBuffers }} \
    -c hba_file=/etc/oal/postgres/pg_hba.conf{{ if .Values.tls.enabled }} -c ssl=on -c ssl_min_protocol_version=TLSv1.2 \
    -c ssl_cert_file=/run/secrets/oal/pki/postgres.crt -c ssl_key_file=/run/secrets/oal/pki/postgres.key{{ end }}
pg_hba.conf: |
  # The socket is in this container only; whoever comes over the network says a password{{ if .Values.tls.enabled }}, and by TLS{{ end }}.
  local all all trust
  host{{ if .Values.tls.enabled }}ssl{{ end }} all all all scram-sha-256
{{- end -}}
{{- define "oal.postgres.databases" -}}
{{- if and .Values.mlflow.enabled (eq .Values.mlflow.database "postgres") }}
- mlflow
{{- end }}
{{- if and .Values.push.enabled (eq .Values.push.store "postgres") }}
- push
{{- end }}
{{- end -}}
