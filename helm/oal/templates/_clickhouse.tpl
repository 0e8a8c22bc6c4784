{{/* Not empty: more than one server, each with its share of the rows. */}}
{{- define "oal.clickhouse.clustered" -}}
{{- if and .Values.clickhouse.enabled (gt (mul .Values.clickhouse.shards .Values.clickhouse.replicas) 1) }}clustered{{ end -}}
{{- end -}}
{{/* Not empty: each share has copies, which are kept alike by way of Keeper. */}}
{{- define "oal.clickhouse.replicated" -}}
{{- if and .Values.clickhouse.enabled (gt (int .Values.clickhouse.replicas) 1) }}replicated{{ end -}}
{{- end -}}
{{/* Not empty: the servers write their backups to volumes of their own. */}}
{{- define "oal.clickhouse.backupVolume" -}}
{{- if and .Values.clickhouse.enabled .Values.clickhouse.backup.enabled (not (include "oal.backup.s3" .)) }}volume{{ end -}}
{{- end -}}
{{/* Its name in remote_servers. */}}
{{- define "oal.clickhouse.cluster" -}}oal{{- end -}}
{{/* The servers' host names, as JSON: a list of shards, each a list of its replicas. */}}
{{- define "oal.clickhouse.hosts" -}}
{{- $name := include "oal.name" (dict "root" . "name" "clickhouse") -}}
{{- $shards := list -}}
{{- range $shard := until (int .Values.clickhouse.shards) -}}
{{- $hosts := list -}}
{{- range $replica := until (int $.Values.clickhouse.replicas) -}}{{- $hosts = append $hosts (printf "%s-%d-%d.%s-pods" $name $shard $replica $name) -}}{{- end -}}
{{- $shards = append $shards $hosts -}}
{{- end -}}
{{- toJson $shards -}}
{{- end -}}
{{/* (dict "root" $ "first" true): HTTP interfaces of the servers, as JSON; with `first` one of each shard. */}}
{{- define "oal.clickhouse.urls" -}}
{{- $urls := list -}}
{{- range include "oal.clickhouse.hosts" .root | fromJsonArray -}}
{{- range (ternary (list (first .)) . (default false $.first)) -}}{{- $urls = append $urls (printf "%s://%s:8123" (include "oal.scheme" $.root) .) -}}{{- end -}}
{{- end -}}
{{- toJson $urls -}}
{{- end -}}
{{/* What would leave rows unread is refused, where the cluster can be asked (an offline rendering cannot). */}}
{{- define "oal.clickhouse.refuse" -}}
{{- $name := include "oal.name" (dict "root" . "name" "clickhouse") -}}
{{- $v := .Values.clickhouse -}}
{{- $anew := "install a second release and restore a backup into it (docs/upgrade.md)" -}}
{{- range (lookup "apps/v1" "StatefulSet" .Release.Namespace "").items -}}
{{- $found := .metadata.name -}}
{{- if and (eq $found $name) (include "oal.clickhouse.clustered" $) -}}
{{- fail (printf "clickhouse.shards, clickhouse.replicas: this release has one server, StatefulSet %s, whose rows more servers would not read; %s" $found $anew) -}}
{{- else if regexMatch (printf "^%s-[0-9]+$" $name) $found -}}
{{- if not (include "oal.clickhouse.clustered" $) -}}
{{- fail (printf "clickhouse.shards, clickhouse.replicas: this release has a cluster, StatefulSet %s and others, whose rows one server would not read; %s" $found $anew) -}}
{{- else if ge (int (trimPrefix (printf "%s-" $name) $found)) (int $v.shards) -}}
{{- fail (printf "clickhouse.shards: nobody would read the rows of StatefulSet %s; keep it, or delete it when its rows are not needed" $found) -}}
{{- else if ne (gt (int .spec.replicas) 1) (gt (int $v.replicas) 1) -}}
{{- fail (printf "clickhouse.replicas: tables with copies are of another engine than those without; %s" $anew) -}}
{{- end -}}
{{- $claims := list }}{{ range .spec.volumeClaimTemplates }}{{ $claims = append $claims .metadata.name }}{{ end -}}
{{- if ne (has "backups" $claims) (ne (include "oal.clickhouse.backupVolume" $) "") -}}
{{- fail (printf "clickhouse.backup.enabled: the claims of StatefulSet %s cannot be changed in place. Run `kubectl -n %s delete statefulset %s`, which ends its pods and keeps their volumes, for each shard, and upgrade again; or write backups to S3 (backup.s3.bucket)" $found $.Release.Namespace $found) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "oal.clickhouse.config" -}}
start.sh: |
  # Users are in XML and take the hashes of their passwords from the environment of the server: made here of the mounted files.
  set -euo pipefail
  for file in /run/secrets/oal/secrets/clickhouse-*.password; do
    user=$(basename "$file" .password); user=${user#clickhouse-}
    hash=$(tr -d '\r\n' <"$file" | sha256sum)
    export "OAL_${user^^}_PASSWORD_SHA256=${hash%% *}"
  done
  {{- if and (include "oal.backup.s3" .) .Values.s3.secret }}
  OAL_S3_ACCESS_KEY=$(tr -d '\r\n' </run/secrets/oal/s3/access-key)
  OAL_S3_SECRET_KEY=$(tr -d '\r\n' </run/secrets/oal/s3/secret-key)
  export OAL_S3_ACCESS_KEY OAL_S3_SECRET_KEY
  {{- end }}
  {{- if include "oal.clickhouse.clustered" . }}
  # What differs from pod to pod: the pod's name ends in the numbers of its shard and its replica.
  OAL_CLICKHOUSE_CLUSTER_SECRET=$(tr -d '\r\n' </run/secrets/oal/secrets/clickhouse-cluster.secret)
  OAL_CLICKHOUSE_SHARD=${HOSTNAME%-*}
  OAL_CLICKHOUSE_SHARD=${OAL_CLICKHOUSE_SHARD##*-}
  OAL_CLICKHOUSE_REPLICA=$HOSTNAME
  OAL_CLICKHOUSE_HOST=$HOSTNAME.{{ include "oal.name" (dict "root" . "name" "clickhouse-pods") }}
  export OAL_CLICKHOUSE_CLUSTER_SECRET OAL_CLICKHOUSE_SHARD OAL_CLICKHOUSE_REPLICA OAL_CLICKHOUSE_HOST
  {{- end }}
  exec clickhouse-server --config-file=/etc/oal/clickhouse/config.xml
config.xml: |
  <clickhouse>
    <path>/var/lib/clickhouse/</path>
    <tmp_path>/var/lib/clickhouse/tmp/</tmp_path>
    <user_files_path>{{ if include "oal.clickhouse.backupVolume" . }}/var/lib/clickhouse-files/{{ else }}/var/lib/clickhouse/user_files/{{ end }}</user_files_path>
    <format_schema_path>/var/lib/clickhouse/format_schemas/</format_schema_path>
    <listen_host>0.0.0.0</listen_host>
    {{- if .Values.tls.enabled }}
    <https_port>8123</https_port>
    <tcp_port_secure>9000</tcp_port_secure>
    {{- include "oal.clickhouse.openssl" . | nindent 4 }}
    {{- else }}
    <http_port>8123</http_port>
    <tcp_port>9000</tcp_port>
    {{- end }}
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
    {{- if .Values.monitoring.enabled }}
    <!-- For a Prometheus, which watches the server from outside: figures without rows or names, so without a password. -->
    <prometheus><endpoint>/metrics</endpoint><port>9363</port><metrics>true</metrics><asynchronous_metrics>true</asynchronous_metrics><events>true</events></prometheus>
    {{- end }}
    {{- if include "oal.backup.s3" . }}
    {{- include "oal.backup.disk" . | nindent 4 }}
    {{- end }}
    {{- if include "oal.clickhouse.backupVolume" . }}
    <storage_configuration><disks><backups><type>local</type><path>/var/lib/clickhouse-backups/</path></backups></disks></storage_configuration>
    <backups><allowed_disk>backups</allowed_disk><allowed_path>/var/lib/clickhouse-backups/</allowed_path></backups>
    {{- end }}
    {{- if include "oal.clickhouse.clustered" . }}
    {{- $cluster := include "oal.clickhouse.cluster" . }}
    <!-- Database oal has at every server tables over the shares of all: clickhouse/README.md. -->
    <remote_servers>
      <{{ $cluster }}>
        <secret from_env="OAL_CLICKHOUSE_CLUSTER_SECRET"/>
        {{- range include "oal.clickhouse.hosts" . | fromJsonArray }}
        <shard>
          <internal_replication>{{ include "oal.clickhouse.replicated" $ | not | not }}</internal_replication>
          {{- range . }}
          <replica><host>{{ . }}</host><port>9000</port>{{ if $.Values.tls.enabled }}<secure>1</secure>{{ end }}</replica>
          {{- end }}
        </shard>
        {{- end }}
      </{{ $cluster }}>
    </remote_servers>
    <macros>
      <cluster>{{ $cluster }}</cluster>
      <shard from_env="OAL_CLICKHOUSE_SHARD"/>
      <replica from_env="OAL_CLICKHOUSE_REPLICA"/>
    </macros>
    {{- end }}
    {{- if include "oal.clickhouse.replicated" . }}
    {{- $s := ternary "s" "" .Values.tls.enabled }}
    <!-- Replicas fetch each other's parts here. -->
    <interserver_http{{ $s }}_port>9009</interserver_http{{ $s }}_port>
    <interserver_http_host from_env="OAL_CLICKHOUSE_HOST"/>
    <interserver_http_credentials><user>oal</user><password from_env="OAL_CLICKHOUSE_CLUSTER_SECRET"/></interserver_http_credentials>
    <zookeeper>
      {{- range include "oal.keeper.hosts" . | fromJsonArray }}
      <node><host>{{ . }}</host><port>9181</port>{{ if $.Values.tls.enabled }}<secure>1</secure>{{ end }}</node>
      {{- end }}
    </zookeeper>
    {{- end }}
  </clickhouse>
{{- if .Values.tls.enabled }}
client.xml: |
  <!-- For clickhouse-client in a server's pod, as its option config-file. -->
  <config>
    <host>localhost</host>
    <port>9000</port>
    <secure>1</secure>
    <openSSL>
      {{- include "oal.clickhouse.opensslClient" . | nindent 6 }}
    </openSSL>
  </config>
{{- end }}
users.xml: |
  <clickhouse>
    <profiles>
      <default><max_memory_usage>{{ int64 .Values.clickhouse.queryMemoryBytes }}</max_memory_usage>
        {{- if include "oal.clickhouse.clustered" . }}
        <!-- An INSERT is done when the shards have its rows; the right side of a JOIN or IN is read from all shards. -->
        <distributed_foreground_insert>1</distributed_foreground_insert>
        <distributed_product_mode>global</distributed_product_mode>
      {{ end }}</default>
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
{{/* Of the administrator, of the users that clickhouse/users has, and of a cluster's servers. */}}
{{- define "oal.clickhouse.secrets" -}}
- secrets/clickhouse-admin.password
{{- range $path, $bytes := .Files.Glob "files/clickhouse/users/*.xml" }}
- secrets/clickhouse-{{ base $path | trimSuffix ".xml" }}.password
{{- end }}
{{- if include "oal.clickhouse.clustered" . }}
- secrets/clickhouse-cluster.secret
{{- end }}
{{- end -}}
{{/* The `clickhouse` section of a service's configuration. */}}
{{- define "oal.clickhouse.client" -}}
url: {{ include "oal.clickhouse.url" . }}
{{- with include "oal.clickhouse.caFile" . }}
ca_file: {{ . }}
{{- end }}
user: analyst
password_file: /run/secrets/oal/secrets/clickhouse-analyst.password
database: {{ include "oal.clickhouse.database" . }}
{{- end -}}

{{/* Keeper, as JSON and as files. It runs from the servers' image, which has it as `clickhouse keeper`. */}}
{{- define "oal.keeper.hosts" -}}
{{- $name := include "oal.name" (dict "root" . "name" "clickhouse-keeper") -}}
{{- $hosts := list -}}
{{- range $i := until (int .Values.clickhouse.keeper.replicas) -}}{{- $hosts = append $hosts (printf "%s-%d.%s-pods" $name $i $name) -}}{{- end -}}
{{- toJson $hosts -}}
{{- end -}}
{{- define "oal.keeper.config" -}}
start.sh: |
  set -euo pipefail
  export OAL_KEEPER_ID=$((${HOSTNAME##*-} + 1))
  exec clickhouse keeper --config-file=/etc/oal/keeper/keeper.xml
keeper.xml: |
  <clickhouse>
    <listen_host>0.0.0.0</listen_host>
    <logger><level>warning</level><console>true</console></logger>
    {{- $secure := ternary "_secure" "" .Values.tls.enabled }}
    {{- if .Values.tls.enabled }}
    {{- include "oal.clickhouse.openssl" . | nindent 4 }}
    {{- end }}
    <keeper_server>
      <tcp_port{{ $secure }}>9181</tcp_port{{ $secure }}>
      <server_id from_env="OAL_KEEPER_ID"/>
      <storage_path>/var/lib/clickhouse-keeper/</storage_path>
      <log_storage_path>/var/lib/clickhouse-keeper/log</log_storage_path>
      <snapshot_storage_path>/var/lib/clickhouse-keeper/snapshots</snapshot_storage_path>
      <!-- To look, not to change. -->
      <four_letter_word_white_list>ruok,srvr,stat,mntr,isro,lgif,dirs</four_letter_word_white_list>
      <http_control><port>9182</port><readiness><endpoint>/ready</endpoint></readiness></http_control>
      <coordination_settings>
        <operation_timeout_ms>10000</operation_timeout_ms>
        <session_timeout_ms>30000</session_timeout_ms>
        <!-- What is acknowledged is on the disks of a majority. -->
        <force_sync>true</force_sync>
        <snapshot_distance>100000</snapshot_distance>
        <snapshots_to_keep>3</snapshots_to_keep>
        <raft_logs_level>warning</raft_logs_level>
      </coordination_settings>
      <raft_configuration>
        {{- if .Values.tls.enabled }}
        <secure>true</secure>
        {{- end }}
        {{- range $i, $host := include "oal.keeper.hosts" . | fromJsonArray }}
        <server><id>{{ add1 $i }}</id><hostname>{{ $host }}</hostname><port>9234</port></server>
        {{- end }}
      </raft_configuration>
    </keeper_server>
  </clickhouse>
{{- end -}}
