{{/* SPDX-License-Identifier: Apache-2.0 */}}
{{/* Each of these is given (list $ COMPONENT), unless it says otherwise. */}}

{{/* Given $. A Service's name must not begin with a digit. */}}
{{- define "skein.name" -}}
{{- if regexMatch "^[0-9]" .Release.Name }}{{ printf "skein-%s" .Release.Name | trunc 40 | trimSuffix "-" }}{{ else if contains "skein" .Release.Name }}{{ .Release.Name | trunc 40 | trimSuffix "-" }}{{ else }}{{ printf "%s-skein" .Release.Name | trunc 40 | trimSuffix "-" }}{{ end }}
{{- end }}

{{/* Given a text: the same in YAML, where 123, 1e3 and true would be none without quotes. */}}
{{- define "skein.scalar" -}}
{{- if kindIs "string" (fromYaml (printf "a: %s" .)).a }}{{ . }}{{ else }}{{ . | quote }}{{ end }}
{{- end }}

{{/* What chooses pods; never changes. */}}
{{- define "skein.selector" -}}
{{- $ := index . 0 -}}
app.kubernetes.io/name: skein
app.kubernetes.io/instance: {{ include "skein.scalar" $.Release.Name }}
app.kubernetes.io/component: {{ index . 1 }}
{{- end }}

{{- define "skein.labels" -}}
{{- $ := index . 0 -}}
{{ include "skein.selector" . }}
app.kubernetes.io/version: {{ $.Chart.AppVersion | quote }}
{{- end }}

{{- define "skein.image" -}}
{{- $ := index . 0 -}}
image: {{ printf "%s%s:%s" $.Values.image.prefix (index . 1) ($.Values.image.tag | default $.Chart.AppVersion) | quote }}
imagePullPolicy: {{ $.Values.image.pullPolicy }}
securityContext:
  allowPrivilegeEscalation: false
  capabilities:
    drop: [ALL]
  readOnlyRootFilesystem: true
{{- end }}

{{/* Of the pod. */}}
{{- define "skein.pod" -}}
{{- $ := index . 0 -}}
{{- $component := index . 1 -}}
{{- $values := get $.Values $component -}}
automountServiceAccountToken: false
enableServiceLinks: false
{{- with $.Values.serviceAccount.name | default (ternary (include "skein.name" $) "" $.Values.serviceAccount.create) }}
serviceAccountName: {{ . }}
{{- end }}
securityContext:
  runAsNonRoot: true
  runAsUser: 10001
  runAsGroup: 10001
  fsGroup: 10001
  fsGroupChangePolicy: OnRootMismatch
  seccompProfile:
    type: RuntimeDefault
{{- with $.Values.image.pullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with $values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $values.affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $values.topologySpreadConstraints }}
{{- $own := dict "labelSelector" (dict "matchLabels" (fromYaml (include "skein.selector" (list $ $component)))) }}
topologySpreadConstraints:
  {{- range . }}
  - {{ toYaml (merge (deepCopy .) $own) | nindent 4 | trim }}
  {{- end }}
{{- end }}
{{- end }}

{{/* Labels and annotations of the pod, below `metadata:`. */}}
{{- define "skein.podMetadata" -}}
{{- $ := index . 0 -}}
{{- $values := get $.Values (index . 1) -}}
labels:
  {{- include "skein.labels" . | nindent 2 }}
  {{- range $name, $value := $values.podLabels }}
  {{ $name }}: {{ include "skein.scalar" (toString $value) }}
  {{- end }}
{{- with $values.podAnnotations }}
annotations:
  {{- range $name, $value := . }}
  {{ $name }}: {{ toString $value | quote }}
  {{- end }}
{{- end }}
{{- end }}

{{/* Given $ and the number of the pod's rank: the end of the names of its container and ports. */}}
{{- define "skein.rankSuffix" -}}
{{- with index . 1 }}-{{ . }}{{ end }}
{{- end }}

{{/* Given $. Another configuration is another run: processes that know the one before start again. */}}
{{- define "skein.runId" -}}
{{ .Values.run.name }}-{{ sha256sum .Values.run.config | trunc 8 }}
{{- end }}

{{/* Given $. */}}
{{- define "skein.claim" -}}
{{ .Values.persistence.existingClaim | default (printf "%s-runs" (include "skein.name" .)) }}
{{- end }}

{{/* Given $: the claim of the coordinator's state. */}}
{{- define "skein.stateClaim" -}}
{{ .Values.coordinator.persistence.existingClaim | default (printf "%s-coordinator" (include "skein.name" .)) }}
{{- end }}

{{/* Given $: environment of learners and actors. */}}
{{- define "skein.podIp" -}}
- name: POD_IP
  valueFrom:
    fieldRef:
      fieldPath: status.podIP
{{- end }}

