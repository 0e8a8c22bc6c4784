{{/* Names and labels. */}}
{{- define "oal.fullname" -}}
{{- if .Values.fullnameOverride -}}{{ .Values.fullnameOverride | trunc 40 | trimSuffix "-" }}
{{- else if contains "oal" .Release.Name -}}{{ .Release.Name | trunc 40 | trimSuffix "-" }}
{{- else -}}{{ printf "%s-oal" .Release.Name | trunc 40 | trimSuffix "-" }}{{- end -}}
{{- end -}}

{{/* (dict "root" $ "name" "push"): the name of a component's objects. */}}
{{- define "oal.name" -}}{{ include "oal.fullname" .root }}-{{ .name }}{{- end -}}

{{/* Labels that never change: a selector is immutable. */}}
{{- define "oal.selector" -}}
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .name }}
{{- end -}}

{{- define "oal.labels" -}}
{{ include "oal.selector" . }}
app.kubernetes.io/name: oal
app.kubernetes.io/part-of: oal
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version | replace "+" "_" }}
{{- end -}}

{{/* Of pods: nothing that changes with the chart's version, for that would restart all of them. Those of the values change none of ours. */}}
{{- define "oal.podLabels" -}}
{{- $own := include "oal.selector" . | fromYaml -}}
{{- $_ := merge $own (dict "app.kubernetes.io/name" "oal" "app.kubernetes.io/part-of" "oal") -}}
{{- $part := include "oal.part" . | fromYaml -}}
{{ merge $own ($part.podLabels | default dict) .root.Values.pods.labels | toYaml }}
{{- end -}}

{{/* (dict "root" $ "name" "push"): metadata of an object; "namespace": where another than the release's. */}}
{{- define "oal.metadata" -}}
name: {{ include "oal.name" . }}
namespace: {{ .namespace | default .root.Release.Namespace }}
labels:
  {{- include "oal.labels" . | nindent 2 }}
{{- end -}}

{{/* (dict "root" $ "image" "oal-push"): one of OAL's own images. */}}
{{- define "oal.image" -}}
{{- $digest := get .root.Values.images.digests .image -}}
{{ .root.Values.images.prefix }}{{ .image }}{{ with $digest }}@{{ . }}{{ else }}:{{ .root.Values.images.tag | default .root.Chart.AppVersion }}{{ end }}
{{- end -}}

{{/* Parts of every pod. (dict "root" $ "name" "push" "uid" 10001); "everyNode": one a node, so there is nothing to spread. */}}
{{- define "oal.pod" -}}
{{- $root := .root -}}
{{- $part := include "oal.part" . | fromYaml -}}
{{- with $root.Values.images.pullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . }}
  {{- end }}
{{- end }}
serviceAccountName: {{ .account | default (include "oal.account" .) }}
automountServiceAccountToken: {{ .token | default false }}
enableServiceLinks: false
securityContext:
  runAsNonRoot: {{ ne (int .uid) 0 }}
  runAsUser: {{ .uid }}
  runAsGroup: {{ .uid }}
  fsGroup: {{ .uid }}
  fsGroupChangePolicy: OnRootMismatch
  seccompProfile: {type: RuntimeDefault}
{{- with $root.Values.scheduling.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with $part.nodeSelector | default $root.Values.scheduling.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $part.tolerations | default $root.Values.scheduling.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- if not .everyNode }}
topologySpreadConstraints:
  {{- range list "topology.kubernetes.io/zone" "kubernetes.io/hostname" }}
  - maxSkew: 1
    topologyKey: {{ . }}
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels:
        {{- include "oal.selector" $ | nindent 8 }}
  {{- end }}
{{- end }}
{{- with include "oal.affinity" . }}
affinity:
  {{- . | nindent 2 }}
{{- end }}
{{- end -}}

{{- define "oal.containerSecurity" -}}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: {drop: [ALL]}
{{- end -}}

