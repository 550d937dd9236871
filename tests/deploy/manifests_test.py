#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""deploy/kubernetes and deploy/compose.yaml: valid by their schemas; compose.yaml and the Dockerfile agree with the rest.

Exits with 77, skipped, if the tools cannot be had.
"""
import copy
import pathlib
import re
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
if __name__ == "__main__":
    fetched = subprocess.run([ROOT / "scripts/fetch_kubernetes_tools.sh"])
    if fetched.returncode != 0:
        sys.exit(77)

import yaml  # noqa: E402  (installed by the line above)

import schemas  # noqa: E402
from chart import CHART, VARIANTS, find, helm, kustomize, render  # noqa: E402


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
