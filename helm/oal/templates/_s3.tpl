{{/* The store that mlflow.artifacts and backup.s3 name a bucket of. */}}
{{- define "oal.s3.url" -}}{{ .Values.s3.endpoint | default (printf "https://s3.%s.amazonaws.com" .Values.s3.region) | trimSuffix "/" }}{{- end -}}
{{- define "oal.s3.port" -}}
{{- $url := include "oal.s3.url" . | urlParse -}}
{{- $port := $url.host | trimPrefix $url.hostname | trimPrefix ":" -}}
{{- $port | default (ternary 80 443 (eq $url.scheme "http")) -}}
{{- end -}}

{{/* Sources of a projected volume: the keys, where there are some. */}}
{{- define "oal.s3.secret" -}}
{{- with .Values.s3.secret }}
- secret:
    name: {{ . }}
    items:
      - {key: access-key, path: s3/access-key}
      - {key: secret-key, path: s3/secret-key}
{{- end }}
{{- end -}}

{{/* Not empty: ClickHouse writes its backups to S3. */}}
{{- define "oal.backup.s3" -}}{{ if and .Values.backup.enabled .Values.clickhouse.enabled .Values.backup.s3.bucket }}s3{{ end }}{{- end -}}
{{- define "oal.backup.s3Url" -}}
{{- $path := .Values.backup.s3.path | default (printf "%s-%s" .Release.Namespace .Release.Name) | trimAll "/" -}}
{{ include "oal.s3.url" . }}/{{ .Values.backup.s3.bucket }}/{{ $path }}
{{- end -}}
{{/* Part of ClickHouse's configuration: disk `backups`. A disk, and not S3(…), whose copies would be made within the store: the engine that
     the tests can run has no S3(…). */}}
{{- define "oal.backup.disk" -}}
<storage_configuration>
  <disks>
    <backups>
      <type>s3_plain</type>
      <endpoint>{{ include "oal.backup.s3Url" . }}/</endpoint>
      <region>{{ .Values.s3.region }}</region>
      {{- if .Values.s3.secret }}
      <access_key_id from_env="OAL_S3_ACCESS_KEY"/>
      <secret_access_key from_env="OAL_S3_SECRET_KEY"/>
      {{- else }}
      <use_environment_credentials>true</use_environment_credentials>
      {{- end }}
      <!-- The server starts while the store is away. -->
      <skip_access_check>true</skip_access_check>
    </backups>
  </disks>
</storage_configuration>
<backups><allowed_disk>backups</allowed_disk></backups>
{{- end -}}
