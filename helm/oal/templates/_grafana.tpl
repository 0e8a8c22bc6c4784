{{- define "oal.grafana.config" -}}
{{- $url := include "oal.clickhouse.url" . | urlParse -}}
datasource.yaml: |
  apiVersion: 1
  datasources:
    - name: OAL
      uid: oal-clickhouse
      type: grafana-clickhouse-datasource
      access: proxy
      isDefault: true
      jsonData:
        host: {{ splitList ":" $url.host | first }}
        port: {{ splitList ":" $url.host | last }}
        protocol: http
        secure: {{ eq $url.scheme "https" }}
        username: grafana
        defaultDatabase: {{ include "oal.clickhouse.database" . }}
      secureJsonData:
        password: $__file{/run/secrets/oal/secrets/clickhouse-grafana.password}
dashboards.yaml: |
  apiVersion: 1
  providers:
    - name: oal
      folder: OAL
      type: file
      disableDeletion: true
      allowUiUpdates: false
      options: {path: /etc/oal/grafana/dashboards}
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
