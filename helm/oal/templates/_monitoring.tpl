{{/* Parts that a Prometheus reads: name → port. */}}
{{- define "oal.monitoring.ports" -}}
{{- if .Values.clickhouse.enabled }}
clickhouse: 9363
{{- end }}
{{- if .Values.push.enabled }}
push: 8080
{{- end }}
{{- if .Values.trainer.enabled }}
trainer: 5002
{{- end }}
{{- if .Values.registry.enabled }}
registry: 5001
{{- end }}
{{- end -}}

{{/* What a Prometheus must say when ClickHouse, and with it every other alert, is away. (dict "root" $ "ours" SELECTOR): `ours` selects the
     series of this installation. */}}
{{- define "oal.monitoring.rules" -}}
{{- $v := .root.Values -}}
{{- $name := include "oal.fullname" .root -}}
{{- $ns := .root.Release.Namespace -}}
{{- $kube := printf "namespace=%q" $ns -}}
{{- if $v.clickhouse.enabled }}
{{- $up := printf "up{namespace=%q, job=%q}" $ns (printf "%s-clickhouse" $name) }}
- alert: OalClickHouseAway
  expr: {{ printf "%s == 0 or absent(%s)" $up $up | quote }}
  for: 2m
  labels: {severity: critical}
  annotations:
    summary: ClickHouse of {{ $name }} does not answer
    description: >-
      No dashboard of OAL and no alert on its data works meanwhile; Flink waits, and Kafka keeps what access points send for
      its retention. Look at `kubectl -n {{ $ns }} get pods -l app.kubernetes.io/component=clickhouse` and the pod's log.
- alert: OalClickHouseTakesNoRows
  expr: {{ printf "sum(rate(ClickHouseProfileEvents_InsertedRows{namespace=%q, job=%q}[5m])) == 0" $ns (printf "%s-clickhouse" $name) | quote }}
  for: 10m
  labels: {severity: critical}
  annotations:
    summary: Nobody writes to ClickHouse of {{ $name }}
    description: >-
      Flink and Telegraf both write every few seconds. Look at both; at the disk; and whether ClickHouse refuses inserts.
- alert: OalClickHouseDiskFull
  expr: {{ printf "ClickHouseAsyncMetrics_DiskAvailable_default{namespace=%q} / ClickHouseAsyncMetrics_DiskTotal_default{namespace=%q} < 0.1" $ns $ns | quote }}
  for: 10m
  labels: {severity: warning}
  annotations:
    summary: {{ `Less than a tenth of ClickHouse's disk is free on {{ $labels.pod }}` | quote }}
    description: >-
      A full disk stops inserts. Enlarge the claim, or keep rows for a shorter time (docs/sizing.md).
- alert: OalClickHouseReplicaIsReadOnly
  expr: {{ printf "ClickHouseMetrics_ReadonlyReplica{namespace=%q} > 0" $ns | quote }}
  for: 10m
  labels: {severity: warning}
  annotations:
    summary: {{ `{{ $labels.pod }} of ClickHouse takes no rows` | quote }}
    description: >-
      It has lost Keeper. Look at `kubectl -n {{ $ns }} get pods -l app.kubernetes.io/component=clickhouse-keeper`.
{{- end }}
- alert: OalPartAway
  expr: {{ printf "up{namespace=%q, job=~%q} == 0" $ns (printf "%s-(push|trainer|registry)" $name) | quote }}
  for: 5m
  labels: {severity: warning}
  annotations:
    summary: {{ `{{ $labels.pod }} does not answer` | quote }}
    description: >-
      {{ `Look at its log: kubectl -n {{ $labels.namespace }} logs {{ $labels.pod }}.` }}
- alert: OalPodsAreNotReady
  expr: {{ printf "(kube_statefulset_replicas{%s, statefulset=~%q} > kube_statefulset_status_replicas_ready) or (kube_deployment_spec_replicas{%s, deployment=~%q} > kube_deployment_status_replicas_ready)" $kube (printf "%s-.*" $name) $kube (printf "%s-.*" $name) | quote }}
  for: 15m
  labels: {severity: warning}
  annotations:
    summary: {{ `{{ $labels.statefulset }}{{ $labels.deployment }} has fewer pods ready than it should` | quote }}
    description: >-
      Kafka's and Flink's pods are among these. `kubectl -n {{ $ns }} get pods` and `describe` say why.
- alert: OalVolumeFull
  expr: {{ printf "kubelet_volume_stats_available_bytes{%s, persistentvolumeclaim=~%q} / kubelet_volume_stats_capacity_bytes{%s, persistentvolumeclaim=~%q} < 0.1" $kube (printf ".*%s-.*" $name) $kube (printf ".*%s-.*" $name) | quote }}
  for: 10m
  labels: {severity: warning}
  annotations:
    summary: {{ `Less than a tenth of {{ $labels.persistentvolumeclaim }} is free` | quote }}
    description: >-
      {{ `kubectl -n {{ $labels.namespace }} edit pvc {{ $labels.persistentvolumeclaim }} enlarges it, where its class can.` }}
{{- if $v.backup.enabled }}
- alert: OalBackupIsOld
  expr: {{ printf "time() - kube_cronjob_status_last_successful_time{%s, cronjob=%q} > 36 * 3600" $kube (printf "%s-backup" $name) | quote }}
  for: 10m
  labels: {severity: warning}
  annotations:
    summary: No backup of {{ $name }} for 36 hours
    description: >-
      `kubectl -n {{ $ns }} get jobs`, and the log of the newest `{{ $name }}-backup-…`, say why.
{{- end }}
{{- end -}}
