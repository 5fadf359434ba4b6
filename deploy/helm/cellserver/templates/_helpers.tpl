{{- define "cellserver.name" -}}
{{- if contains .Chart.Name .Release.Name }}{{ .Release.Name | trunc 52 | trimSuffix "-" }}
{{- else }}{{ printf "%s-%s" .Release.Name .Chart.Name | trunc 52 | trimSuffix "-" }}{{ end }}
{{- end }}

{{- define "cellserver.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "cellserver.labels" -}}
{{ include "cellserver.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{- /* The ConfigMap with the files of rules; empty without any. */}}
{{- define "cellserver.rules" -}}
{{- if .Values.rules.files }}{{ include "cellserver.name" . }}-rules
{{- else }}{{ .Values.rules.existingConfigMap }}{{ end }}
{{- end }}

{{- /* The ConfigMap with the limits file of Limitador; empty without one. */}}
{{- define "cellserver.limits" -}}
{{- if .Values.limitador.limits }}{{ include "cellserver.name" . }}-limits
{{- else }}{{ .Values.limitador.existingConfigMap }}{{ end }}
{{- end }}

{{- /* The names by which the admin port may be asked for: those of its service, and admin.hosts. */}}
{{- define "cellserver.hosts" -}}
{{- $service := printf "%s-pods" (include "cellserver.name" .) }}
{{- $namespace := printf "%s.%s" $service .Release.Namespace }}
{{- concat (list $service $namespace (printf "%s.svc" $namespace) (printf "%s.svc.%s" $namespace .Values.admin.clusterDomain)) .Values.admin.hosts | join " " }}
{{- end }}