{{/* Given $. */}}
{{- define "skein.tokenSecret" -}}
{{ .Values.security.existingTokenSecret | default (printf "%s-token" (include "skein.name" .)) }}
{{- end }}

{{/* Given $: environment, mounts and volumes of what a pod proves itself by. */}}
{{- define "skein.credentialEnv" -}}
{{- if .Values.security.insecure }}
- name: SKEIN_INSECURE
  value: "true"
{{- else }}
- name: SKEIN_TOKEN_FILE
  value: /etc/skein-token/token
{{- end }}
{{- if .Values.security.tlsSecret }}
- name: SKEIN_TLS_CERT
  value: /etc/skein-tls/tls.crt
- name: SKEIN_TLS_KEY
  value: /etc/skein-tls/tls.key
- name: SKEIN_TLS_CA
  value: /etc/skein-tls/ca.crt
{{- end }}
{{- end }}

{{- define "skein.credentialMounts" -}}
{{- if not .Values.security.insecure }}
- name: token
  mountPath: /etc/skein-token
  readOnly: true
{{- end }}
{{- if .Values.security.tlsSecret }}
- name: tls
  mountPath: /etc/skein-tls
  readOnly: true
{{- end }}
{{- end }}

{{- define "skein.credentialVolumes" -}}
{{- if not .Values.security.insecure }}
- name: token
  secret:
    secretName: {{ include "skein.tokenSecret" . }}
    defaultMode: 0440
{{- end }}
{{- with .Values.security.tlsSecret }}
- name: tls
  secret:
    secretName: {{ . }}
    defaultMode: 0440
{{- end }}
{{- end }}

{{/* Given $: pods of the learner. */}}
{{- define "skein.learnerPods" -}}
{{- if mod (int .Values.learner.ranks) (int .Values.learner.ranksPerPod) }}
{{- fail (printf "learner.ranks (%d) is not a multiple of learner.ranksPerPod (%d)" (int .Values.learner.ranks) (int .Values.learner.ranksPerPod)) }}
{{- end }}
{{- div (int .Values.learner.ranks) (int .Values.learner.ranksPerPod) }}
{{- end }}

{{/* Given (list $ NUMBER): the port of that rank of the pod. 7070 is the coordinator's, 8080 its pages'. */}}
{{- define "skein.learnerPort" -}}
{{ add 7071 (index . 1) }}
{{- end }}

{{/* Given (list $ "PORT" "PATH"): a probe by HTTP. */}}
{{- define "skein.httpProbe" -}}
httpGet:
  path: {{ index . 2 }}
  port: {{ index . 1 }}
  {{- if (index . 0).Values.security.tlsSecret }}
  scheme: HTTPS
  {{- end }}
{{- end }}

{{/* Given (list $ GRPC-PORT "HTTP-PORT" "SERVICE"): Kubernetes' own probe by gRPC, which knows no TLS; with TLS by HTTPS. */}}
{{- define "skein.grpcProbe" -}}
{{- $ := index . 0 -}}
{{- if $.Values.security.tlsSecret -}}
{{ include "skein.httpProbe" (list $ (index . 2) (ternary "/readyz" "/healthz" (eq (index . 3) "readiness"))) }}
{{- else -}}
grpc:
  port: {{ index . 1 }}
  {{- with index . 3 }}
  service: {{ . }}
  {{- end }}
{{- end }}
{{- end }}

{{/* Given $: how Prometheus' operator proves itself. */}}
{{- define "skein.scrapeSecurity" -}}
{{- if not .Values.security.insecure }}
authorization:
  credentials:
    name: {{ include "skein.tokenSecret" . }}
    key: token
{{- end }}
{{- with .Values.security.tlsSecret }}
scheme: https
tlsConfig:
  serverName: metrics.skein
  ca:
    secret:
      name: {{ . }}
      key: ca.crt
{{- end }}
{{- end }}

{{/* Given $: whom learners and actors may call - the run's own pods, and the cluster's name service. */}}
{{- define "skein.egress" -}}
- to:
    - podSelector:
        matchLabels:
          app.kubernetes.io/name: skein
          app.kubernetes.io/instance: {{ include "skein.scalar" .Release.Name }}
- ports:
    - port: 53
      protocol: UDP
    - port: 53
      protocol: TCP
{{- end }}

{{/* Given $: how an autoscaler of either kind takes its time. Actors join in seconds, evidence takes longer. */}}
{{- define "skein.scaling" -}}
scaleUp:
  stabilizationWindowSeconds: 30
  policies:
    - type: Percent
      value: 100
      periodSeconds: 60
    - type: Pods
      value: 4
      periodSeconds: 60
scaleDown:
  stabilizationWindowSeconds: 300
  policies:
    - type: Percent
      value: 50
      periodSeconds: 60
{{- end }}
