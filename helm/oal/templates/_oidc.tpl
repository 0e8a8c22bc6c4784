{{- define "oal.oidc.config" -}}
proxy.yaml: |
  server: {bindAddress: "0.0.0.0:4180"}
  upstreamConfig:
    upstreams:
      - {id: mlflow, path: /, uri: {{ include "oal.mlflow.url" . | quote }}, passHostHeader: true}
  # Whom the provider names is MLflow's user of that name (oidc.people); a header that a browser sends goes no further.
  injectRequestHeaders:
    - name: Authorization
      values:
        - claimSource:
            claim: email
            basicAuthPassword: {fromFile: /run/secrets/oal/oidc/mlflow-password}
  providers:
    - id: oidc
      provider: oidc
      clientID: {{ .Values.oidc.clientId | quote }}
      clientSecretFile: /run/secrets/oal/oidc/client-secret
      scope: {{ join " " .Values.oidc.scopes | quote }}
      code_challenge_method: S256
      oidcConfig:
        issuerURL: {{ required "oidc.issuer: the provider's issuer, such as https://id.example.org/realms/noc" .Values.oidc.issuer | quote }}
        emailClaim: email
        audienceClaims: [aud]
{{- end -}}
