{{/* (dict "root" $ "name" "flink-jobmanager"): values of the part that a pod belongs to, as YAML. What the install itself runs is `setup`. */}}
{{- define "oal.part" -}}
{{- $v := .root.Values -}}
{{- if hasPrefix "flink-" .name -}}{{ toYaml $v.flink }}
{{- else if eq .name "clickhouse-keeper" -}}{{ toYaml $v.clickhouse.keeper }}
{{- else if eq .name "host-agent" -}}{{ toYaml $v.hostAgent }}
{{- else if hasKey $v .name -}}{{ toYaml (get $v .name) }}
{{- else -}}{{ toYaml $v.setup }}{{- end -}}
{{- end -}}

{{/* (dict "root" $ "name" "push"): annotations of a pod beside its own; empty without any. */}}
{{- define "oal.podAnnotations" -}}
{{- $part := include "oal.part" . | fromYaml -}}
{{- with merge (deepCopy ($part.podAnnotations | default dict)) .root.Values.pods.annotations }}{{ toYaml . }}{{ end -}}
{{- end -}}

{{/* (dict "root" $ "name" "push"): lines of a container's env beside its own; empty without any. */}}
{{- define "oal.extraEnv" -}}
{{- $part := include "oal.part" . | fromYaml -}}
{{- with $part.extraEnv }}{{ toYaml . }}{{ end -}}
{{- end -}}
{{/* The same as a whole, for a container that has none of its own. */}}
{{- define "oal.onlyExtraEnv" -}}
{{- with include "oal.extraEnv" . }}
env:
  {{- . | nindent 2 }}
{{- end }}
{{- end -}}

{{/* (dict "root" $ "name" "push"): the service account of a pod: the common one, or one of its own where it has annotations. */}}
{{- define "oal.account" -}}
{{- $part := include "oal.part" . | fromYaml -}}
{{- if hasPrefix "flink-" .name -}}{{ include "oal.name" (dict "root" .root "name" "flink") }}
{{- else if and (ne .name "clickhouse-keeper") ($part.serviceAccount | default dict).annotations -}}{{ include "oal.name" . }}
{{- else -}}{{ include "oal.fullname" .root }}{{- end -}}
{{- end -}}

{{/* (dict "root" $ "name" "clickhouse" "shard" "0"): where a pod must or should be because of others; empty of most. */}}
{{- define "oal.affinity" -}}
{{- if and (hasPrefix "flink-" .name) (include "oal.flink.oneNode" .root) }}
# JobManager and TaskManagers mount one volume, which one node at a time has.
podAffinity:
  requiredDuringSchedulingIgnoredDuringExecution:
    - topologyKey: kubernetes.io/hostname
      labelSelector:
        matchLabels: {app.kubernetes.io/instance: {{ .root.Release.Name }}}
        matchExpressions: [{key: app.kubernetes.io/component, operator: In, values: [flink-jobmanager, flink-taskmanager]}]
{{- else if and (hasPrefix "backup" .name) .root.Values.mlflow.enabled }}
# MLflow's volume is attached to one node.
podAffinity:
  requiredDuringSchedulingIgnoredDuringExecution:
    - topologyKey: kubernetes.io/hostname
      labelSelector:
        matchLabels:
          {{- include "oal.selector" (dict "root" .root "name" "mlflow") | nindent 10 }}
{{- else if and .shard (include "oal.clickhouse.replicated" .root) }}
# Copies of the same rows on different nodes.
podAntiAffinity:
  preferredDuringSchedulingIgnoredDuringExecution:
    {{- range list "kubernetes.io/hostname" "topology.kubernetes.io/zone" }}
    - weight: 100
      podAffinityTerm:
        topologyKey: {{ . }}
        labelSelector:
          matchLabels:
            {{- include "oal.selector" $ | nindent 12 }}
            oal/shard: {{ $.shard | quote }}
    {{- end }}
{{- end }}
{{- end -}}

{{/* Not empty: Flink's pods share a volume that cannot be on two nodes. */}}
{{- define "oal.flink.oneNode" -}}
{{- $c := .Values.flink.checkpoints -}}
{{- if and (eq $c.storage "pvc") (not (has "ReadWriteMany" $c.pvc.accessModes)) }}one{{ end -}}
{{- end -}}

{{/* (dict "root" $ "name" "mlflow"): podManagementPolicy of a StatefulSet. Parallel: a pod of a bad revision does not keep the next
     revision out (kubernetes/kubernetes#67250). It cannot be changed in place, so what is installed keeps its own. */}}
{{- define "oal.podManagement" -}}
{{- $found := lookup "apps/v1" "StatefulSet" .root.Release.Namespace (include "oal.name" .) -}}
{{- (($found | default dict).spec | default dict).podManagementPolicy | default "Parallel" -}}
{{- end -}}
