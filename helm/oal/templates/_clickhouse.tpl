{{- define "oal.clickhouse.config" -}}
start.sh: |
  # Users are in XML and take the hashes of their passwords from the environment of the server: made here of the mounted files.
  set -euo pipefail
  for file in /run/secrets/oal/secrets/clickhouse-*.password; do
    user=$(basename "$file" .password); user=${user#clickhouse-}
    hash=$(tr -d '\r\n' <"$file" | sha256sum)
    export "OAL_${user^^}_PASSWORD_SHA256=${hash%% *}"
  done
  exec clickhouse-server --config-file=/etc/oal/clickhouse/config.xml
config.xml: |
  <clickhouse>
    <path>/var/lib/clickhouse/</path>
    <tmp_path>/var/lib/clickhouse/tmp/</tmp_path>
    <user_files_path>/var/lib/clickhouse/user_files/</user_files_path>
    <format_schema_path>/var/lib/clickhouse/format_schemas/</format_schema_path>
    <listen_host>0.0.0.0</listen_host>
    <http_port>8123</http_port>
    <tcp_port>9000</tcp_port>
    <users_config>users.xml</users_config>
    <default_profile>default</default_profile>
    <default_database>default</default_database>
    <!-- Of the container's memory limit, which the server sees as its memory. -->
    <max_server_memory_usage_to_ram_ratio>0.85</max_server_memory_usage_to_ram_ratio>
    <mark_cache_size>{{ int64 .Values.clickhouse.markCacheBytes }}</mark_cache_size>
    <max_concurrent_queries>{{ .Values.clickhouse.maxConcurrentQueries }}</max_concurrent_queries>
    <logger><level>warning</level><console>true</console></logger>
    <!-- What the server notes of itself, for a week; the platform's own dashboards read it. -->
    {{- range list "query_log" "part_log" "error_log" }}
    <{{ . }}><database>system</database><table>{{ . }}</table><partition_by>toDate(event_time)</partition_by><ttl>event_date + INTERVAL 7 DAY DELETE</ttl><flush_interval_milliseconds>7500</flush_interval_milliseconds></{{ . }}>
    {{- end }}
    {{- if .Values.clickhouse.backup.enabled }}
    <storage_configuration><disks><backups><type>local</type><path>/var/lib/clickhouse-backups/</path></backups></disks></storage_configuration>
    <backups><allowed_disk>backups</allowed_disk><allowed_path>/var/lib/clickhouse-backups/</allowed_path></backups>
    {{- end }}
  </clickhouse>
users.xml: |
  <clickhouse>
    <profiles>
      <default><max_memory_usage>{{ int64 .Values.clickhouse.queryMemoryBytes }}</max_memory_usage></default>
    </profiles>
    <quotas><default/></quotas>
    <users>
      <!-- Migrations, backups. There is no user `default`: nobody comes in without a password. -->
      <admin>
        <password_sha256_hex from_env="OAL_ADMIN_PASSWORD_SHA256"/>
        <networks><ip>::/0</ip></networks>
        <profile>default</profile>
        <quota>default</quota>
      </admin>
    </users>
  </clickhouse>
{{- end -}}
{{- define "oal.clickhouse.users" -}}
{{- range $path, $bytes := .Files.Glob "files/clickhouse/users/*.xml" }}
{{ base $path }}: |
  {{- toString $bytes | nindent 2 }}
{{- end }}
{{- end -}}
{{/* Users that clickhouse/users has, and the administrator. */}}
{{- define "oal.clickhouse.userNames" -}}
- secrets/clickhouse-admin.password
{{- range $path, $bytes := .Files.Glob "files/clickhouse/users/*.xml" }}
- secrets/clickhouse-{{ base $path | trimSuffix ".xml" }}.password
{{- end }}
{{- end -}}
{{/* The `clickhouse` section of a service's configuration. */}}
{{- define "oal.clickhouse.client" -}}
url: {{ include "oal.clickhouse.url" . }}
user: analyst
password_file: /run/secrets/oal/secrets/clickhouse-analyst.password
database: {{ include "oal.clickhouse.database" . }}
{{- end -}}
