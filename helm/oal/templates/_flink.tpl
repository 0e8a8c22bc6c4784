{{/* Flink's files. The same rules as platform/local/config/flink/config.yaml. The passwords of the key stores are filled in at the start. */}}
{{- define "oal.flink.config" -}}
{{- $f := .Values.flink -}}
{{- $name := include "oal.name" (dict "root" . "name" "flink") -}}
start.sh: |
  # start.sh jobmanager|taskmanager: fills in what is secret or differs from pod to pod, and becomes Flink.
  set -euo pipefail
  export FLINK_CONF_DIR=/tmp/conf OAL_JOB_CONFIG=/etc/oal/flink/job.properties
  umask 077
  mkdir -p /tmp/conf
  pki=/run/secrets/oal/pki
  { cat /etc/oal/flink/config.yaml
    for store in internal rest; do
      password=$(cat $pki/flink-$store.password)
      printf 'security.ssl.%s: "%s"\n' "$store.keystore-password" "$password" "$store.key-password" "$password" "$store.truststore-password" "$password"
    done
    {{- if and (eq $f.checkpoints.storage "s3") $f.checkpoints.s3.secret }}
    printf 's3.%s: "%s"\n' access-key "$(cat /run/secrets/oal/s3/access-key)" secret-key "$(cat /run/secrets/oal/s3/secret-key)"
    {{- end }}
    echo "taskmanager.host: $POD_IP"
    echo "taskmanager.resource-id: $HOSTNAME"
  } >/tmp/conf/config.yaml
  {{- if .Values.telegraf.enabled }}
  {{- include "oal.jolokia.start" . | nindent 2 }}
  export OAL_JOLOKIA=/tmp/jolokia.properties
  {{- end }}
  if [ "$1" = jobmanager ]; then bash /etc/oal/flink/plan.sh; exec oal-flink jobmanager "-Djobmanager.rpc.address=$POD_IP"; fi
  exec oal-flink taskmanager
plan.sh: |
  # The job id is the same at every start: by it the metadata of high availability, and so the newest checkpoint, are
  # found. Beside them is the plan of the job as it was first made: its parallelism, its options, its code. Flink would
  # run that one for ever, whatever the configuration and the image say. So the plan is forgotten before each start, and
  # made anew by the program.
  set -euo pipefail
  account=${OAL_ACCOUNT:-/var/run/secrets/kubernetes.io/serviceaccount}
  host=$KUBERNETES_SERVICE_HOST
  case $host in *:*) host="[$host]" ;; esac
  api=https://$host:$KUBERNETES_SERVICE_PORT/api/v1/namespaces/{{ .Release.Namespace }}/configmaps
  answer=$(mktemp)
  stop() { echo "flink: $*" >&2; exit 1; }
  ask() { # NAME [OPTION…]: the status; the answer is in a file
    curl -sS -m 30 -o "$answer" -w '%{http_code}' --cacert $account/ca.crt -H "Authorization: Bearer $(cat $account/token)" "${@:2}" "$api/$1" \
      || stop "the API server does not answer; without it Flink does not know its newest checkpoint"
  }
  found() { # NAME: whether there is such a ConfigMap; closed when nobody can tell
    local status; status=$(ask "$1") || exit 1
    case $status in
    200) return 0 ;;
    404) return 1 ;;
    *) stop "ConfigMap $1 cannot be read (status $status): $(head -c 300 "$answer")" ;;
    esac
  }
  if found {{ $name }}-cluster-config-map; then
    for key in $(grep -oE '"(executionPlan|jobGraph)-[0-9a-f]{32}"' "$answer" | sort -u); do
      status=$(ask {{ $name }}-cluster-config-map -X PATCH -H 'Content-Type: application/merge-patch+json' --data "{\"data\":{$key:null}}") || exit 1
      [ "$status" = 200 ] || stop "the plan of the last start cannot be forgotten (status $status): $(head -c 300 "$answer")"
    done
  fi
  {{- if eq $f.checkpoints.storage "pvc" }}
  # Checkpoints that the ConfigMaps speak of and no volume has: the volume is another one.
  job=$(printf %s oal.stream.Main | md5sum | cut -c1-32)
  if found "{{ $name }}-$job-config-map"; then
    files=$({ grep -oE '"checkpointID-[0-9]+": *"[A-Za-z0-9+/=]+"' "$answer" || true; } | sed 's/.*"\([^"]*\)"$/\1/' \
      | while read -r handle; do base64 -d <<<"$handle" | grep -aoE '{{ include "oal.flink.folder" . }}/[A-Za-z0-9/_.-]+' || true; done)
    present=
    # The handle is serialised Java, which ends what it says of the path with an x.
    for file in $files; do if [ -e "$file" ] || [ -e "${file%x}" ]; then present=1; fi; done
    [ -z "$files" ] || [ "$present" ] || stop "ConfigMaps of an earlier installation speak of checkpoints that this volume does not have." \
      "To begin without its state: kubectl -n {{ .Release.Namespace }} delete configmap -l app={{ $name }},type=flink-native-kubernetes"
  fi
  {{- end }}
