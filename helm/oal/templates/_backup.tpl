{{- define "oal.backup.config" -}}
backup.toml: |
  folder = "/var/lib/oal/backups"
  {{- if .Values.clickhouse.enabled }}

  [clickhouse]
  {{- if include "oal.clickhouse.clustered" . }}
  urls = {{ include "oal.clickhouse.urls" (dict "root" $ "first" true) }}
  database = "{{ include "oal.clickhouse.database" . }}_shard"
  {{- else }}
  url = {{ include "oal.clickhouse.url" . | quote }}
  {{- end }}
  {{- with include "oal.clickhouse.caFile" . }}
  ca_file = {{ . | quote }}
  {{- end }}
  user = "admin"
  password_file = "/run/secrets/oal/secrets/clickhouse-admin.password"
  {{- if include "oal.backup.s3" . }}
  location = "Disk('backups', '{name}')"
  s3_url = {{ include "oal.backup.s3Url" . | quote }}
  s3_region = {{ .Values.s3.region | quote }}
  {{- if .Values.s3.secret }}
  s3_access_key_file = "/run/secrets/oal/s3/access-key"
  s3_secret_key_file = "/run/secrets/oal/s3/secret-key"
  {{- end }}
  {{- else }}
  location = "File('/var/lib/clickhouse-backups/{name}')"
  sweep_list = "oal-backup-remove.tsv"
  {{- end }}
  {{- end }}
  {{- if .Values.mlflow.enabled }}

  [mlflow]
  state_dir = "/var/lib/oal/mlflow/mlflow"
  {{- if eq .Values.mlflow.database "postgres" }}
  postgres_dsn_file = "/etc/oal/backup/mlflow.dsn"
  {{- end }}
  {{- end }}
  {{- if .Values.push.enabled }}

  [push]
  {{- if eq .Values.push.store "postgres" }}
  postgres_dsn_file = "/etc/oal/backup/push.dsn"
  {{- else }}
  {{- if .Values.tls.enabled }}
  ca_file = {{ include "oal.caFile" . | quote }}
  {{- end }}
  admin_url = "{{ include "oal.scheme" . }}://{{ include "oal.name" (dict "root" . "name" "push-admin") }}:8080"
  token_file = "/run/secrets/oal/secrets/push-admin.token"
  {{- end }}
  {{- end }}
{{- range include "oal.postgres.databases" . | fromYamlArray }}
{{ . }}.dsn: |
  host={{ include "oal.postgres.host" $ }} port={{ include "oal.postgres.port" $ }} user={{ . }} dbname={{ . }} sslmode={{ include "oal.postgres.sslmode" $ }}{{ with include "oal.postgres.caFile" $ }} sslrootcert={{ . }}{{ end }} passfile=/run/secrets/oal/secrets/{{ . }}.pgpass
{{- end }}
{{- end -}}
