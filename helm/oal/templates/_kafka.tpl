{{/* The broker's files. The same rules as platform/kafka/server.properties: no listener without TLS and a client certificate. */}}
{{- define "oal.kafka.config" -}}
{{- $name := include "oal.name" (dict "root" . "name" "kafka") -}}
{{- $replicas := int .Values.kafka.replicas -}}
{{- $voters := list -}}
{{- range $i := until $replicas -}}
{{- $voters = append $voters (printf "%d@%s-%d.%s-headless:9094" (add1 $i) $name $i $name) -}}
{{- end -}}
start.sh: |
  # Fills in what differs from pod to pod, formats the log folder once, and becomes the broker.
  set -euo pipefail
  number=${HOSTNAME##*-}
  {{- if eq .Values.kafka.access.type "none" }}
  outside=""
  {{- else if eq .Values.kafka.access.type "NodePort" }}
  hosts=({{ join " " .Values.kafka.access.hosts }})
  outside=",EXTERNAL://${hosts[$number]}:$(({{ int .Values.kafka.access.nodePort }} + number))"
  {{- else }}
  hosts=({{ join " " .Values.kafka.access.hosts }})
  outside=",EXTERNAL://${hosts[$number]}:9095"
  {{- end }}
  mkdir -p /tmp/logs
  { cat /etc/oal/kafka/server.properties
    echo "node.id=$((number + 1))"
    echo "advertised.listeners=CLIENT://$HOSTNAME.{{ $name }}-headless:9093$outside"
  } >/tmp/server.properties
  /opt/kafka/bin/kafka-storage.sh format --ignore-formatted -t {{ sha256sum (printf "%s/%s" .Release.Namespace .Release.Name) | trunc 16 | b64enc | trimSuffix "==" | replace "+" "-" | replace "/" "_" }} -c /tmp/server.properties
  {{- if .Values.telegraf.enabled }}
  {{- include "oal.jolokia.start" . | nindent 2 }}
  export KAFKA_OPTS="-javaagent:/opt/jolokia/jolokia.jar=config=/tmp/jolokia.properties"
  {{- end }}
  # Certificates change while the broker runs (cert-manager, an upgrade). It looks at its files when a listener is told where they are.
  watch_certificate() {
    local pki=/run/secrets/oal/pki known now listeners="" listener
    for listener in client controller{{ if ne .Values.kafka.access.type "none" }} external{{ end }}; do
      listeners+="${listeners:+,}listener.name.$listener.ssl.keystore.location=$pki/broker.pem"
    done
    printf '%s\n' security.protocol=SSL ssl.keystore.type=PEM "ssl.keystore.location=$pki/broker.pem" ssl.truststore.type=PEM \
      "ssl.truststore.location=$pki/ca.crt" >/tmp/own.properties
    known=$(sha256sum <"$pki/broker.pem")
    while sleep 60; do
      now=$(sha256sum <"$pki/broker.pem") || continue # in the middle of a change
      [ "$now" != "$known" ] || continue
      if KAFKA_OPTS="" KAFKA_HEAP_OPTS=-Xmx64m /opt/kafka/bin/kafka-configs.sh --bootstrap-server "$HOSTNAME.{{ $name }}-headless:9093" \
        --command-config /tmp/own.properties --entity-type brokers --entity-name "$((number + 1))" --alter --add-config "$listeners"; then
        known=$now
      fi
    done
  }
  watch_certificate &
  exec /opt/kafka/bin/kafka-server-start.sh /tmp/server.properties
log4j2.properties: |
  {{- .Files.Get "files/kafka/log4j2.properties" | nindent 2 }}
server.properties: |
  process.roles=broker,controller
  controller.quorum.voters={{ join "," $voters }}
  controller.listener.names=CONTROLLER
  listeners=CLIENT://0.0.0.0:9093,CONTROLLER://0.0.0.0:9094{{ if ne .Values.kafka.access.type "none" }},EXTERNAL://0.0.0.0:9095{{ end }}
  listener.security.protocol.map=CLIENT:SSL,CONTROLLER:SSL,EXTERNAL:SSL
  inter.broker.listener.name=CLIENT
  log.dirs=/var/lib/oal/kafka/data
  ssl.client.auth=required
  ssl.keystore.type=PEM
  ssl.keystore.location=/run/secrets/oal/pki/broker.pem
  ssl.truststore.type=PEM
  ssl.truststore.location=/run/secrets/oal/pki/ca.crt
  # Who is who: platform/kafka/server.properties says why.
  ssl.principal.mapping.rules=RULE:^CN=([A-Za-z0-9._-]+),OU=ap,O=oal$/ap:$1/,RULE:^CN=(broker|admin|stream-jobs|trainer|model-registry|deploy|lab|viewer|transactions),OU=service,O=oal$/$1/,RULE:^.+$/nobody/
  authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer
  super.users=User:broker;User:admin
  allow.everyone.if.no.acl.found=false
  auto.create.topics.enable=false
  default.replication.factor={{ $replicas }}
  min.insync.replicas={{ ternary 2 1 (ge $replicas 3) }}
  offsets.topic.replication.factor={{ $replicas }}
  offsets.topic.num.partitions=16
  transaction.state.log.replication.factor={{ $replicas }}
  transaction.state.log.min.isr={{ ternary 2 1 (ge $replicas 3) }}
  transaction.state.log.num.partitions=16
  share.coordinator.state.topic.replication.factor={{ $replicas }}
  share.coordinator.state.topic.min.isr={{ ternary 2 1 (ge $replicas 3) }}
  # The upper bound of a client's transaction.timeout.ms. While ClickHouse is away the stream job's transactions stay open;
  # one that its broker ends meanwhile loses the items of a checkpoint. As long as the topics keep what the job reads.
  transaction.max.timeout.ms=86400000
  log.segment.bytes=134217728
  {{- if lt (int $replicas) 3 }}
  # Nobody takes the partitions of a fenced broker over: platform/kafka/server.properties says what follows.
  broker.session.timeout.ms=18000
  {{- end }}
  {{- range $key, $value := .Values.kafka.config }}
  {{ $key }}={{ $value }}
  {{- end }}
{{- end -}}

{{/* Topics, ACLs and quotas of platform/kafka/topics.yaml, with the copies and partitions of this cluster. */}}
{{- define "oal.kafka.topics" -}}
{{- $spec := .Files.Get "files/kafka/topics.yaml" | fromYaml -}}
{{- $copies := ternary (int .Values.kafka.replicas) (int .Values.kafka.external.replication) .Values.kafka.enabled -}}
{{- $config := merge .Values.kafka.topics.config (dict "min.insync.replicas" (ternary 2 1 (ge (int $copies) 3))) $spec.defaults.config -}}
{{- $quota := dict "producer_byte_rate" .Values.kafka.quotas.accessPoint.bytesPerSecond "request_percentage" .Values.kafka.quotas.accessPoint.requestPercent -}}
{{- $defaults := dict "partitions" .Values.kafka.topics.partitions "replication" $copies "config" $config -}}
{{- toYaml (dict "defaults" $defaults "topics" $spec.topics "quotas" (dict "ap" $quota) "acls" $spec.acls) -}}
{{- end -}}

{{/* Jolokia's agent, which the official images do not have, comes from an image of ours. */}}
{{- define "oal.jolokia.init" -}}
{{- if .root.Values.telegraf.enabled -}}
initContainers:
  - name: jolokia
    image: {{ include "oal.image" (dict "root" .root "image" "oal-stream-jobs") }}
    imagePullPolicy: {{ .root.Values.images.pullPolicy }}
    command: [cp, /opt/oal/jolokia.jar, /opt/jolokia/jolokia.jar]
    {{- include "oal.containerSecurity" . | nindent 4 }}
    resources: {requests: {cpu: 10m, memory: 16Mi}, limits: {cpu: 200m, memory: 64Mi}}
    volumeMounts:
      - {name: jolokia, mountPath: /opt/jolokia}
{{- end -}}
{{- end -}}
{{- define "oal.jolokia.mount" -}}
{{- if .Values.telegraf.enabled -}}
- {name: jolokia, mountPath: /opt/jolokia, readOnly: true}
- {name: jolokia-access, mountPath: /etc/oal/jolokia, readOnly: true}
{{- end -}}
{{- end -}}
{{- define "oal.jolokia.volume" -}}
{{- if .Values.telegraf.enabled -}}
- name: jolokia
  emptyDir: {sizeLimit: 8Mi}
- name: jolokia-access
  configMap: {name: {{ include "oal.name" (dict "root" . "name" "jolokia") }}}
{{- end -}}
{{- end -}}
{{- define "oal.jolokia.secret" -}}
{{- if .Values.telegraf.enabled }}[secrets/jolokia.password]{{ else }}[]{{ end -}}
{{- end -}}

{{- define "oal.jolokia.certificates" -}}
{{- ternary (list "jolokia") list (and .Values.telegraf.enabled .Values.tls.enabled) | toJson -}}
{{- end -}}

{{/* Lines of a start script. In a file, because a password in an agent's options would stand in the process list. */}}
{{- define "oal.jolokia.start" -}}
(umask 077; printf '%s\n' host=0.0.0.0 port=8778 agentContext=/jolokia user=telegraf "password=$(cat /run/secrets/oal/secrets/jolokia.password)" \
  policyLocation=file:///etc/oal/jolokia/access.xml discoveryEnabled=false disableDetectors=true executor=fixed threadNr=1{{ if .Values.tls.enabled }} \
  protocol=https serverCert=/run/secrets/oal/pki/jolokia.crt serverKey=/run/secrets/oal/pki/jolokia.key{{ end }} >/tmp/jolokia.properties)
{{- end -}}
