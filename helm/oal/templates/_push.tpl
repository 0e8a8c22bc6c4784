{{/* The Secret with key admin-users: yours, or ours, which has user approver. */}}
{{- define "oal.push.users" -}}
{{- if .Values.push.adminUsersSecret -}}{{ .Values.push.adminUsersSecret }}
{{- else if ne .Values.pki.mode "existing" -}}{{ include "oal.secretPrefix" . }}-secrets
{{- end -}}
{{- end -}}

{{/* Where access points enrol. It stands in every ticket, so it must be right: within the cluster by the Service, from outside by a name of
     the service's certificate. */}}
{{- define "oal.push.enrolUrl" -}}
{{- $p := .Values.push -}}
{{- $inside := printf "%s.%s.svc" (include "oal.name" (dict "root" . "name" "push")) .Release.Namespace -}}
{{- $outside := or (ne $p.access.type "ClusterIP") $p.ingress.enabled $p.tlsRoute.enabled -}}
{{- if and $outside (not $p.enrol.url) -}}
{{- fail "push.enrol.url: give the address at which access points reach port 8445 of the push service, such as https://push.example.org:8445; or set push.enrol.enabled to false" -}}
{{- end -}}
{{- $url := $p.enrol.url | default (printf "https://%s:8445" $inside) -}}
{{- $host := (urlParse $url).hostname -}}
{{- if not (has $host (concat $p.access.hosts (list $inside "localhost"))) -}}
{{- fail (printf "push.enrol.url: %s is in no name of the service's certificate, so no access point would believe it; add it to push.access.hosts" $host) -}}
{{- end -}}
{{- $url -}}
{{- end -}}

{{- define "oal.push.config" -}}
{{- $p := .Values.push -}}
deploy.yaml: |
  ap_listen: 0.0.0.0:8443
  tls: {cert: /run/secrets/oal/pki/deploy.crt, key: /run/secrets/oal/pki/deploy.key, client_ca: /run/secrets/oal/pki/ca.crt}
  admin_listen: 0.0.0.0:8080
  {{- with include "oal.serverFiles" (dict "root" . "name" "deploy") }}
  admin_tls: {{ . }}
  {{- end }}
  admin_token_file: /run/secrets/oal/secrets/push-admin.token
  {{- if include "oal.push.users" . }}
  admin_users_file: /run/secrets/oal/users/admin-users
  {{- end }}
  approvals: {{ $p.approvals }}
  canary_share: {{ $p.canaryShare }}
  metrics_token_file: /run/secrets/oal/secrets/metrics.token
  kafka:
    bootstrap: {{ include "oal.kafka.bootstrap" . | quote }}
    ca: /run/secrets/oal/pki/ca.crt
    cert: /run/secrets/oal/pki/deploy.crt
    key: /run/secrets/oal/pki/deploy.key
  trusted_keys: /run/secrets/oal/pki/bundle-keys.txt
  store: {{ if eq $p.store "postgres" }}{postgres_dsn_file: /etc/oal/push/dsn}{{ else }}{path: /var/lib/oal/push/state.db}{{ end }}
  clickhouse:
    {{- include "oal.clickhouse.client" . | nindent 4 }}
  {{- if $p.enrol.enabled }}
  enrol_listen: 0.0.0.0:8445
  enrol:
    url: {{ include "oal.push.enrolUrl" . }}
    ca_cert: /run/secrets/oal/pki/ap-ca.crt
    ca_key: /run/secrets/oal/pki/ap-ca.key
    root: /run/secrets/oal/pki/ca.crt
    mac_masters: /run/secrets/oal/secrets/mac-masters
    certificate_days: {{ $p.enrol.certificateDays }}
  {{- end }}
  limits: {requests_per_s: 10, burst: 30, max_connections: {{ int $p.maxConnections }}}
{{- if eq $p.store "postgres" }}
dsn: |
  host={{ include "oal.postgres.host" . }} port={{ include "oal.postgres.port" . }} user=push dbname=push sslmode={{ include "oal.postgres.sslmode" . }}{{ with include "oal.postgres.caFile" . }} sslrootcert={{ . }}{{ end }} passfile=/run/secrets/oal/secrets/push.pgpass
{{- end }}
{{- end -}}
