#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""deploy/kubernetes and deploy/compose.yaml: valid by their schemas, and in agreement with each other and the programs.

Exits with 77, skipped, if the tools cannot be had.
"""
import copy
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
if __name__ == "__main__":
    fetched = subprocess.run([ROOT / "scripts/fetch_kubernetes_tools.sh"])
    if fetched.returncode != 0:
        sys.exit(77)

import yaml  # noqa: E402  (installed by the line above)

import schemas  # noqa: E402

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


class Schemas(unittest.TestCase):
    def assert_valid(self, documents):
        self.assertTrue(documents)
        for version in schemas.KUBERNETES_VERSIONS:
            for document in documents:
                problems = schemas.problems_of_object(document, version)
                self.assertEqual(problems, [], f"{document['kind']} {document['metadata']['name']}, {version}")

    def test_the_chart_is_valid_in_every_variant(self):
        for name, values in VARIANTS.items():
            with self.subTest(name):
                self.assert_valid(render(values))

    def test_the_chart_has_no_lint(self):
        result = helm("lint", "--strict", CHART)
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)

    def test_the_kustomize_base_and_components_are_valid(self):
        for components in ((), ("keda", "pod-monitor"), ("hpa",)):
            with self.subTest(components):
                self.assert_valid(kustomize(*components))

    def test_a_wrong_manifest_is_refused(self):
        documents = render(VARIANTS["keda and pod monitor"])

        def broken(kind, suffix, change):
            document = copy.deepcopy(find(documents, kind, suffix))
            change(document["spec"])
            return "\n".join(schemas.problems_of_object(document, "1.28"))

        misspelt = broken("StatefulSet", "learner", lambda s: s["template"]["spec"].update(terminationGracePeriod=60))
        self.assertIn("spec.template.spec: ", misspelt)
        self.assertIn("'terminationGracePeriod' was unexpected", misspelt)
        self.assertIn("spec.replicas: 'four'", broken("Deployment", "coordinator", lambda s: s.update(replicas="four")))
        self.assertIn("'selector' is a required", broken("Deployment", "actor", lambda s: s.pop("selector")))
        self.assertIn("'triggers' is a required", broken("ScaledObject", "", lambda s: s.pop("triggers")))
        self.assertIn("'maxReplicas' was unexpected", broken("ScaledObject", "", lambda s: s.update(maxReplicas=3)))
        self.assertIn("'intervall' was unexpected",
                      broken("PodMonitor", "", lambda s: s["podMetricsEndpoints"][0].update(intervall="5s")))
        self.assertEqual(schemas.problems_of_object({"apiVersion": "apps/v1beta1", "kind": "Deployment"}, "1.28"),
                         ["Kubernetes 1.28 has no apps/v1beta1 Deployment"])

    def test_the_chart_refuses_wrong_values(self):
        for values, message in ((["autoscaling.kind=magic"], "autoscaling.kind"),
                                (["learner.ranks=2"], "ReadWriteMany"),
                                (["learner.replicas=x", "actor.runners=0"], "actor.runners"),
                                (["actors.replicas=3"], "actors"),
                                (["learner.typo=1"], "typo"),
                                (["coordinator.extraArgs={--x}"], "extraArgs"),
                                (["actor.resources.request.cpu=1"], "request"),
                                (["autoscaling.minActors=9"], "minActors (9) is more than autoscaling.maxActors (8)"),
                                (["learner.ranks=3", "learner.ranksPerPod=2", "persistence.accessMode=ReadWriteMany"],
                                 "learner.ranks (3) is not a multiple of learner.ranksPerPod (2)"),
                                (["actor.podLabels.app\\.kubernetes\\.io/component=x"], "podLabels"),
                                (["actor.topologySpreadConstraints[0].maxSkew=1"], "topologyKey"),
                                (["autoscaling.targetWaitRatio=0.0"], "targetWaitRatio"),
                                (["autoscaling.targetWaitRatio=1.5"], "targetWaitRatio"),
                                (["autoscaling.targetWaitRatio=1"], "targetWaitRatio")):
            with self.subTest(values):
                flags = [flag for value in values for flag in ("--set", value)]
                result = helm("template", "skein", CHART, "--kube-version", "1.28.0", *flags)
                self.assertNotEqual(result.returncode, 0)
                self.assertIn(message, result.stderr)
        self.assertNotEqual(helm("template", "skein", CHART, "--kube-version", "1.27.0").returncode, 0)

    def test_compose_is_valid_and_a_wrong_one_is_refused(self):
        compose = yaml.safe_load((ROOT / "deploy/compose.yaml").read_text())
        self.assertEqual(schemas.problems_of_compose(compose), [])
        compose["services"]["actor"]["comand"] = []
        self.assertIn("'comand'", "\n".join(schemas.problems_of_compose(compose)))


class Manifests(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.documents = render(VARIANTS["keda and pod monitor"])
        cls.pods = pods(cls.documents)
        cls.flags = {name: flags_of(f"skein-{name}") for name in ("coordinator", "learner", "actor")}

    def test_base_and_components_are_what_the_chart_says(self):
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([ROOT / "deploy/kubernetes/make_base.sh", folder], check=True)
            for path in sorted(pathlib.Path(folder).rglob("*.yaml")):
                committed = ROOT / "deploy/kubernetes" / path.relative_to(folder)
                self.assertEqual(committed.read_text(), path.read_text(),
                                 f"{committed}: run deploy/kubernetes/make_base.sh")

    def test_programs_know_their_flags(self):
        for documents in (self.documents, render(VARIANTS["four ranks with GPUs"])):
            for component, pod in pods(documents).items():
                for argument in pod["spec"]["containers"][0]["args"]:
                    self.assertIn(argument.split("=")[0], self.flags[component], component)
        compose = yaml.safe_load((ROOT / "deploy/compose.yaml").read_text())
        for component, known in self.flags.items():
            for argument in compose["services"][component]["command"]:
                self.assertIn(argument.split("=")[0], known, component)

    def test_a_coordinator_takes_the_configurations(self):
        config = find(self.documents, "ConfigMap")["data"]["run.yaml"]
        with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
            file.write(config)
            file.flush()
            for path in (file.name, ROOT / "deploy/compose_run.yaml"):
                process = subprocess.Popen([BIN / "skein-coordinator", "--config", path, "--listen", "127.0.0.1:0"],
                                           stdout=subprocess.PIPE, text=True)
                self.assertIn("coordinator listening", process.stdout.readline())
                process.send_signal(signal.SIGTERM)
                process.communicate(timeout=20)
                self.assertEqual(process.returncode, 0)

    def test_selectors_choose_the_pods_of_their_part_and_no_others(self):
        labels = {component: pod["metadata"]["labels"] for component, pod in self.pods.items()}

        def chosen(selector):
            return {c for c, has in labels.items() if all(has.get(k) == v for k, v in selector.items())}

        for document in self.documents:
            kind, name, spec = document["kind"], document["metadata"]["name"], document.get("spec", {})
            component = name.rsplit("-", 1)[-1]
            if kind in ("Deployment", "StatefulSet", "PodDisruptionBudget"):
                self.assertEqual(chosen(spec["selector"]["matchLabels"]), {component}, f"{kind} {name}")
            elif kind == "Service":
                self.assertEqual(chosen(spec["selector"]), {component}, name)
            elif kind == "NetworkPolicy":
                self.assertEqual(chosen(spec["podSelector"]["matchLabels"]), {component}, name)
            elif kind == "PodMonitor":
                self.assertEqual(chosen(spec["selector"]["matchLabels"]), set(labels))

    def test_named_ports_exist_where_they_are_used(self):
        ports = {component: {p["name"] for p in pod["spec"]["containers"][0]["ports"]}
                 for component, pod in self.pods.items()}
        for document in self.documents:
            component = document["metadata"]["name"].rsplit("-", 1)[-1]
            if document["kind"] == "Service":
                for port in document["spec"]["ports"]:
                    self.assertIn(port["targetPort"], ports[component])
            elif document["kind"] == "NetworkPolicy":
                for rule in document["spec"]["ingress"]:
                    self.assertLessEqual({p["port"] for p in rule.get("ports", [])}, ports[component])
            elif document["kind"] == "PodMonitor":
                for endpoint in document["spec"]["podMetricsEndpoints"]:
                    self.assertIn(endpoint["port"], set().union(*ports.values()))

    def test_probes_tell_alive_from_ready_and_ask_where_the_program_listens(self):
        for component, pod in self.pods.items():
            (container,) = pod["spec"]["containers"]
            self.assertNotEqual(container["livenessProbe"], container["readinessProbe"])
            numbers = {p["name"]: p["containerPort"] for p in container["ports"]}
            listening = {int(a.rsplit(":", 1)[1]) for a in container["args"]
                         if a.split("=")[0] in ("--listen", "--http", "--metrics")}
            self.assertEqual(set(numbers.values()), listening, component)
            for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
                asked = container[probe]
                if component == "actor":
                    self.assertIn(asked["httpGet"]["port"], numbers)
                    continue
                self.assertEqual(asked["grpc"]["port"], numbers["grpc"])
                self.assertEqual(asked["grpc"].get("service", ""), "readiness" if probe == "readinessProbe" else "")

    def test_public_addresses_come_with_a_token_or_with_consent(self):
        for variant, secret in (("defaults", "skein-token"), ("a token of one's own", "mine"), ("nobody is asked", None)):
            documents = render(VARIANTS[variant])
            made = [d["metadata"]["name"] for d in documents if d["kind"] == "Secret"]
            self.assertEqual(made, ["skein-token"] if variant == "defaults" else [])
            for component, pod in pods(documents).items():
                (container,) = pod["spec"]["containers"]
                environment = {e["name"]: e.get("value") for e in container["env"]}
                self.assertEqual(environment.get("SKEIN_INSECURE"), None if secret else "true", component)
                volumes = {v["name"]: v for v in pod["spec"].get("volumes", [])}
                if not secret:
                    self.assertNotIn("token", volumes)
                    continue
                self.assertEqual(volumes["token"]["secret"], {"secretName": secret, "defaultMode": 0o440})
                (mount,) = [m for m in container["volumeMounts"] if m["name"] == "token"]
                self.assertEqual(environment["SKEIN_TOKEN_FILE"], f"{mount['mountPath']}/token")

    def test_with_tls_probes_ask_by_https(self):
        for component, pod in pods(render(VARIANTS["TLS"])).items():
            (container,) = pod["spec"]["containers"]
            for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
                self.assertEqual(container[probe]["httpGet"]["scheme"], "HTTPS", component)
        (first, second) = find(render(VARIANTS["TLS"]), "PodMonitor")["spec"]["podMetricsEndpoints"]
        self.assertEqual({first["scheme"], second["scheme"]}, {"https"})

    def test_the_coordinator_can_write_its_state(self):
        for variant, volume in (("defaults", {"persistentVolumeClaim": {"claimName": "skein-coordinator"}}),
                                ("state that ends with the pod", {"emptyDir": {"sizeLimit": "1Gi"}}),
                                ("state in a claim of one's own", {"persistentVolumeClaim": {"claimName": "mine"}})):
            documents = render(VARIANTS[variant])
            pod = pods(documents)["coordinator"]["spec"]
            (container,) = pod["containers"]
            (folder,) = [a.split("=")[1] for a in container["args"] if a.startswith("--run-dir=")]
            (mount,) = [m for m in container["volumeMounts"] if folder.startswith(m["mountPath"] + "/")]
            self.assertFalse(mount.get("readOnly", False))
            self.assertEqual([v for v in pod["volumes"] if v["name"] == mount["name"]],
                             [{"name": mount["name"], **volume}])
            made = [d["metadata"]["name"] for d in documents if d["kind"] == "PersistentVolumeClaim"]
            self.assertEqual("skein-coordinator" in made, variant == "defaults")
            self.assertIn("fsGroup", pod["securityContext"])

    def test_what_is_added_is_in_the_pods_of_each_part(self):
        documents = render(VARIANTS["additions"])
        account = find(documents, "ServiceAccount")
        self.assertEqual(account["metadata"]["annotations"], {"role": "x"})
        self.assertFalse(account["automountServiceAccountToken"])
        self.assertEqual(set(pods(documents)), {"coordinator", "learner", "actor"})
        for component, pod in pods(documents).items():
            metadata, spec = pod["metadata"], pod["spec"]
            self.assertEqual(metadata["annotations"], {"example.org/cost": "7"})
            self.assertEqual(metadata["labels"]["team"], "rl")
            self.assertIsInstance(metadata["labels"]["number"], str)
            (container,) = spec["containers"]
            self.assertIn({"name": "OMP_NUM_THREADS", "value": "x"}, container["env"])
            self.assertIn({"name": "extra", "mountPath": "/extra"}, container["volumeMounts"])
            self.assertIn({"name": "extra", "emptyDir": {"medium": "Memory"}}, spec["volumes"])
            (spread,) = spec["topologySpreadConstraints"]
            self.assertEqual(spread["labelSelector"]["matchLabels"]["app.kubernetes.io/component"], component)
            self.assertEqual(spread["maxSkew"], 1)
            self.assertEqual(spec["serviceAccountName"], account["metadata"]["name"])
        self.assertEqual(pods(render(["serviceAccount.name=mine"]))["actor"]["spec"]["serviceAccountName"], "mine")
        self.assertNotIn("serviceAccountName", self.pods["actor"]["spec"])

    def test_ranks_of_one_pod_have_ports_and_numbers_of_their_own(self):
        documents = render(VARIANTS["two pods of two ranks"])
        learner = find(documents, "StatefulSet")
        self.assertEqual(learner["spec"]["replicas"], 2)
        containers = learner["spec"]["template"]["spec"]["containers"]
        self.assertEqual([c["name"] for c in containers], ["learner", "learner-1"])
        ports = [port for c in containers for port in c["ports"]]
        self.assertEqual(len({p["name"] for p in ports}), 4)
        self.assertEqual(len({p["containerPort"] for p in ports}), 4)
        for number, container in enumerate(containers):
            mine = {p["containerPort"]: p["name"] for p in container["ports"]}
            listening = {int(a.rsplit(":", 1)[1]) for a in container["args"]
                         if a.split("=")[0] in ("--listen", "--metrics")}
            self.assertEqual(listening, set(mine))
            self.assertIn(container["readinessProbe"]["grpc"]["port"], mine)
            self.assertEqual(container["resources"]["limits"]["nvidia.com/gpu"], "1")
            environment = {e["name"]: e.get("value") for e in container["env"]}
            self.assertEqual((environment["WORLD_SIZE"], environment["LOCAL_RANK"]), ("4", "0"))
            for pod_index in (0, 1):  # What the shell makes of it, with a program that says what it was given.
                shell = [word.replace("exec skein-learner", 'exec sh -c \'echo "$RANK" "$@"\' sh')
                         for word in container["command"]]
                said = subprocess.run([*shell, *container["args"]], capture_output=True, text=True, check=True,
                                      env={"PATH": os.environ["PATH"], "POD_INDEX": str(pod_index)}).stdout
                self.assertEqual(said.split(), [str(2 * pod_index + number), *container["args"]])
        policy = find(documents, "NetworkPolicy", "learner")
        self.assertEqual([p["port"] for p in policy["spec"]["ingress"][0]["ports"]], ["grpc", "grpc-1"])
        self.assertEqual([p["port"] for p in policy["spec"]["ingress"][2]["ports"]], ["metrics", "metrics-1"])
        endpoints = find(documents, "PodMonitor")["spec"]["podMetricsEndpoints"]
        self.assertEqual([e["port"] for e in endpoints], ["http", "metrics", "metrics-1"])
        members = [next(r for r in e["relabelings"] if r["targetLabel"] == "member") for e in endpoints]
        self.assertEqual([m.get("replacement") for m in members], [None, None, "$1-1"])

    def test_keda_shows_a_certificate_where_there_is_tls(self):
        for values, secret in (([], "certificates"), (["autoscaling.tlsSecret=client"], "client")):
            documents = render([*VARIANTS["TLS and KEDA"], *values])
            (trigger,) = find(documents, "ScaledObject")["spec"]["triggers"]
            authentication = find(documents, "TriggerAuthentication")
            self.assertEqual(trigger["authenticationRef"], {"name": authentication["metadata"]["name"]})
            references = {r["parameter"]: (r["name"], r["key"]) for r in authentication["spec"]["secretTargetRef"]}
            self.assertEqual(references, {"caCert": (secret, "ca.crt"), "tlsClientCert": (secret, "tls.crt"),
                                          "tlsClientKey": (secret, "tls.key")})
        self.assertEqual([d for d in self.documents if d["kind"] == "TriggerAuthentication"], [])

    def test_the_readme_is_current_and_every_value_is_described(self):
        with tempfile.NamedTemporaryFile("r") as file:
            subprocess.run([ROOT / "deploy/kubernetes/helm/make_readme.py", file.name], check=True)
            self.assertEqual((CHART / "README.md").read_text(), file.read(), "run deploy/kubernetes/helm/make_readme.py")
        schema = json.loads((CHART / "values.schema.json").read_text())

        def paths(values, known, path=""):
            for name, value in values.items():
                self.assertIn("description", known[name], f"{path}{name}")
                if "properties" in known[name]:
                    self.assertEqual(set(value), set(known[name]["properties"]), f"{path}{name}")
                    paths(value, known[name]["properties"], f"{path}{name}.")

        paths(yaml.safe_load((CHART / "values.yaml").read_text()), schema["properties"])

    def test_containers_have_no_rights(self):
        for pod in self.pods.values():
            self.assertTrue(pod["spec"]["securityContext"]["runAsNonRoot"])
            self.assertFalse(pod["spec"]["automountServiceAccountToken"])
            for container in pod["spec"]["containers"]:
                self.assertTrue(container["securityContext"]["readOnlyRootFilesystem"])
                self.assertFalse(container["securityContext"]["allowPrivilegeEscalation"])
                self.assertEqual(container["securityContext"]["capabilities"], {"drop": ["ALL"]})
                self.assertIn("memory", container["resources"]["limits"])
                self.assertIn("cpu", container["resources"]["requests"])

    def test_everybody_calls_the_coordinators_service(self):
        service = find(self.documents, "Service", "coordinator")
        (port,) = [p["port"] for p in service["spec"]["ports"] if p["name"] == "grpc"]
        address = f"{service['metadata']['name']}:{port}"
        for component in ("learner", "actor"):
            self.assertIn(f"--coordinator={address}", self.pods[component]["spec"]["containers"][0]["args"])
        (trigger,) = find(self.documents, "ScaledObject")["spec"]["triggers"]
        self.assertEqual(trigger["metadata"]["scalerAddress"], f"{service['metadata']['name']}.training:{port}")
        self.assertTrue(all(isinstance(value, str) for value in trigger["metadata"].values()))

    def test_autoscalers_scale_the_actors_and_nobody_else_says_how_many(self):
        for kind, documents in (("ScaledObject", self.documents), ("HorizontalPodAutoscaler", render(VARIANTS["hpa"])),
                                ("ScaledObject", kustomize("keda")), ("HorizontalPodAutoscaler", kustomize("hpa"))):
            actor = find(documents, "Deployment", "-actor")
            self.assertNotIn("replicas", actor["spec"])
            self.assertEqual(find(documents, kind)["spec"]["scaleTargetRef"]["name"], actor["metadata"]["name"])
        self.assertEqual(find(render(), "Deployment", "-actor")["spec"]["replicas"], 4)

    def test_each_rank_knows_its_place_and_all_start_at_once(self):
        learner = find(render(VARIANTS["four ranks with GPUs"]), "StatefulSet")
        self.assertEqual(learner["spec"]["replicas"], 4)
        self.assertEqual(learner["spec"]["podManagementPolicy"], "Parallel")
        self.assertEqual(learner["spec"]["updateStrategy"]["type"], "OnDelete")
        (container,) = learner["spec"]["template"]["spec"]["containers"]
        environment = {e["name"]: e.get("value") or e["valueFrom"]["fieldRef"]["fieldPath"] for e in container["env"]}
        self.assertEqual(environment["WORLD_SIZE"], "4")
        self.assertEqual(environment["LOCAL_RANK"], "0")
        self.assertEqual(environment["RANK"], "metadata.labels['apps.kubernetes.io/pod-index']")
        self.assertEqual(container["resources"]["limits"]["nvidia.com/gpu"], "1")

    def test_another_configuration_is_another_run(self):
        def run_id(config):
            arguments = pods(render([f"run.config={config}"]))["coordinator"]["spec"]["containers"][0]["args"]
            return [a for a in arguments if a.startswith("--run-id=")]

        self.assertEqual(run_id("seed: 1"), run_id("seed: 1"))
        self.assertNotEqual(run_id("seed: 1"), run_id("seed: 2"))


    def test_the_run_has_the_name_of_the_release_in_every_metric(self):
        for release in ("cheetah", "123"):
            documents = render(["autoscaling.kind=hpa", "podMonitor.enabled=true", "autoscaling.metricLabels.pool=7"],
                               name=release)
            for document in documents:
                self.assertEqual(document["metadata"]["labels"]["app.kubernetes.io/instance"], release)
                self.assertRegex(document["metadata"]["name"], "^[a-z]")
            self.assertIn(f"--set=name={release}", pods(documents)["coordinator"]["spec"]["containers"][0]["args"])
            (metric,) = find(documents, "HorizontalPodAutoscaler")["spec"]["metrics"]
            self.assertEqual(metric["external"]["metric"]["selector"]["matchLabels"], {"run": release, "pool": "7"})

    def test_a_label_of_the_metric_stands_in_for_the_charts_own(self):
        values = ["--set", "autoscaling.kind=hpa", "--set", "autoscaling.metricLabels.run=mine"]
        result = helm("template", "skein", CHART, "--kube-version", "1.28.0", *values, "-s", "templates/hpa.yaml")
        self.assertEqual(re.findall(r"^ +run: .*", result.stdout, re.MULTILINE), ["              run: mine"])

    def test_the_scaler_takes_a_ratio_from_the_command_line(self):
        documents = render(["autoscaling.kind=keda", "autoscaling.targetWaitRatio=0.5"])
        (trigger,) = find(documents, "ScaledObject")["spec"]["triggers"]
        self.assertEqual(trigger["metadata"]["targetWaitRatio"], "0.5")

    def test_a_configuration_may_begin_with_an_indented_comment(self):
        config = "   # Mine.\ntotal_steps: 5\nenv:\n  id: CartPole-v1\n"
        with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
            file.write(config)
            file.flush()
            result = helm("template", "skein", CHART, "--kube-version", "1.28.0", "--set-file", f"run.config={file.name}")
        self.assertEqual(result.returncode, 0, result.stderr)
        documents = [document for document in yaml.safe_load_all(result.stdout) if document]
        self.assertEqual(find(documents, "ConfigMap")["data"]["run.yaml"].strip("\n"), config.strip("\n"))


class Compose(unittest.TestCase):
    def test_ports_are_open_to_this_machine_only(self):
        compose = yaml.safe_load((ROOT / "deploy/compose.yaml").read_text())
        for name, service in compose["services"].items():
            for port in service.get("ports", []):
                self.assertTrue(port.startswith("127.0.0.1:"), f"{name}: {port}")

    def setUp(self):
        self.compose = yaml.safe_load((ROOT / "deploy/compose.yaml").read_text())

    def test_what_is_mounted_is_there(self):
        for name, service in self.compose["services"].items():
            for volume in service.get("volumes", []):
                source = re.sub(r"\$\{\w+:-([^}]*)\}", r"\1", volume).split(":")[0]
                if source.startswith("."):
                    self.assertTrue((ROOT / "deploy" / source).exists(), f"{name} mounts {source}")
                else:
                    self.assertIn(source, self.compose["volumes"])

    def test_prometheus_and_grafana_find_what_they_watch(self):
        prometheus = yaml.safe_load((ROOT / "deploy/prometheus/prometheus.yml").read_text())
        (job,) = prometheus["scrape_configs"]
        (url,) = [sd["url"] for sd in job["http_sd_configs"]]
        self.assertEqual(url, "http://coordinator:8080/sd/prometheus")
        self.assertIn("--http=0.0.0.0:8080", self.compose["services"]["coordinator"]["command"])
        (source,) = yaml.safe_load(
            (ROOT / "deploy/grafana/provisioning/datasources/prometheus.yml").read_text())["datasources"]
        self.assertEqual(source["url"], "http://prometheus:9090")
        (provider,) = yaml.safe_load(
            (ROOT / "deploy/grafana/provisioning/dashboards/skein.yml").read_text())["providers"]
        mounted = [v.split(":")[1] for v in self.compose["services"]["grafana"]["volumes"]]
        self.assertIn(provider["options"]["path"], mounted)

    def test_images_are_the_dockerfiles_targets(self):
        stages = re.findall(r"^FROM \S+ AS (\S+)$", (ROOT / "deploy/Dockerfile").read_text(), re.MULTILINE)
        for name in ("coordinator", "learner", "actor"):
            build = self.compose["services"][name]["build"]
            self.assertIn(build["target"], stages)
            self.assertTrue((ROOT / "deploy" / build["context"] / build["dockerfile"]).is_file())

    def test_the_dockerfile_copies_all_that_the_build_reads(self):
        copied = set(re.findall(r"^COPY (\w+) \1$", (ROOT / "deploy/Dockerfile").read_text(), re.MULTILINE))
        read = set(re.findall(r"add_subdirectory\((\w+)\)", (ROOT / "CMakeLists.txt").read_text())) - {"tests"}
        for path in [*ROOT.glob("*/CMakeLists.txt"), *ROOT.glob("cmake/*.cmake")]:
            if path.parent.name in read | {"cmake"}:
                read |= set(re.findall(r"(?:PROJECT_SOURCE_DIR\}|\.\.)/(\w+)", path.read_text()))
        self.assertLessEqual(read - {"tests"}, copied)

    def test_the_dockerfile_has_no_lint(self):
        hadolint = schemas.TOOLS / "bin/hadolint"
        if not hadolint.exists():
            self.skipTest("there is no hadolint for this machine")
        result = subprocess.run([hadolint, ROOT / "deploy/Dockerfile"], capture_output=True, text=True)
        self.assertEqual(result.returncode, 0, result.stdout)
        wrong = subprocess.run([hadolint, "-"], input="FROM debian\nRUN cd /src\n", capture_output=True, text=True)
        self.assertNotEqual(wrong.returncode, 0)


if __name__ == "__main__":
    unittest.main()
