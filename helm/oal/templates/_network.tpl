{{/* Who speaks to whom, for the NetworkPolicies: from, to, port. `from: outside` are access points, `people`, `queries` and `monitoring` are
     peers of the values' key of that name, `to: outside` is anything at that port. Only parts that are installed count. */}}
{{- define "oal.flows" -}}
{{- $v := .Values -}}
{{- $flink := list "flink-jobmanager" "flink-taskmanager" -}}
{{- $kafkaClients := list -}}
{{- $clickhouseClients := list -}}
{{- if or $v.flink.enabled $v.flink.operator }}
{{- $kafkaClients = concat $kafkaClients $flink }}{{ $clickhouseClients = concat $clickhouseClients $flink }}
{{- range $from := $flink }}{{ range $to := $flink }}{{ range list 6121 6122 6123 6124 }}
- {from: {{ $from }}, to: {{ $to }}, port: {{ . }}}
{{- end }}{{ end }}
- {from: {{ $from }}, to: api}
{{- if eq $v.flink.checkpoints.storage "s3" }}
- {from: {{ $from }}, to: outside, port: {{ $v.flink.checkpoints.s3.port }}}
{{- end }}
{{- end }}
- {from: people, to: flink-jobmanager, port: 8081}
{{- end }}
{{- if $v.clickhouse.enabled }}
- {from: queries, to: clickhouse, port: 8123}
{{- end }}
{{- if $v.monitoring.enabled }}
{{- range $part, $port := include "oal.monitoring.ports" . | fromYaml }}
- {from: monitoring, to: {{ $part }}, port: {{ $port }}}
{{- end }}
{{- end }}
{{- $s3 := list }}
{{- if and $v.mlflow.enabled (hasPrefix "s3://" $v.mlflow.artifacts) }}{{ $s3 = append $s3 "mlflow" }}{{ end }}
{{- if include "oal.backup.s3" . }}{{ $s3 = concat $s3 (list "clickhouse" "backup") }}{{ end }}
{{- range $s3 }}
- {from: {{ . }}, to: outside, port: {{ include "oal.s3.port" $ }}}
{{- end }}
{{- if $v.trainer.enabled }}{{ $kafkaClients = append $kafkaClients "trainer" }}{{ end }}
{{- if $v.registry.enabled }}{{ $kafkaClients = append $kafkaClients "registry" }}{{ $clickhouseClients = append $clickhouseClients "registry" }}{{ end }}
{{- if $v.push.enabled }}{{ $kafkaClients = append $kafkaClients "push" }}{{ $clickhouseClients = append $clickhouseClients "push" }}
- {from: outside, to: push, port: 8443}
- {from: people, to: push, port: 8080}
{{- if $v.push.enrol.enabled }}
- {from: outside, to: push, port: 8445}
{{- end }}
{{- end }}
{{- if $v.kafka.topics.manage }}{{ $kafkaClients = concat $kafkaClients (list "topics" "transactions") }}{{ end }}
{{- if $v.clickhouse.migrate }}{{ $clickhouseClients = append $clickhouseClients "migrate" }}{{ end }}
{{- if $v.backup.enabled }}{{ $clickhouseClients = append $clickhouseClients "backup" }}{{ end }}
{{- if $v.grafana.enabled }}{{ $clickhouseClients = append $clickhouseClients "grafana" }}
- {from: people, to: grafana, port: 3000}
{{- range $v.grafana.egressPorts }}
- {from: grafana, to: outside, port: {{ . }}}
{{- end }}
{{- end }}
{{- if $v.telegraf.enabled }}{{ $clickhouseClients = append $clickhouseClients "telegraf" }}
{{- if $v.kafka.enabled }}
- {from: telegraf, to: kafka, port: 8778}
- {from: telegraf, to: kafka, port: 9093}
{{- end }}
{{- if $v.flink.enabled }}{{ range $flink }}
- {from: telegraf, to: {{ . }}, port: 8778}
{{- end }}{{ end }}
{{- if $v.push.enabled }}
- {from: telegraf, to: push, port: 8080}
- {from: telegraf, to: push, port: 8443}
{{- end }}
{{- if $v.trainer.enabled }}
- {from: telegraf, to: trainer, port: 5002}
{{- end }}
{{- if $v.registry.enabled }}
- {from: telegraf, to: registry, port: 5001}
{{- end }}
{{- if $v.mlflow.enabled }}
- {from: telegraf, to: mlflow, port: 5000}
{{- end }}
{{- if $v.grafana.enabled }}
- {from: telegraf, to: grafana, port: 3000}
{{- end }}
{{- end }}
{{- range $kafkaClients }}
{{- if $v.kafka.enabled }}
- {from: {{ . }}, to: kafka, port: 9093}
{{- else }}{{ $from := . }}{{ range $v.kafka.external.ports }}
- {from: {{ $from }}, to: outside, port: {{ . }}}
{{- end }}{{ end }}
{{- end }}
{{- range $clickhouseClients }}
{{- if $v.clickhouse.enabled }}
- {from: {{ . }}, to: clickhouse, port: 8123}
{{- else }}
- {from: {{ . }}, to: outside, port: {{ $v.clickhouse.external.port }}}
{{- end }}
{{- end }}
{{- if include "oal.clickhouse.clustered" . }}
- {from: clickhouse, to: clickhouse, port: 9000}
{{- end }}
{{- if include "oal.clickhouse.replicated" . }}
- {from: clickhouse, to: clickhouse, port: 9009}
- {from: clickhouse, to: clickhouse-keeper, port: 9181}
- {from: clickhouse-keeper, to: clickhouse-keeper, port: 9234}
{{- end }}
{{- if $v.kafka.enabled }}
- {from: kafka, to: kafka, port: 9093}
- {from: kafka, to: kafka, port: 9094}
{{- if ne $v.kafka.access.type "none" }}
- {from: outside, to: kafka, port: 9095}
{{- end }}
{{- end }}
{{- range $database := include "oal.postgres.databases" . | fromYamlArray }}
{{- range ternary (list $database "backup") (list $database) $v.backup.enabled }}
{{- if $v.postgres.enabled }}
- {from: {{ . }}, to: postgres, port: 5432}
{{- else }}
- {from: {{ . }}, to: outside, port: {{ $v.postgres.external.port }}}
{{- end }}
{{- end }}
{{- end }}
{{- range list "trainer" "registry" }}
{{- if (get $v .).enabled }}
{{- if $v.mlflow.enabled }}
- {from: {{ . }}, to: mlflow, port: 5000}
{{- else }}
- {from: {{ . }}, to: outside, port: {{ $v.mlflow.external.port }}}
{{- end }}
{{- end }}
{{- end }}
{{- if $v.mlflow.enabled }}
{{- if $v.oidc.enabled }}
- {from: people, to: oidc, port: 4180}
- {from: oidc, to: mlflow, port: 5000}
- {from: oidc, to: outside, port: {{ $v.oidc.port }}}
{{- else }}
- {from: people, to: mlflow, port: 5000}
{{- end }}
{{- if $v.registry.enabled }}
- {from: mlflow, to: registry, port: 5001}
{{- end }}
{{- end }}
{{- if and $v.backup.enabled $v.push.enabled (ne $v.push.store "postgres") }}
- {from: backup, to: push, port: 8080}
{{- end }}
{{- range $part, $ports := include "oal.test.asks" . | fromYaml }}{{ range $ports }}
- {from: test, to: {{ $part }}, port: {{ . }}}
{{- end }}{{ end }}
{{- if ne $v.pki.mode "existing" }}
- {from: secrets, to: api}
{{- end }}
{{- end -}}
