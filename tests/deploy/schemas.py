# SPDX-License-Identifier: Apache-2.0
"""What scripts/fetch_kubernetes_tools.sh fetched, and what objects must look like.   object -> list of what is wrong"""
import functools
import json
import pathlib

import jsonschema
import yaml

ROOT = pathlib.Path(__file__).resolve().parents[2]
TOOLS = ROOT / ".deps/kubernetes"
SCHEMAS = TOOLS / "schemas"
KUBERNETES_VERSIONS = ("1.28", "1.37")
CUSTOM = {
    ("keda.sh/v1alpha1", "ScaledObject"): "keda.sh_scaledobjects.yaml",
    ("keda.sh/v1alpha1", "TriggerAuthentication"): "keda.sh_triggerauthentications.yaml",
    ("monitoring.coreos.com/v1", "PodMonitor"): "monitoring.coreos.com_podmonitors.yaml",
}


def strict(schema):
    """A custom resource's schema lets unknown fields pass, which the API server then drops: here they are wrong."""
    if isinstance(schema, list):
        return [strict(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    result = {key: strict(value) for key, value in schema.items()}
    if "properties" in schema and not schema.get("x-kubernetes-preserve-unknown-fields"):
        result.setdefault("additionalProperties", False)
    return result


@functools.lru_cache(maxsize=None)
def custom_schema(api_version, kind):
    definition = yaml.safe_load((SCHEMAS / CUSTOM[api_version, kind]).read_text())
    version = api_version.split("/")[1]
    (found,) = [v for v in definition["spec"]["versions"] if v["name"] == version]
    schema = strict(found["schema"]["openAPIV3Schema"])
    schema["properties"]["metadata"] = {"type": "object"}
    return schema


@functools.lru_cache(maxsize=None)
def kubernetes_validator(version, api_version, kind):
    group = api_version.split("/")[0].split(".")[0] + "-" if "/" in api_version else ""
    path = SCHEMAS / f"kubernetes-{version}" / f"{kind.lower()}-{group}{api_version.split('/')[-1]}.json"
    if not path.exists():
        return None
    schema, shared = json.loads(path.read_text()), definitions(version)
    resolver = jsonschema.RefResolver(schema["$id"], schema, {shared["$id"]: shared})
    return jsonschema.Draft202012Validator(schema, resolver=resolver)


@functools.lru_cache(maxsize=None)
def definitions(version):
    return json.loads((SCHEMAS / f"kubernetes-{version}" / "_definitions.json").read_text())


def problems_of(validator, document):
    return [f"{'.'.join(str(part) for part in error.absolute_path) or '(top)'}: {error.message}"
            for error in validator.iter_errors(document)]


def problems_of_object(document, version):
    """Of an object, by the schemas of a version of Kubernetes and of the operators."""
    api_version, kind = document.get("apiVersion", ""), document.get("kind", "")
    if (api_version, kind) in CUSTOM:
        return problems_of(jsonschema.Draft7Validator(custom_schema(api_version, kind)), document)
    validator = kubernetes_validator(version, api_version, kind)
    if validator is None:
        return [f"Kubernetes {version} has no {api_version} {kind}"]
    return problems_of(validator, document)


def problems_of_compose(document):
    schema = json.loads((SCHEMAS / "compose-spec.json").read_text())
    return problems_of(jsonschema.Draft7Validator(schema), document)
