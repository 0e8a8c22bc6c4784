{{/* Whom `helm test` asks: part → ports. */}}
{{- define "oal.test.asks" -}}
{{- $v := .Values -}}
{{- if $v.clickhouse.enabled }}
clickhouse: [8123]
{{- end }}
{{- if and $v.kafka.enabled $v.kafka.topics.manage }}
kafka: [9093]
{{- end }}
{{- if and $v.flink.enabled (ne $v.pki.mode "existing") }}
flink-jobmanager: [8081]
{{- end }}
{{- if $v.mlflow.enabled }}
mlflow: [5000]
{{- end }}
{{- if $v.registry.enabled }}
registry: [5001]
{{- end }}
{{- if $v.trainer.enabled }}
trainer: [5002]
{{- end }}
{{- if $v.push.enabled }}
push: [8080]
{{- end }}
{{- if $v.grafana.enabled }}
grafana: [3000]
{{- end }}
{{- end -}}

{{- define "oal.test.arguments" -}}
{{- $v := .Values -}}
{{- $http := printf "%s://%s" (include "oal.scheme" .) (include "oal.fullname" .) -}}
- --ca={{ include "oal.caFile" . }}
{{- if $v.clickhouse.enabled }}
- --clickhouse={{ include "oal.clickhouse.url" . }}
- --database={{ include "oal.clickhouse.database" . }}
- --password-file=/run/secrets/oal/secrets/clickhouse-analyst.password
{{- end }}
{{- $asked := include "oal.test.asks" . | fromYaml }}
{{- if hasKey $asked "kafka" }}
- --kafka={{ include "oal.kafka.bootstrap" . }}
- --kafka-certificate=/run/secrets/oal/pki/transactions
{{- end }}
{{- if hasKey $asked "flink-jobmanager" }}
- --flink=https://{{ include "oal.fullname" . }}-flink:8081
- --flink-certificate=/run/secrets/oal/pki/operator
{{- end }}
{{- range $part, $path := dict "mlflow" "-mlflow:5000/health" "registry" "-registry:5001/healthz" "trainer" "-trainer:5002/healthz" "push" "-push-admin:8080/readyz" }}
{{- if hasKey $asked $part }}
- {{ $http }}{{ $path }}
{{- end }}
{{- end }}
{{- if $v.grafana.enabled }}
- http://{{ include "oal.fullname" . }}-grafana:3000/api/health
{{- end }}
{{- end -}}
