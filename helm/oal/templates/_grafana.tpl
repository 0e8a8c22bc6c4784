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
{{- if .Values.grafana.enabled }}
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
{{- end }}
{{- end -}}
{{/* For a Grafana elsewhere: the data sources with what it cannot take from its environment. Passwords stay names of files. */}}
{{- define "oal.grafana.datasource" -}}
{{- $text := .Files.Get "files/grafana/provisioning/datasources/oal.yaml" -}}
{{- $url := include "oal.clickhouse.url" . | urlParse -}}
{{- $own := include "oal.clickhouse.caFile" . -}}
{{- $host := $url.hostname -}}
{{- if .Values.clickhouse.enabled }}{{ $host = printf "%s.%s.svc" $host .Release.Namespace }}{{ end -}}
{{- $port := $url.host | trimPrefix $url.hostname | trimPrefix ":" -}}
{{- range $name, $value := dict "HOST" $host "PORT" $port "PROTOCOL" "http" "SECURE" (eq $url.scheme "https" | toString) "OWN_CA" ($own | not | not | toString) -}}
{{- $text = replace (printf "$OAL_CLICKHOUSE_%s" $name) $value $text -}}
{{- end -}}
{{- if not $own }}{{ $text = regexReplaceAll "(?m)^ *tlsCACert:.*\n" $text "" }}{{ end -}}
{{- /* That Grafana has a default data source already, and starts with no second one. */}}
{{- $text = replace "isDefault: true" "isDefault: false" $text -}}
{{- $text -}}
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
{{- with .Values.grafana.smtp }}
{{- if .host }}
- {name: GF_SMTP_ENABLED, value: "true"}
- {name: GF_SMTP_HOST, value: {{ .host | quote }}}
- {name: GF_SMTP_FROM_ADDRESS, value: {{ .from | quote }}}
- {name: GF_SMTP_STARTTLS_POLICY, value: {{ .startTLS | quote }}}
{{- with .user }}
- {name: GF_SMTP_USER, value: {{ . | quote }}}
- {name: GF_SMTP_PASSWORD, value: "$__file{/run/secrets/oal/own/smtp-password}"}
{{- end }}
{{- end }}
{{- end }}
{{- if .Values.oidc.enabled }}
{{- $o := .Values.oidc }}
- {name: GF_AUTH_GENERIC_OAUTH_ENABLED, value: "true"}
- {name: GF_AUTH_GENERIC_OAUTH_NAME, value: {{ $o.name | quote }}}
- {name: GF_AUTH_GENERIC_OAUTH_CLIENT_ID, value: {{ $o.clientId | quote }}}
- {name: GF_AUTH_GENERIC_OAUTH_CLIENT_SECRET, value: "$__file{/run/secrets/oal/oidc/client-secret}"}
- {name: GF_AUTH_GENERIC_OAUTH_SCOPES, value: {{ join " " $o.scopes | quote }}}
- {name: GF_AUTH_GENERIC_OAUTH_AUTH_URL, value: {{ required "oidc.grafana.authUrl: the provider's authorization_endpoint; Grafana does not look it up" $o.grafana.authUrl | quote }}}
- {name: GF_AUTH_GENERIC_OAUTH_TOKEN_URL, value: {{ required "oidc.grafana.tokenUrl: the provider's token_endpoint" $o.grafana.tokenUrl | quote }}}
- {name: GF_AUTH_GENERIC_OAUTH_API_URL, value: {{ required "oidc.grafana.userinfoUrl: the provider's userinfo_endpoint" $o.grafana.userinfoUrl | quote }}}
- {name: GF_AUTH_GENERIC_OAUTH_USE_PKCE, value: "true"}
- {name: GF_AUTH_GENERIC_OAUTH_ALLOW_SIGN_UP, value: "true"}
# Who has none of the roles does not come in.
- {name: GF_AUTH_GENERIC_OAUTH_ROLE_ATTRIBUTE_PATH, value: {{ $o.grafana.roles | quote }}}
- {name: GF_AUTH_GENERIC_OAUTH_ROLE_ATTRIBUTE_STRICT, value: "true"}
{{- end }}
{{- end -}}
