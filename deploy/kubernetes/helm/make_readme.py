#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes skein/README.md, the table of the chart's values: what each is for by values.schema.json, its default by
values.yaml. A test sees to it that it is current.

    deploy/kubernetes/helm/make_readme.py [FILE]      FILE: where to write instead of skein/README.md
"""
import json
import pathlib
import sys

import yaml

CHART = pathlib.Path(__file__).resolve().parent / "skein"
HEAD = """# Chart skein

<!-- Written by deploy/kubernetes/helm/make_readme.py from values.schema.json and values.yaml. -->

{description} How to install it and what each object is for: [kubernetes](../../../../docs/kubernetes.md).

    helm install NAME deploy/kubernetes/helm/skein --set image.prefix=REGISTRY/skein-

A value that is not listed, or of another type, is refused.
"""
LONG = 60  # Characters; a default that is longer is not shown.


def leaves(node, path=()):
    """(path, schema) of each value, in the schema's order."""
    for name, child in node["properties"].items():
        if "properties" in child:
            yield from leaves(child, (*path, name))
        else:
            yield (*path, name), child


def type_of(schema):
    if "enum" in schema:
        return ", ".join(f"`{value}`" for value in schema["enum"])
    kind = schema.get("type", "object" if "$ref" in schema else "number")
    return kind if isinstance(kind, str) else " or ".join(kind)


def default_of(values, path):
    for name in path:
        values = values[name]
    text = json.dumps(values)
    return f"`{text}`" if len(text) <= LONG else "see values.yaml"


def make():
    schema = json.loads((CHART / "values.schema.json").read_text())
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    lines = [HEAD.format(**chart)]
    for section, child in schema["properties"].items():
        if section == "global":
            continue
        lines += [f"## {section}", "", child["description"], "", "| value | type | default | what |", "|---|---|---|---|"]
        for path, leaf in leaves(child, (section,)):
            cells = (f"`{'.'.join(path)}`", type_of(leaf), default_of(values, path), leaf["description"])
            lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
        lines.append("")
    return "\n".join(lines)


if __name__ == "__main__":
    target = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else CHART / "README.md"
    target.write_text(make())
