# SPDX-License-Identifier: Apache-2.0
"""The chart and the kustomize base as tests see them.   values -> objects"""
import os
import pathlib
import re
import subprocess
import tempfile

import yaml

import schemas

ROOT = pathlib.Path(__file__).resolve().parents[2]
BIN = pathlib.Path(os.environ.get("SKEIN_BIN", ROOT / "build/release"))
CHART = ROOT / "deploy/kubernetes/helm/skein"
HELM = schemas.TOOLS / "bin/helm"
KUSTOMIZE = schemas.TOOLS / "bin/kustomize"
VARIANTS = {
    "defaults": [],
    "keda and pod monitor": ["autoscaling.kind=keda", "podMonitor.enabled=true", "podMonitor.labels.release=prometheus"],
    "hpa": ["autoscaling.kind=hpa", "autoscaling.metricLabels.namespace=training"],
    "no resources, but a GPU": ["coordinator.resources=null", "learner.resources=null", "actor.resources=null",
                                "learner.gpus=1"],
    "four ranks with GPUs": ["learner.ranks=4", "learner.gpus=1", "persistence.accessMode=ReadWriteMany",
                             "persistence.storageClass=fast", "learner.extraArgs={--device=cuda}"],
    "TLS": ["security.tlsSecret=certificates", "podMonitor.enabled=true"],
    "TLS and KEDA": ["security.tlsSecret=certificates", "autoscaling.kind=keda"],
    "two pods of two ranks": ["learner.ranks=4", "learner.ranksPerPod=2", "learner.gpus=1", "podMonitor.enabled=true",
                              "persistence.accessMode=ReadWriteMany"],
    "state that ends with the pod": ["coordinator.persistence.enabled=false"],
    "state in a claim of one's own": ["coordinator.persistence.existingClaim=mine",
                                      "coordinator.persistence.storageClass=fast"],
    "additions": [f"{component}.{value}" for component in ("coordinator", "learner", "actor") for value in (
                      "podAnnotations.example\\.org/cost=7", "podLabels.team=rl", "podLabels.number=1e3",
                      "extraEnv[0].name=OMP_NUM_THREADS", "extraEnv[0].value=x",
                      "extraVolumes[0].name=extra", "extraVolumes[0].emptyDir.medium=Memory",
                      "extraVolumeMounts[0].name=extra", "extraVolumeMounts[0].mountPath=/extra",
                      "topologySpreadConstraints[0].topologyKey=topology.kubernetes.io/zone",
                      "topologySpreadConstraints[0].maxSkew=1",
                      "topologySpreadConstraints[0].whenUnsatisfiable=ScheduleAnyway")]
                 + ["serviceAccount.create=true", "serviceAccount.annotations.role=x"],
    "a token of one's own": ["security.existingTokenSecret=mine"],
    "nobody is asked": ["security.insecure=true", "podMonitor.enabled=true"],
    "everything else": ["persistence.existingClaim=mine", "networkPolicy.enabled=false", "image.pullSecrets[0].name=key",
                        "actor.priorityClassName=low", "actor.nodeSelector.pool=spot", "actor.tolerations[0].key=spot",
                        "actor.tolerations[0].operator=Exists", "learner.maxUnavailable=0"],
}


def helm(*arguments):
    return subprocess.run([HELM, *arguments], capture_output=True, text=True)


def render(values=(), name="skein", namespace="training", kube_version="1.28.0"):
    flags = [flag for value in values for flag in ("--set", value)]
    result = helm("template", name, CHART, "--namespace", namespace, "--kube-version", kube_version, *flags)
    if result.returncode != 0:
        raise AssertionError(result.stderr)
    return [document for document in yaml.safe_load_all(result.stdout) if document]


def kustomize(*components):
    with tempfile.TemporaryDirectory(dir=ROOT / "deploy/kubernetes") as folder:  # It takes relative paths only.
        overlay = {"apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization", "resources": ["../base"],
                   "components": [f"../components/{name}" for name in components]}
        pathlib.Path(folder, "kustomization.yaml").write_text(yaml.safe_dump(overlay))
        result = subprocess.run([KUSTOMIZE, "build", folder], capture_output=True, text=True)
    if result.returncode != 0:
        raise AssertionError(result.stderr)
    return list(yaml.safe_load_all(result.stdout))


def find(documents, kind, suffix=""):
    (found,) = [d for d in documents if d["kind"] == kind and d["metadata"]["name"].endswith(suffix)]
    return found


def pods(documents):
    """By component: the pod's template."""
    return {d["spec"]["template"]["metadata"]["labels"]["app.kubernetes.io/component"]: d["spec"]["template"]
            for d in documents if d["kind"] in ("Deployment", "StatefulSet")}


def flags_of(program):
    text = subprocess.run([BIN / program, "--help"], capture_output=True, text=True, check=True).stdout
    return set(re.findall(r"--[a-z][a-z-]*", text))