{{/* Keys and passwords of one pod, laid out like OAL's state folder (pki/…, secrets/…); nothing that the pod has no use for.
     With `ca` the authority that clients believe, where no certificate of one's own brings it.
     (dict "root" $ "tls" (list "deploy") "ca" false "secrets" (list "secrets/push-admin.token") "apCa" false "pgpass" (list "push") "s3" false "oidc" (list "client-secret") "own" .Values.grafana.secret) */}}
{{- define "oal.secretSources" -}}
{{- $prefix := include "oal.secretPrefix" .root -}}
{{- $tls := .tls | default list -}}
{{- range $i, $name := $tls }}
- secret:
    name: {{ $prefix }}-tls-{{ $name }}
    items:
      - {key: tls.crt, path: pki/{{ $name }}.crt}
      - {key: tls.key, path: pki/{{ $name }}.key}
      - {key: tls-combined.pem, path: pki/{{ $name }}.pem}
      {{- if eq $i 0 }}
      - {key: ca.crt, path: pki/ca.crt}
      {{- end }}
{{- end }}
{{- if and .ca (not $tls) }}
- secret:
    name: {{ $prefix }}-tls-admin
    items:
      - {key: ca.crt, path: pki/ca.crt}
{{- end }}
{{- if .apCa }}
- secret:
    name: {{ $prefix }}-ap-ca
    items:
      - {key: tls.crt, path: pki/ap-ca.crt}
      - {key: tls.key, path: pki/ap-ca.key}
{{- end }}
{{- with .secrets }}
- secret:
    name: {{ $prefix }}-secrets
    items:
      {{- range . }}
      - {key: {{ base . }}, path: {{ . }}}
      {{- end }}
{{- end }}
{{- $postgres := .root.Values.postgres }}
{{- range .pgpass }}
- secret:
    name: {{ ternary "" $postgres.external.secret $postgres.enabled | default (printf "%s-secrets" $prefix) }}
    items:
      - {key: {{ . }}.pgpass, path: secrets/{{ . }}.pgpass}
{{- end }}
{{- if .s3 }}{{ include "oal.s3.secret" .root }}{{ end }}
{{- if .oidc }}
- secret:
    name: {{ required "oidc.secret: name the Secret with keys client-secret, cookie-secret and mlflow-password, since oidc.enabled is true" .root.Values.oidc.secret }}
    items:
      {{- range .oidc }}
      - {key: {{ . }}, path: oidc/{{ . }}}
      {{- end }}
{{- end }}
{{- with .own }}
{{- if .name }}
- secret:
    name: {{ .name }}
    items:
      {{- range .keys }}
      - {key: {{ . }}, path: own/{{ . }}}
      {{- end }}
{{- end }}
{{- end }}
{{- end -}}

{{- define "oal.secretPrefix" -}}
{{- if eq .Values.pki.mode "existing" -}}{{ .Values.pki.existing.prefix | default (include "oal.fullname" .) }}
{{- else -}}{{ include "oal.fullname" . }}{{- end -}}
{{- end -}}

{{/* The projected volume of the above. Mode 0440 with the pod's group: kubelet hands files of a volume to root. */}}
{{- define "oal.secretVolume" -}}
- name: {{ .volume | default "secrets" }}
  projected:
    defaultMode: 0440
    sources:
      {{- include "oal.secretSources" . | nindent 6 }}
{{- end -}}

{{/* Programs that refuse a secret file which its group may read (oal-registry, libpq) get copies of mode 0600 in memory.
     A changed Secret reaches them with the next start of the pod. */}}
{{- define "oal.privateSecretVolumes" -}}
{{ include "oal.secretVolume" (merge (dict "volume" "given") .) }}
- name: secrets
  emptyDir: {medium: Memory, sizeLimit: 1Mi}
{{- end -}}

