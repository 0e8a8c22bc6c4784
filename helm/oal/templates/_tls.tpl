{{/* TLS between the parts: tls.enabled. Ports are the same with and without it; only what is spoken there differs. */}}
{{- define "oal.scheme" -}}http{{ if .Values.tls.enabled }}s{{ end }}{{- end -}}

{{/* Added to a probe's httpGet. kubelet checks no certificate: it asks the pod by its address. */}}
{{- define "oal.probeScheme" -}}{{ if .Values.tls.enabled }}, scheme: HTTPS{{ end }}{{- end -}}

{{/* Whom clients believe, where it is ours; empty: the server is plain, or elsewhere and the public authorities vouch for it. */}}
{{- define "oal.caFile" -}}/run/secrets/oal/pki/ca.crt{{- end -}}
{{- define "oal.clickhouse.caFile" -}}{{ if and .Values.tls.enabled .Values.clickhouse.enabled }}{{ include "oal.caFile" . }}{{ end }}{{- end -}}
{{- define "oal.mlflow.caFile" -}}{{ if and .Values.tls.enabled .Values.mlflow.enabled }}{{ include "oal.caFile" . }}{{ end }}{{- end -}}

{{/* (dict "root" $ "name" "clickhouse"): what a server of HTTP is told of its certificate; empty without TLS. */}}
{{- define "oal.serverFiles" -}}
{{- if .root.Values.tls.enabled -}}{cert: /run/secrets/oal/pki/{{ .name }}.crt, key: /run/secrets/oal/pki/{{ .name }}.key}{{- end -}}
{{- end -}}

{{/* (dict "root" $ "names" (list "clickhouse")): as JSON, the certificates that a server mounts for TLS; none without. */}}
{{- define "oal.serverCertificates" -}}
{{- ternary .names list .root.Values.tls.enabled | toJson -}}
{{- end -}}

{{/* Of ClickHouse's servers and Keeper: as servers they show a certificate, and ask for none, since whoever comes says a password or
     the cluster's secret; as clients of each other they check it and its name. */}}
{{- define "oal.clickhouse.openssl" -}}
<openSSL>
  <server>
    <certificateFile>/run/secrets/oal/pki/clickhouse.crt</certificateFile>
    <privateKeyFile>/run/secrets/oal/pki/clickhouse.key</privateKeyFile>
    <caConfig>{{ include "oal.caFile" . }}</caConfig>
    <verificationMode>none</verificationMode>
    <disableProtocols>sslv2,sslv3,tlsv1,tlsv1_1</disableProtocols>
  </server>
  {{- $client := include "oal.clickhouse.opensslClient" . }}
  {{- /* S3 has a certificate of the public authorities. Hosts of the cluster have names that those vouch for to nobody. */}}
  {{- if include "oal.backup.s3" . }}{{ $client = replace "<loadDefaultCAFile>false" "<loadDefaultCAFile>true" $client }}{{ end }}
  {{- $client | nindent 2 }}
</openSSL>
{{- end -}}
{{- define "oal.clickhouse.opensslClient" -}}
<client>
  <caConfig>{{ include "oal.caFile" . }}</caConfig>
  <loadDefaultCAFile>false</loadDefaultCAFile>
  <verificationMode>strict</verificationMode>
  <extendedVerification>true</extendedVerification>
  <invalidCertificateHandler><name>RejectCertificateHandler</name></invalidCertificateHandler>
  <disableProtocols>sslv2,sslv3,tlsv1,tlsv1_1</disableProtocols>
</client>
{{- end -}}

{{/* Certificates of servers that speak TLS because of tls.enabled: name → DNS names. Part of oal.certificates. */}}
{{- define "oal.tls.certificates" -}}
{{- $short := include "oal.fullname" . -}}
{{- $ns := .Release.Namespace -}}
{{- $v := .Values -}}
{{- if and $v.tls.enabled $v.clickhouse.enabled }}
clickhouse:
  - {{ $short }}-clickhouse
  - {{ $short }}-clickhouse.{{ $ns }}.svc
  {{- if include "oal.clickhouse.clustered" . }}{{ range include "oal.clickhouse.hosts" . | fromJsonArray }}{{ range . }}
  - {{ . }}
  {{- end }}{{ end }}{{ end }}
  {{- if include "oal.clickhouse.replicated" . }}{{ range include "oal.keeper.hosts" . | fromJsonArray }}
  - {{ . }}
  {{- end }}{{ end }}
  - localhost
{{- end }}
{{- if and $v.tls.enabled $v.postgres.enabled (include "oal.postgres.databases" . | fromYamlArray) }}
postgres:
  - {{ $short }}-postgres
  - {{ $short }}-postgres.{{ $ns }}.svc
{{- end }}
{{- if and $v.tls.enabled $v.mlflow.enabled }}
mlflow:
  - {{ $short }}-mlflow
  - {{ $short }}-mlflow.{{ $ns }}.svc
  {{- range $v.mlflow.allowedHosts }}{{ if regexMatch "^[A-Za-z0-9.-]+$" . }}
  - {{ . | quote }}
  {{- end }}{{ end }}
  - localhost
{{- end }}
{{- if and $v.tls.enabled $v.telegraf.enabled (or $v.kafka.enabled $v.flink.enabled) }}
jolokia:
  {{- if $v.kafka.enabled }}{{ range $i := until 3 }}
  - {{ $short }}-kafka-{{ $i }}.{{ $short }}-kafka-headless
  {{- end }}{{ end }}
  {{- if $v.flink.enabled }}
  - {{ $short }}-flink
  {{- range $i := until (int $v.flink.taskManager.replicas) }}
  - {{ $short }}-flink-taskmanager-{{ $i }}.{{ $short }}-flink-taskmanager
  {{- end }}{{ end }}
{{- end }}
model-registry:
{{- if and $v.tls.enabled $v.registry.enabled }}
  - {{ $short }}-registry
  - {{ $short }}-registry.{{ $ns }}.svc
{{- else }} []
{{- end }}
trainer:
{{- if and $v.tls.enabled $v.trainer.enabled }}
  {{- range $i := until (int $v.trainer.replicas) }}
  - {{ $short }}-trainer-{{ $i }}.{{ $short }}-trainer
  {{- end }}
  - {{ $short }}-trainer
{{- else }} []
{{- end }}
{{- end -}}