job.properties: |
  {{- range $line := splitList "\n" (include "oal.kafka.java" (dict "root" . "name" "stream-jobs")) }}
  kafka.{{ $line }}
  {{- end }}
  clickhouse.url={{ include "oal.clickhouse.url" . }}
  {{- with include "oal.clickhouse.caFile" . }}
  clickhouse.ca.file={{ . }}
  {{- end }}
  clickhouse.database={{ include "oal.clickhouse.database" . }}
  clickhouse.user=ingest
  clickhouse.password.file=/run/secrets/oal/secrets/clickhouse-ingest.password
  mac.keys.file=/run/secrets/oal/secrets/mac-masters
  {{- if .Values.kafka.enabled }}
  # What this chart's Kafka allows at most.
  kafka.transaction.timeout.ms=86400000
  {{- end }}
  {{- with include "oal.flink.maxParallelism" . }}
  max.parallelism={{ . }}
  {{- end }}
  {{- range $key, $value := $f.job }}
  {{ $key }}={{ $value }}
  {{- end }}
config.yaml: |
  {{- $own := dict
    "jobmanager.bind-host" "0.0.0.0"
    "jobmanager.rpc.port" 6123
    "jobmanager.execution.failover-strategy" "region"
    "blob.server.port" 6124
    "rest.bind-address" "0.0.0.0"
    "rest.port" 8081
    "rest.address" $name
    "web.submit.enable" false
    "web.cancel.enable" false
    "high-availability.type" "kubernetes"
    "high-availability.storageDir" (printf "%s/ha" (include "oal.flink.storage" .))
    "high-availability.jobmanager.port" 6123
    "kubernetes.cluster-id" $name
    "kubernetes.namespace" .Release.Namespace
    "security.ssl.internal.enabled" true
    "security.ssl.internal.keystore" "/run/secrets/oal/pki/flink-internal.p12"
    "security.ssl.internal.keystore-type" "PKCS12"
    "security.ssl.internal.truststore" "/run/secrets/oal/pki/flink-internal.p12"
    "security.ssl.internal.truststore-type" "PKCS12"
    "security.ssl.rest.enabled" true
    "security.ssl.rest.authentication-enabled" true
    "security.ssl.rest.keystore" "/run/secrets/oal/pki/flink-rest.p12"
    "security.ssl.rest.keystore-type" "PKCS12"
    "security.ssl.rest.truststore" "/run/secrets/oal/pki/flink-rest-trust.p12"
    "security.ssl.rest.truststore-type" "PKCS12"
    "taskmanager.bind-host" "0.0.0.0"
    "taskmanager.rpc.port" 6122
    "taskmanager.data.port" 6121
    "taskmanager.numberOfTaskSlots" (int $f.taskManager.slots)
    "taskmanager.cpu.cores" (int $f.taskManager.slots)
    "taskmanager.memory.framework.heap.size" "128m"
    "taskmanager.memory.framework.off-heap.size" "128m"
    "taskmanager.memory.task.heap.size" (printf "%dm" (sub (int $f.taskManager.heapMiB) 128))
    "taskmanager.memory.task.off-heap.size" "64m"
    "taskmanager.memory.managed.size" (printf "%dm" (int $f.taskManager.managedMiB))
    "taskmanager.memory.network.min" "96m"
    "taskmanager.memory.network.max" "96m"
    "taskmanager.memory.jvm-metaspace.size" "256m"
    "taskmanager.memory.jvm-overhead.min" "192m"
    "taskmanager.memory.jvm-overhead.max" "192m"
    "parallelism.default" (mul (int $f.taskManager.slots) (int $f.taskManager.replicas))
    "state.backend.type" $f.stateBackend
    "io.tmp.dirs" "/tmp/flink"
    "execution.checkpointing.interval" $f.checkpoints.interval
    "execution.checkpointing.mode" "EXACTLY_ONCE"
    "execution.checkpointing.incremental" (eq $f.stateBackend "rocksdb")
    "execution.checkpointing.timeout" "2 min"
    "execution.checkpointing.tolerable-failed-checkpoints" 2147483647
    "execution.checkpointing.storage" "filesystem"
    "execution.checkpointing.dir" (printf "%s/checkpoints" (include "oal.flink.storage" .))
    "execution.checkpointing.externalized-checkpoint-retention" "RETAIN_ON_CANCELLATION"
    "restart-strategy.type" "fixed-delay"
    "restart-strategy.fixed-delay.attempts" 2147483647
    "restart-strategy.fixed-delay.delay" "1s"
  -}}
  {{- if .Values.telegraf.enabled }}{{ $_ := set $own "metrics.reporters" "jmx" }}{{ $_ := set $own "metrics.reporter.jmx.factory.class" "org.apache.flink.metrics.jmx.JMXReporterFactory" }}{{ $_ := set $own "metrics.reporter.jmx.filter.includes" "jobmanager:*;jobmanager.job:*;taskmanager.job.task:*;taskmanager.job.task.operator:*;taskmanager.job.task.operator.KafkaSourceReader:*" }}{{ end }}
  {{- /* As Hadoop does from 3.4 on: deleting the markers above each file costs a request a file, and a store that keeps files in folders refuses it, again and again. */}}
  {{- if eq $f.checkpoints.storage "s3" }}{{ $_ := set $own "fs.s3a.directory.marker.retention" "keep" }}{{ end }}
  {{- with $f.checkpoints.s3.endpoint }}{{ if eq $f.checkpoints.storage "s3" }}{{ $_ := set $own "s3.endpoint" . }}{{ $_ := set $own "s3.path.style.access" $f.checkpoints.s3.pathStyle }}{{ end }}{{ end }}
  {{- range $key, $value := merge (deepCopy $f.config) $own }}
  {{ $key }}: {{ if kindIs "string" $value }}{{ $value | quote }}{{ else if kindIs "float64" $value }}{{ if eq (float64 (int64 $value)) $value }}{{ int64 $value }}{{ else }}{{ $value }}{{ end }}{{ else }}{{ $value }}{{ end }}
  {{- end }}
{{- end -}}

