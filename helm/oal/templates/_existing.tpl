{{/* Secrets that pki.mode existing expects: name → keys. Only what this installation mounts. */}}
{{- define "oal.existingSecrets" -}}
{{- $prefix := include "oal.secretPrefix" . -}}
{{- $tls := list "tls.crt" "tls.key" "tls-combined.pem" "ca.crt" -}}
{{- range $service, $hosts := include "oal.certificates" . | fromYaml }}
{{- if not (has $service (list "flink-rest" "operator" "viewer")) }}
{{ $prefix }}-tls-{{ $service }}: {{ $tls | toJson }}
{{- end }}
{{- end }}
{{- if and .Values.push.enabled .Values.push.enrol.enabled }}
{{ $prefix }}-ap-ca: [tls.crt, tls.key]
{{- end }}
{{- if .Values.flink.enabled }}
{{ $prefix }}-flink: [flink-internal.p12, flink-internal.password, flink-rest.p12, flink-rest.password, flink-rest-trust.p12, operator.crt, operator.key]
{{- end }}
{{- $keys := list "clickhouse-admin.password" "clickhouse-ingest.password" "clickhouse-analyst.password" "mac-masters" "metrics.token" "bundle-keys.txt" -}}
{{- if .Values.clickhouse.enabled }}{{ range include "oal.clickhouse.secrets" . | fromYamlArray }}{{ $keys = append $keys (base .) }}{{ end }}{{ end -}}
{{- if .Values.mlflow.enabled }}{{ $keys = concat $keys (list "mlflow-admin.password") }}{{ end -}}
{{- if .Values.registry.enabled }}{{ $keys = concat $keys (list "mlflow-model-registry.password" "mlflow-webhook.secret" "sign-registry.pem") }}{{ end -}}
{{- if .Values.trainer.enabled }}{{ $keys = concat $keys (list "mlflow-trainer.password" "sign-online.pem") }}{{ end -}}
{{- if .Values.push.enabled }}{{ $keys = concat $keys (list "push-admin.token") }}{{ end -}}
{{- if .Values.grafana.enabled }}{{ $keys = concat $keys (list "grafana-admin.password" "grafana-secret.key" "clickhouse-grafana.password") }}{{ end -}}
{{- if .Values.telegraf.enabled }}{{ $keys = concat $keys (list "jolokia.password" "clickhouse-telegraf.password") }}{{ end -}}
{{- range include "oal.postgres.databases" . | fromYamlArray }}{{ $keys = append $keys (printf "%s.pgpass" .) }}{{ if $.Values.postgres.enabled }}{{ $keys = append $keys (printf "postgres-%s.password" .) }}{{ end }}{{ end }}
{{ $prefix }}-secrets: {{ $keys | uniq | sortAlpha | toJson }}
{{- end -}}
