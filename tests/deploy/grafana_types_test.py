#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""deploy/grafana/dashboards by Grafana's own types (grafana-foundation-sdk): what Grafana would not read is lost when a
dashboard goes through them, be it misspelt or in the wrong place.

Exits with 77, skipped, if they cannot be had.
"""
import copy
import json
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

sys.path.insert(0, str(ROOT / ".deps/kubernetes/python"))
from grafana_foundation_sdk.cog.encoder import JSONEncoder  # noqa: E402
from grafana_foundation_sdk.models.dashboard import Dashboard  # noqa: E402

# Fields of the Prometheus data source, which the types leave to it.
OF_PROMETHEUS = re.compile(r"/annotations/list/\d+/(step|titleFormat|tagKeys|textFormat|useValueForTime)"
                           r"|/templating/list/\d+/definition")


def lost(have, read, path=""):
    """Paths of what is in `have` and not in `read`."""
    if isinstance(have, dict) and isinstance(read, dict):
        return [where for key, value in have.items() for where in (
            lost(value, read[key], f"{path}/{key}") if key in read else [f"{path}/{key}"])]
    if isinstance(have, list) and isinstance(read, list) and len(have) == len(read):
        return [where for i, (a, b) in enumerate(zip(have, read)) for where in lost(a, b, f"{path}/{i}")]
    return [] if have == read else [path]


def problems(dashboard):
    read = json.loads(JSONEncoder().encode(Dashboard.from_json(copy.deepcopy(dashboard))))
    return [path for path in lost(dashboard, read) if not OF_PROMETHEUS.fullmatch(path)]


class GrafanaTypes(unittest.TestCase):
    def setUp(self):
        self.dashboards = {path.name: json.loads(path.read_text())
                           for path in (ROOT / "deploy/grafana/dashboards").glob("*.json")}
        self.assertEqual(len(self.dashboards), 5)

    def test_nothing_is_lost(self):
        for name, dashboard in self.dashboards.items():
            self.assertEqual(problems(dashboard), [], name)

    def test_what_is_misspelt_is_found(self):
        dashboard = self.dashboards["overview.json"]
        dashboard["panels"][0]["gridpos"] = dashboard["panels"][0].pop("gridPos")
        dashboard["templating"]["list"][1]["multiple"] = dashboard["templating"]["list"][1].pop("multi")
        dashboard["links"][0]["url_"] = ""
        self.assertEqual(problems(dashboard), ["/links/0/url_", "/templating/list/1/multiple", "/panels/0/gridpos"])


if __name__ == "__main__":
    unittest.main()
