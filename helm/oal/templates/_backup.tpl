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

{{/* A pod that has the volume, says what is in it, and ends: where the nightly one will be. It connects to nobody. */}}
{{- define "oal.backup.volumePod" -}}
{{- $k := dict "root" $ "name" "backup-volume" -}}
metadata:
  labels:
    {{- include "oal.podLabels" $k | nindent 4 }}
  {{- with include "oal.podAnnotations" $k }}
  annotations:
    {{- . | nindent 4 }}
  {{- end }}
spec:
  {{- include "oal.pod" (merge (dict "uid" 10001) $k) | nindent 2 }}
  restartPolicy: OnFailure
  containers:
    - name: backup-volume
      image: {{ include "oal.image" (dict "root" $ "image" "oal-setup") }}
      imagePullPolicy: {{ .Values.images.pullPolicy }}
      command: [sh, -ec, 'test -w /var/lib/oal/backups || { echo "the volume of backups cannot be written" >&2; exit 1; }; ls -l /var/lib/oal/backups']
      {{- include "oal.containerSecurity" . | nindent 6 }}
      {{- include "oal.onlyExtraEnv" $k | nindent 6 }}
      resources: {requests: {cpu: 10m, memory: 32Mi}, limits: {memory: 128Mi}}
      volumeMounts:
        - {name: backups, mountPath: /var/lib/oal/backups}
        - {name: tmp, mountPath: /tmp}
  volumes:
    - name: backups
      persistentVolumeClaim: {claimName: {{ include "oal.name" (dict "root" $ "name" "backup") }}}
    - name: tmp
      emptyDir: {sizeLimit: 16Mi}
{{- end -}}
