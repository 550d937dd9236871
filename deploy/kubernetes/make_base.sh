#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Writes the manifests of base/ and components/ from the chart: they say the same, and a test sees to it.
#
#   deploy/kubernetes/make_base.sh [FOLDER]      FOLDER: where to write instead of deploy/kubernetes
#
# Needs helm: the one of scripts/fetch_kubernetes_tools.sh, or the PATH's.
set -euo pipefail
here=$(realpath "$(dirname "$0")")
target=$(realpath -m "${1:-$here}")
helm=$here/../../.deps/kubernetes/bin/helm
[[ -x $helm ]] || helm=helm
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# render TARGET "TEMPLATES" FLAG...
render() {
  local folder=$target/$1 templates=$2 template
  shift 2
  rm -rf "$work/skein"
  "$helm" template skein "$here/helm/skein" --namespace skein --kube-version 1.28.0 --output-dir "$work" "$@" >/dev/null
  mkdir -p "$folder"
  for template in $templates; do
    { # The licence on top of the file, and none of the renderer's remarks.
      echo '# SPDX-License-Identifier: Apache-2.0'
      sed -e '/^# Source: /d' -e '/^# SPDX/d' "$work/skein/templates/$template.yaml" | sed '1{/^---$/d}'
    } >"$folder/$template.yaml"
  done
}
render base "config coordinator learner actor disruption network_policy"
render components/keda scaled_object --set autoscaling.kind=keda
render components/hpa hpa --set autoscaling.kind=hpa
render components/pod-monitor pod_monitor --set podMonitor.enabled=true
