#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""deploy/kubernetes: what the chart's objects say agrees with each other and with the programs.

Exits with 77, skipped, if the tools cannot be had.
"""
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

from chart import BIN, CHART, VARIANTS, find, flags_of, helm, kustomize, pods, render  # noqa: E402


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


if __name__ == "__main__":
    unittest.main()
