{{- define "oal.grafana.config" -}}
grafana.ini: |
  {{- .Files.Get "files/grafana/grafana.ini" | replace "/run/secrets/oal/" "/run/secrets/oal/secrets/" | nindent 2 }}
datasource.yaml: |
  {{- .Files.Get "files/grafana/provisioning/datasources/oal.yaml" | replace "/run/secrets/oal/clickhouse" "/run/secrets/oal/secrets/clickhouse" | replace "/run/secrets/oal/ca.crt" (include "oal.caFile" .) | nindent 2 }}
dashboards.yaml: |
  {{- .Files.Get "files/grafana/provisioning/dashboards/oal.yaml" | nindent 2 }}
{{- end -}}
{{- define "oal.grafana.alerts" -}}
{{- range $path, $bytes := .Files.Glob "files/grafana/provisioning/alerting/*.yaml" }}
{{ base $path }}: |
  {{- toString $bytes | nindent 2 }}
{{- end }}
contact.yaml: |
  apiVersion: 1
  {{- with .Values.grafana.contactPoints }}
  contactPoints:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.grafana.notificationPolicies }}
  policies:
    {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end -}}
{{/* What the data source takes from the environment. */}}
{{- define "oal.grafana.env" -}}
{{- $url := include "oal.clickhouse.url" . | urlParse -}}
- {name: OAL_GRAFANA_DASHBOARDS, value: /etc/oal/grafana/dashboards}
- {name: OAL_CLICKHOUSE_HOST, value: {{ splitList ":" $url.host | first }}}
- {name: OAL_CLICKHOUSE_PORT, value: {{ splitList ":" $url.host | last | quote }}}
- {name: OAL_CLICKHOUSE_PROTOCOL, value: http}
- {name: OAL_CLICKHOUSE_SECURE, value: {{ eq $url.scheme "https" | quote }}}
- {name: OAL_CLICKHOUSE_OWN_CA, value: {{ include "oal.clickhouse.caFile" . | not | not | quote }}}
{{- end -}}
