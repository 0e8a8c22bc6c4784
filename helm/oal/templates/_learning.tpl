{{- define "oal.policies" -}}
{{- range $path, $bytes := .Files.Glob "files/policies/*.yaml" }}
{{ base $path }}: |
  {{- toString $bytes | nindent 2 }}
{{- end }}
{{- range $name, $text := .Values.policies }}
{{ $name }}: |
  {{- $text | nindent 2 }}
{{- end }}
{{- end -}}

{{- define "oal.mlflow.config" -}}
{{- $name := include "oal.name" (dict "root" . "name" "mlflow") -}}
server.yaml: |
  listen: 0.0.0.0:5000
  {{- with include "oal.serverFiles" (dict "root" . "name" "mlflow") }}
  tls: {{ . }}
  ca_file: {{ include "oal.caFile" $ }} # behind the registry's webhook
  {{- end }}
  state_dir: /var/lib/oal/mlflow
  admin: {user: admin, password_file: /run/secrets/oal/secrets/mlflow-admin.password}
  users:
    # Only an administrator may keep a webhook.
    - {user: model-registry, password_file: /run/secrets/oal/secrets/mlflow-model-registry.password, role: admin}
    - {user: trainer, password_file: /run/secrets/oal/secrets/mlflow-trainer.password}
    {{- if .Values.oidc.enabled }}
    # People, whom the proxy lets in and names; it has their one password.
    {{- range $person, $role := .Values.oidc.people }}
    - {user: {{ $person | quote }}, password_file: /run/secrets/oal/oidc/mlflow-password, role: {{ $role }}}
    {{- end }}
    {{- end }}
  webhook_key_file: /var/lib/oal/mlflow/webhook.key
  allowed_hosts: {{ concat (list $name (printf "%s:*" $name) "localhost" "localhost:*" "127.0.0.1" "127.0.0.1:*") .Values.mlflow.allowedHosts (ternary (list .Values.pages.mlflow) list (ne .Values.pages.mlflow "")) | toJson }}
  {{- with concat .Values.mlflow.allowedOrigins (ternary (list (printf "https://%s" .Values.pages.mlflow)) list (ne .Values.pages.mlflow "")) }}
  allowed_origins: {{ . | toJson }}
  {{- end }}
  {{- if eq .Values.mlflow.database "postgres" }}
  # The password stands in the passfile.
  database_uri: postgresql+psycopg2://mlflow@{{ include "oal.postgres.host" . }}:{{ include "oal.postgres.port" . }}/mlflow?passfile=/run/secrets/oal/secrets/mlflow.pgpass&sslmode={{ include "oal.postgres.sslmode" . }}{{ with include "oal.postgres.caFile" . }}&sslrootcert={{ . }}{{ end }}
  {{- end }}
  {{- with .Values.mlflow.artifacts }}
  artifacts: {{ . }}
  {{- end }}
{{- end -}}

{{- define "oal.registry.config" -}}
registry.yaml: |
  listen: 0.0.0.0:5001
  {{- with include "oal.serverFiles" (dict "root" . "name" "model-registry") }}
  tls: {{ . }}
  {{- end }}
  state_dir: /var/lib/oal/model-registry
  kafka:
    {{- include "oal.kafka.librdkafka" (dict "root" . "name" "model-registry") | nindent 4 }}
  mlflow: {tracking_uri: {{ include "oal.mlflow.url" . | quote }},{{ with include "oal.mlflow.caFile" . }} ca_file: {{ . }},{{ end }} user: model-registry, password_file: /run/secrets/oal/secrets/mlflow-model-registry.password}
  signing_key: /run/secrets/oal/secrets/sign-registry.pem
  trusted_keys: /run/secrets/oal/pki/bundle-keys.txt
  webhook_secret_file: /run/secrets/oal/secrets/mlflow-webhook.secret
  webhook_url: {{ include "oal.scheme" . }}://{{ include "oal.name" (dict "root" . "name" "registry") }}:5001/webhook
  poll_s: 2
  train_command: [oal-train]
  {{- with .Values.registry.retrain }}
  retrain: {every_s: {{ mul .everyDays 86400 }}, psi_above: {{ .psiAbove }}, psi_for_s: {{ mul .psiForHours 3600 }}, least_s: {{ mul .leastHours 3600 }}}
  {{- end }}
  clickhouse:
    {{- include "oal.clickhouse.client" . | nindent 4 }}
  policies: /etc/oal/policies
  metrics_token_file: /run/secrets/oal/secrets/metrics.token
{{- end -}}

{{- define "oal.trainer.config" -}}
online.yaml: |
  listen: 0.0.0.0:5002
  {{- with include "oal.serverFiles" (dict "root" . "name" "trainer") }}
  tls: {{ . }}
  {{- end }}
  state_dir: /var/lib/oal/trainer
  kafka:
    {{- include "oal.kafka.librdkafka" (dict "root" . "name" "trainer") | nindent 4 }}
  mlflow: {tracking_uri: {{ include "oal.mlflow.url" . | quote }},{{ with include "oal.mlflow.caFile" . }} ca_file: {{ . }},{{ end }} user: trainer, password_file: /run/secrets/oal/secrets/mlflow-trainer.password}
  signing_key: /run/secrets/oal/secrets/sign-online.pem
  trusted_keys: /run/secrets/oal/pki/bundle-keys.txt
  settings: null
  policies: /etc/oal/policies
  metrics_token_file: /run/secrets/oal/secrets/metrics.token
{{- end -}}