{{- define "oal.privateSecretInit" -}}
- name: secrets
  image: {{ include "oal.image" (dict "root" .root "image" .image) }}
  imagePullPolicy: {{ .root.Values.images.pullPolicy }}
  command: [sh, -ec]
  args:
    - |
      umask 077
      cd /run/secrets/given
      for folder in *; do cp -RL "$folder" /run/secrets/oal/; done
      cd /run/secrets/oal
      # The form that Amazon's own libraries read.
      [ ! -d s3 ] || printf '[default]\naws_access_key_id = %s\naws_secret_access_key = %s\n' "$(cat s3/access-key)" "$(cat s3/secret-key)" >s3/credentials
      find . -type f -exec chmod 0600 {} +
  {{- include "oal.containerSecurity" . | nindent 2 }}
  resources: {requests: {cpu: 10m, memory: 16Mi}, limits: {cpu: 200m, memory: 64Mi}}
  volumeMounts:
    - {name: given, mountPath: /run/secrets/given, readOnly: true}
    - {name: secrets, mountPath: /run/secrets/oal}
{{- end -}}

{{/* (dict "root" $ "storage" .Values.push.storage): what the values say of a volume, as spec of a claim. */}}
{{- define "oal.claim" -}}
accessModes: {{ .storage.accessModes | default (list "ReadWriteOnce") | toJson }}
{{- with .storage.storageClass | default .root.Values.storageClass }}
storageClassName: {{ . }}
{{- end }}
resources: {requests: {storage: {{ .storage.size }}}}
{{- end -}}

{{/* (dict "root" $ "name" "push"): a drain takes one pod of a component at a time. */}}
{{- define "oal.budget" -}}
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  {{- include "oal.metadata" . | nindent 2 }}
spec:
  # Pods that must be on one node can only leave it together.
  maxUnavailable: {{ if and (hasPrefix "flink-" .name) (include "oal.flink.oneNode" .root) }}100%{{ else }}1{{ end }}
  selector:
    matchLabels:
      {{- include "oal.selector" . | nindent 6 }}
{{- end -}}

{{/* (dict "root" $ "name" "push" "service" "push-pods" "replicas" 2 "scheme" "http://" "port" 8080): each pod of a StatefulSet by its name, with
     commas between. */}}
{{- define "oal.pods" -}}
{{- range $i := until (int .replicas) -}}
{{ if $i }},{{ end }}{{ $.scheme | default "" }}{{ include "oal.name" $ }}-{{ $i }}.{{ include "oal.fullname" $.root }}-{{ $.service }}:{{ $.port }}
{{- end -}}
{{- end -}}

{{/* Of access points' way in. A node port is that of whatever node they were told of; a load balancer asks which node has the pod, and then
     the pod sees who comes. */}}
{{- define "oal.trafficPolicy" -}}
{{- .externalTrafficPolicy | default (ternary "Cluster" "Local" (eq .type "NodePort")) -}}
{{- end -}}

{{/* Not empty: an IP address and no name. */}}
{{- define "oal.isAddress" -}}{{ if or (regexMatch "^[0-9]+(\\.[0-9]+){3}$" .) (contains ":" .) }}address{{ end }}{{- end -}}

{{/* Where the parts are, in the chart or elsewhere. */}}
{{- define "oal.kafka.bootstrap" -}}
{{- if .Values.kafka.enabled -}}{{ include "oal.pods" (dict "root" . "name" "kafka" "service" "kafka-headless" "replicas" .Values.kafka.replicas "port" 9093) }}
{{- else -}}{{ required "kafka.external.bootstrap: give HOST:PORT,… of the existing Kafka, since kafka.enabled is false" .Values.kafka.external.bootstrap }}{{- end -}}
{{- end -}}

{{- define "oal.clickhouse.url" -}}
{{- if .Values.clickhouse.enabled -}}{{ include "oal.scheme" . }}://{{ include "oal.name" (dict "root" . "name" "clickhouse") }}:8123
{{- else -}}{{ required "clickhouse.external.url: give the HTTP interface of the existing ClickHouse, since clickhouse.enabled is false" .Values.clickhouse.external.url }}{{- end -}}
{{- end -}}

{{/* Dashboards and the users' rights name it too. */}}
{{- define "oal.clickhouse.database" -}}oal{{- end -}}