{{/* Empty: the checkpoint's. A release that was installed before there was the key has state with another number: its ConfigMap lacks the line. */}}
{{- define "oal.flink.maxParallelism" -}}
{{- $found := lookup "v1" "ConfigMap" .Release.Namespace (include "oal.name" (dict "root" . "name" "flink")) -}}
{{- $set := int .Values.flink.maxParallelism -}}
{{- if and (gt $set 0) (or (not $found) (contains "max.parallelism=" (default "" (get (default dict $found.data) "job.properties")))) -}}
{{- $set -}}
{{- end -}}
{{- end -}}

{{- define "oal.flink.storage" -}}
{{- if eq .Values.flink.checkpoints.storage "s3" -}}s3://{{ required "flink.checkpoints.s3.bucket: name the bucket for checkpoints, since flink.checkpoints.storage is s3" .Values.flink.checkpoints.s3.bucket }}/{{ .Release.Namespace }}-{{ .Release.Name }}
{{- else -}}file://{{ include "oal.flink.folder" . }}{{- end -}}
{{- end -}}
{{- define "oal.flink.folder" -}}/var/lib/oal/flink{{- end -}}

{{/* (dict "root" $ "role" "jobmanager" "size" …): what both kinds of pods share. */}}
{{- define "oal.flink.pod" -}}
{{- $root := .root -}}
{{- $k := dict "root" $root "name" (printf "flink-%s" .role) -}}
metadata:
  labels:
    {{- include "oal.podLabels" $k | nindent 4 }}
  annotations:
    checksum/config: {{ include "oal.flink.config" $root | sha256sum }}
    {{- with include "oal.podAnnotations" $k }}{{ . | nindent 4 }}{{ end }}
