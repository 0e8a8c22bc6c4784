{{/* The agent of hosts, on nodes: where it sends, and its configuration. */}}
{{- define "oal.hostAgent.namespace" -}}{{ .Values.hostAgent.namespace | default .Release.Namespace }}{{- end -}}

{{/* Capabilities of a container are root's alone. */}}
{{- define "oal.hostAgent.uid" -}}{{ ternary 0 10001 (eq .Values.hostAgent.congestionControl "enforce") }}{{- end -}}

{{/* As JSON: Kafka's brokers as access points reach them. */}}
{{- define "oal.hostAgent.brokers" -}}
{{- $access := .Values.kafka.access -}}
{{- if .Values.hostAgent.brokers -}}{{ .Values.hostAgent.brokers | toJson }}
{{- else if or (not .Values.kafka.enabled) (eq $access.type "none") -}}
{{- fail "hostAgent.brokers: give HOST:PORT of the brokers as access points reach them, or open Kafka by kafka.access; a node is outside of the pods' network" -}}
{{- else -}}
{{- $brokers := list -}}
{{- range $i, $host := $access.hosts -}}
{{- $brokers = append $brokers (printf "%s:%d" $host (ternary (add (int $access.nodePort) $i) 9095 (eq $access.type "NodePort"))) -}}
{{- end -}}
{{- $brokers | toJson -}}
{{- end -}}
{{- end -}}

{{- define "oal.hostAgent.pushUrl" -}}
{{- if .Values.hostAgent.pushUrl -}}{{ .Values.hostAgent.pushUrl }}
{{- else if .Values.push.enabled -}}https://{{ include "oal.name" (dict "root" . "name" "push") }}.{{ .Release.Namespace }}.svc:8443
{{- else -}}{{ fail "hostAgent.pushUrl: give the address of the push service as access points reach it, since push.enabled is false" }}{{- end -}}
{{- end -}}

{{/* As JSON: TCP ports that it connects to. Who enrols comes at the ticket's address. */}}
{{- define "oal.hostAgent.egress" -}}
{{- $ports := list (urlParse (include "oal.hostAgent.pushUrl" .)).host -}}
{{- $ports = append $ports (urlParse (.Values.push.enrol.url | default "https://push:8445")).host -}}
{{- $ports = concat $ports (include "oal.hostAgent.brokers" . | fromJsonArray) -}}
{{- $numbers := list -}}
{{- range $ports -}}{{ $numbers = append $numbers (regexFind "[0-9]+$" (ternary . (print . ":443") (regexMatch ":[0-9]+$" .)) | int) }}{{- end -}}
{{- $numbers | uniq | toJson -}}
{{- end -}}

{{- define "oal.hostAgent.config" -}}
{{- $h := .Values.hostAgent -}}
{{- $uid := include "oal.hostAgent.uid" . -}}
state.sh: |
  # Gives the node's folder to the agent's user: as root with CAP_CHOWN alone, which reads no folder of others.
  set -eu
  state=/var/lib/oal-host
  owner=$(stat -c %u "$state")
  case $owner in
  {{ $uid }}) {{ if eq $uid "0" }}chmod 0700 "$state" {{ end }};;
  {{- if eq $uid "0" }}
  10001) # as it was before congestionControl: enforce
    chown 0:0 "$state"
    find "$state" -exec chown 0:0 {} \; ;;
  {{- else }}
  0)
    chmod 0700 "$state"
    find "$state" -depth -exec chown {{ $uid }}:{{ $uid }} {} \; ;;
  {{- end }}
  *) echo "{{ $h.stateDir }} of this node belongs to user $owner: hostAgent.stateDir must be a folder of its own" >&2; exit 1 ;;
  esac
enrol.sh: |
  # Says who this node is, and enrols it by its ticket if that is a new one. Without ticket and certificate it fails.
  set -eu
  umask 077
  config=/run/oal-host/oal-host.conf state=/var/lib/oal-host
  ticket=/run/secrets/oal/tickets/$NODE_NAME
  mkdir -p "$state/bundles"
  sed "s/@NODE@/$NODE_NAME/" /etc/oal/host/oal-host.conf >"$config"
  if [ -s "$ticket" ] && ! sha256sum <"$ticket" | cmp -s - "$state/ticket.sha256"; then
    if oal-host enrol -c "$config" - <"$ticket"; then sha256sum <"$ticket" >"$state/ticket.sha256"; fi
  fi
  [ -e "$state/host.pem" ] || {
    echo "node $NODE_NAME is not enrolled: Secret {{ $h.tickets }} needs a good ticket under that key" >&2
    exit 1
  }
oal-host.conf: |
  config exporter 'main'
    option ap_id '@NODE@'
    option site '{{ $h.site }}'
    option status_socket '/run/oal-host/status.sock'
    {{- if $h.pseudonymKey }}
    option pseudonym_key '/run/secrets/oal/pseudonym/pseudonym-key'
    {{- end }}
  config tcp 'connections'
    {{- range $h.ports }}
    list port '{{ int . }}'
    {{- end }}
    {{- range $h.peers }}
    list peer '{{ . }}'
    {{- end }}
    option cpu_permille '{{ int $h.cpuPermille }}'
  config kafka 'kafka'
    {{- range include "oal.hostAgent.brokers" . | fromJsonArray }}
    list brokers '{{ . }}'
    {{- end }}
    option ca '/var/lib/oal-host/ca.pem'
    option certificate '/var/lib/oal-host/host.pem'
    option key '/var/lib/oal-host/host.key'
    option mac_keys '/var/lib/oal-host/mac-keys'
  config agent 'agent'
    option url '{{ include "oal.hostAgent.pushUrl" . }}'
    option ca '/var/lib/oal-host/ca.pem'
    option cert '/var/lib/oal-host/host.pem'
    option key '/var/lib/oal-host/host.key'
    option trusted_keys '/var/lib/oal-host/trusted-keys'
    option state_dir '/var/lib/oal-host/bundles'
    option neighbours_s '0'
  {{- if ne $h.congestionControl "off" }}
  config congestion 'congestion'
    option mode '{{ $h.congestionControl }}'
    option kill_file '/run/oal-host/kill'
  {{- end }}
  {{- with $h.config }}
  {{- . | nindent 2 }}
  {{- end }}
{{- end -}}