{{- define "oal.postgres.host" -}}
{{- if .Values.postgres.enabled -}}{{ include "oal.name" (dict "root" . "name" "postgres") }}
{{- else -}}{{ required "postgres.external.host: name the existing PostgreSQL server, since postgres.enabled is false" .Values.postgres.external.host }}{{- end -}}
{{- end -}}
{{- define "oal.postgres.port" -}}{{ if .Values.postgres.enabled }}5432{{ else }}{{ .Values.postgres.external.port }}{{ end }}{{- end -}}
{{- define "oal.postgres.sslmode" -}}{{ if not .Values.postgres.enabled }}{{ .Values.postgres.external.sslmode }}{{ else if .Values.tls.enabled }}verify-full{{ else }}disable{{ end }}{{- end -}}
{{- define "oal.postgres.caFile" -}}{{ if and .Values.postgres.enabled .Values.tls.enabled }}{{ include "oal.caFile" . }}{{ end }}{{- end -}}

{{- define "oal.mlflow.url" -}}
{{- if .Values.mlflow.enabled -}}{{ include "oal.scheme" . }}://{{ include "oal.name" (dict "root" . "name" "mlflow") }}:5000
{{- else -}}{{ required "mlflow.external.url: give the address of the existing MLflow, since mlflow.enabled is false" .Values.mlflow.external.url }}{{- end -}}
{{- end -}}

{{/* librdkafka's options for the principal NAME. */}}
{{- define "oal.kafka.librdkafka" -}}
bootstrap.servers: {{ include "oal.kafka.bootstrap" .root | quote }}
security.protocol: ssl
ssl.ca.location: /run/secrets/oal/pki/ca.crt
ssl.certificate.location: /run/secrets/oal/pki/{{ .name }}.crt
ssl.key.location: /run/secrets/oal/pki/{{ .name }}.key
{{- end -}}
{{- define "oal.kafka.java" -}}
bootstrap.servers={{ include "oal.kafka.bootstrap" .root }}
security.protocol=SSL
ssl.keystore.type=PEM
ssl.keystore.location=/run/secrets/oal/pki/{{ .name }}.pem
ssl.truststore.type=PEM
ssl.truststore.location=/run/secrets/oal/pki/ca.crt
{{- end -}}

{{/* Every certificate of this installation: name → DNS names (none: a client only). */}}
{{- define "oal.certificates" -}}
{{- $short := include "oal.fullname" . -}}
{{- $ns := .Release.Namespace -}}
admin: []
stream-jobs: []
viewer: []
{{- if .Values.kafka.topics.manage }}
transactions: []
{{- end }}
operator: []
{{- if .Values.kafka.enabled }}
broker:
  - {{ $short }}-kafka
  - {{ $short }}-kafka.{{ $ns }}.svc
  {{- range $i := until 3 }}
  - {{ $short }}-kafka-{{ $i }}.{{ $short }}-kafka-headless
  {{- end }}
  {{- range .Values.kafka.access.hosts }}
  - {{ . | quote }}
  {{- end }}
{{- end }}
{{- if .Values.push.enabled }}
deploy:
  - {{ $short }}-push
  - {{ $short }}-push.{{ $ns }}.svc
  {{- if .Values.tls.enabled }}
  - {{ $short }}-push-admin
  - {{ $short }}-push-admin.{{ $ns }}.svc
  {{- range $i := until (int .Values.push.replicas) }}
  - {{ $short }}-push-{{ $i }}.{{ $short }}-push-pods
  {{- end }}
  - localhost
  {{- end }}
  {{- range .Values.push.access.hosts }}
  - {{ . | quote }}
  {{- end }}
{{- end }}
{{- if .Values.flink.enabled }}
flink-rest:
  - {{ $short }}-flink
  - {{ $short }}-flink.{{ $ns }}.svc
  - localhost
{{- end }}
{{ include "oal.tls.certificates" . }}
{{- end -}}