spec:
  {{- include "oal.pod" (merge (dict "uid" 10001 "account" (include "oal.name" (dict "root" $root "name" "flink")) "token" true) $k) | nindent 2 }}
  terminationGracePeriodSeconds: 60
  {{- include "oal.jolokia.init" $k | nindent 2 }}
  containers:
    - name: {{ .role }}
      image: {{ include "oal.image" (dict "root" $root "image" "oal-stream-jobs") }}
      imagePullPolicy: {{ $root.Values.images.pullPolicy }}
      command: [bash, /etc/oal/flink/start.sh, {{ .role }}]
      {{- include "oal.containerSecurity" $root | nindent 6 }}
      env:
        - name: POD_IP
          valueFrom: {fieldRef: {fieldPath: status.podIP}}
        - {name: OAL_HEAP_MIB, value: {{ .values.heapMiB | quote }}}
        {{- if eq .role "jobmanager" }}
        - {name: OAL_FLINK_REST, value: {{ printf "https://%s:8081" (include "oal.name" (dict "root" $root "name" "flink")) | quote }}}
        - {name: OAL_FLINK_AT, value: "localhost:8081"}
        - {name: OAL_FLINK_CLIENT, value: /run/secrets/oal/pki/operator}
        - {name: OAL_FLINK_CA, value: /run/secrets/oal/pki/ca.crt}
        - {name: OAL_FLINK_TASKS, value: "1"}
        {{- end }}
        {{- with include "oal.extraEnv" $k }}{{ . | nindent 8 }}{{ end }}
      ports:
        {{- if eq .role "jobmanager" }}
        - {name: rpc, containerPort: 6123}
        - {name: blob, containerPort: 6124}
        - {name: rest, containerPort: 8081}
        {{- else }}
        - {name: data, containerPort: 6121}
        - {name: rpc, containerPort: 6122}
        {{- end }}
        - {name: jolokia, containerPort: 8778}
      {{- $port := ternary "rest" "rpc" (eq .role "jobmanager") }}
      startupProbe: {tcpSocket: {port: {{ $port }}}, periodSeconds: 3, failureThreshold: 100}
      {{- if eq .role "jobmanager" }}
      # Ready is: the job runs, all of its tasks. So an upgrade that its job does not survive is no success for Helm.
      readinessProbe: {exec: {command: [oal-flink-health]}, periodSeconds: 5, timeoutSeconds: 10}
      {{- else }}
      readinessProbe: {tcpSocket: {port: rpc}, periodSeconds: 5}
      {{- end }}
      livenessProbe: {tcpSocket: {port: rpc}, periodSeconds: 20, failureThreshold: 6}
      resources:
        {{- /* beside the heap: managed memory, 288 direct, 256 metaspace, 192 of the JVM's own */}}
        {{- $memory := add (int .values.heapMiB) (int (.values.managedMiB | default 0)) 736 }}
        requests: {cpu: {{ .values.cpu | quote }}, memory: {{ $memory }}Mi}
        limits: {memory: {{ $memory }}Mi}
      volumeMounts:
        - {name: config, mountPath: /etc/oal/flink, readOnly: true}
        - {name: secrets, mountPath: /run/secrets/oal, readOnly: true}
        - {name: tmp, mountPath: /tmp}
        {{- if eq $root.Values.flink.checkpoints.storage "pvc" }}
        - {name: checkpoints, mountPath: /var/lib/oal/flink}
        {{- end }}
        {{- include "oal.jolokia.mount" $root | nindent 8 }}
  volumes:
    - name: config
      configMap: {name: {{ include "oal.name" (dict "root" $root "name" "flink") }}}
    - name: tmp
      emptyDir: {sizeLimit: {{ .values.scratch }}}
    {{- if eq $root.Values.flink.checkpoints.storage "pvc" }}
    - name: checkpoints
      persistentVolumeClaim: {claimName: {{ include "oal.name" (dict "root" $root "name" "flink-checkpoints") }}}
    {{- end }}
    {{- include "oal.jolokia.volume" $root | nindent 4 }}
    {{- $secrets := concat (list "secrets/clickhouse-ingest.password" "secrets/mac-masters") (include "oal.jolokia.secret" $root | fromYamlArray) }}
    - name: secrets
      projected:
        defaultMode: 0440
        sources:
          {{- include "oal.secretSources" (dict "root" $root "tls" (concat (list "stream-jobs") (include "oal.jolokia.certificates" $root | fromJsonArray)) "secrets" $secrets) | nindent 10 }}
          - secret:
              name: {{ include "oal.secretPrefix" $root }}-flink
              items:
                {{- range concat (list "flink-internal.p12" "flink-internal.password" "flink-rest.p12" "flink-rest.password" "flink-rest-trust.p12") (ternary (list "operator.crt" "operator.key") list (eq .role "jobmanager")) }}
                - {key: {{ . }}, path: pki/{{ . }}}
                {{- end }}
          {{- if and (eq $root.Values.flink.checkpoints.storage "s3") $root.Values.flink.checkpoints.s3.secret }}
          - secret:
              name: {{ $root.Values.flink.checkpoints.s3.secret }}
              items:
                - {key: access-key, path: s3/access-key}
                - {key: secret-key, path: s3/secret-key}
          {{- end }}
{{- end -}}
