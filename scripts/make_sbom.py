#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the software bill of materials of a staged image: CycloneDX 1.5, JSON.

    scripts/make_sbom.py STAGE [--base-packages FILE] [--copyrights FOLDER] [--output FILE]

STAGE is what deploy/docker/stage_runtime.sh made: bin/ with programs, lib/ with every library that they load. Each
library is listed under the Debian package that owns it, with the package's version and licence; MuJoCo and what is
compiled in without a library of its own under their projects. FILE has a line for each package of the base image, from
dpkg-query -W -f '${Package}\\t${Version}\\t${Architecture}\\n'. FOLDER gets the copyright file of each package.
Run where the programs were built: the packages must be installed. The same input gives the same bytes.
Exit codes: 64 usage; 65 a file in STAGE is not the one that its package has, or belongs to nothing that is known.
"""
import argparse
import hashlib
import json
import pathlib
import re
import shutil
import subprocess
import sys
import uuid

ROOT = pathlib.Path(__file__).resolve().parents[1]
DOC = pathlib.Path("/usr/share/doc")
RELEASE = dict(line.split("=", 1) for line in pathlib.Path("/etc/os-release").read_text().splitlines() if "=" in line)
DISTRIBUTION = "-".join(RELEASE.get(key, "").strip('"') for key in ("ID", "VERSION_ID"))
# Debian's short names of licences, as SPDX has them. What is not here is given by its name.
SPDX = {
    "apache-2.0": "Apache-2.0", "apache-2": "Apache-2.0", "apache": "Apache-2.0", "expat": "MIT", "mit": "MIT",
    "bsd-2-clause": "BSD-2-Clause", "bsd-3-clause": "BSD-3-Clause", "bsd-3": "BSD-3-Clause", "zlib": "Zlib",
    "isc": "ISC", "bsl-1.0": "BSL-1.0", "boost-1.0": "BSL-1.0", "mpl-2.0": "MPL-2.0", "public-domain": None,
    "gpl-2": "GPL-2.0-only", "gpl-2+": "GPL-2.0-or-later", "gpl-3": "GPL-3.0-only", "gpl-3+": "GPL-3.0-or-later",
    "lgpl-2": "LGPL-2.0-only", "lgpl-2+": "LGPL-2.0-or-later", "lgpl-2.1": "LGPL-2.1-only",
    "lgpl-2.1+": "LGPL-2.1-or-later", "lgpl-3": "LGPL-3.0-only", "lgpl-3+": "LGPL-3.0-or-later",
}
# Debian packages of which only headers are used: their code is in our programs.
HEADERS_ONLY = ("libcli11-dev", "nlohmann-json3-dev", "libxxhash-dev")


class Stranger(Exception):
    """A file whose origin is not known."""


def run(*argv):
    return subprocess.run(argv, capture_output=True, text=True, check=True).stdout


def digest(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def version_of_tree():
    return re.search(r"project\(skein VERSION (\S+)", (ROOT / "CMakeLists.txt").read_text())[1]


def licences_of(copyright_text):
    """(licence of the source as a whole, all others in it), by Debian's names, of a machine-readable copyright file."""
    whole, others = None, set()
    for paragraph in re.split(r"\n\s*\n", copyright_text):
        files = re.search(r"^Files:\s*(.*)$", paragraph, re.MULTILINE | re.IGNORECASE)
        licence = re.search(r"^License:[ \t]*(\S.*)$", paragraph, re.MULTILINE | re.IGNORECASE)
        if not files or not licence or files[1].strip().startswith("debian/"):
            continue
        if files[1].strip() == "*" and whole is None:
            whole = licence[1].strip()
        else:
            others.add(licence[1].strip())
    return whole, sorted(others - {whole})


def licence_entries(package, name):
    if name is None:
        return [{"license": {"name": f"as in /usr/share/doc/{package}/copyright"}}]
    parts = re.split(r",?\s+(?:and|or|AND|OR)\s+", name)
    spdx = [SPDX.get(part.lower()) for part in parts]
    if len(parts) == 1 and spdx[0]:
        return [{"license": {"id": spdx[0]}}]
    return [{"license": {"name": name}}]


def debian_component(package, version, architecture, files=(), note=None):
    copyright_file = DOC / package / "copyright"
    text = copyright_file.read_text(errors="replace") if copyright_file.exists() else ""
    whole, others = licences_of(text)
    purl = f"pkg:deb/debian/{quote(package)}@{quote(version)}?arch={architecture}&distro={DISTRIBUTION}"
    properties = [{"name": "skein:file", "value": f"{path.name} sha256:{digest(path)}"} for path in files]
    properties += [{"name": "skein:other-licence", "value": other} for other in others]
    if note:
        properties.append({"name": "skein:note", "value": note})
    component = {"type": "library", "bom-ref": purl, "name": package, "version": version, "purl": purl,
                 "licenses": licence_entries(package, whole)}
    if properties:
        component["properties"] = properties
    return component


def quote(text):
    return text.replace("%", "%25").replace("+", "%2B").replace(":", "%3A").replace("~", "%7E")


def owners(paths):
    """{path: (package, version, architecture)} of the files that dpkg knows."""
    # Some packages were installed before /lib became /usr/lib: dpkg knows their files under the old name.
    names = {name: path for path in paths for name in (str(path), re.sub(r"^/usr/lib/", "/lib/", str(path)))}
    if not names:
        return {}
    # It says on standard error which names it does not know.
    got = subprocess.run(["dpkg-query", "-S", *names], capture_output=True, text=True).stdout
    owner = {names[name]: packages.split(",")[0] for packages, name in re.findall(r"^(\S.*): (/.*)$", got, re.MULTILINE)
             if name in names}
    lines = run("dpkg-query", "-W", "-f", "${binary:Package}\t${Package}\t${Version}\t${Architecture}\n",
                *sorted(set(owner.values()))).splitlines() if owner else []
    packages = {full: tuple(rest) for full, *rest in (line.split("\t") for line in lines)}
    # dpkg-query names the architecture of some packages only: libc6:amd64, but base-files.
    return {path: packages[full] if full in packages else packages[full.split(":")[0]] for path, full in owner.items()}


def loaded_by(program):
    """{name: file} of the libraries that a program loads on this machine."""
    libraries = {}
    for name, path in re.findall(r"^\s*(\S+) => (/\S+) \(0x", run("ldd", program), re.MULTILINE):
        libraries[name] = pathlib.Path(path).resolve()
    return libraries


def mujoco_component(path, staged):
    version = re.search(r"libmujoco\.so\.(\d+(?:\.\d+)*)", path.name)[1]
    purl = f"pkg:pypi/mujoco@{version}"
    return {"type": "library", "bom-ref": purl, "name": "mujoco", "version": version, "purl": purl,
            "licenses": [{"license": {"id": "Apache-2.0"}}],
            "properties": [{"name": "skein:file", "value": f"{staged.name} sha256:{digest(staged)}"}]}


def uplot_component():
    page = (ROOT / "third_party/uplot/README.md").read_text()
    version = re.search(r"^# uPlot (\S+)", page, re.MULTILINE)[1]
    purl = f"pkg:npm/uplot@{version}"
    return {"type": "library", "bom-ref": purl, "name": "uplot", "version": version, "purl": purl,
            "licenses": [{"license": {"id": "MIT"}}],
            "properties": [{"name": "skein:note", "value": "a script for browsers, in skein-coordinator"}]}


def library_components(stage, programs):
    where = {}
    for program in programs:
        where.update(loaded_by(program))
    of_package, components = {}, []
    known = owners(sorted({path for path in where.values()}))
    for staged in sorted((stage / "lib").iterdir()):
        source = where.get(staged.name)
        if source is None:
            raise Stranger(f"{staged}: no program in {stage / 'bin'} loads it")
        if digest(source) != digest(staged):
            raise Stranger(f"{staged}: is not {source}")
        if source in known:
            of_package.setdefault(known[source], []).append(staged)
        elif source.name.startswith("libmujoco.so."):
            components.append(mujoco_component(source, staged))
        else:
            raise Stranger(f"{staged}: {source} is of no Debian package, and not MuJoCo")
    return components + [debian_component(*package, files) for package, files in sorted(of_package.items())]


def compiled_in(programs):
    names = {program.name for program in programs}
    components = [uplot_component()] if "skein-coordinator" in names else []
    for package in HEADERS_ONLY:
        got = subprocess.run(["dpkg-query", "-W", "-f", "${Package}\t${Version}\t${Architecture}", package],
                             capture_output=True, text=True)
        if got.returncode == 0:
            components.append(debian_component(*got.stdout.split("\t"), note="headers, compiled into the programs"))
    return components


def bill(stage, base_packages):
    programs = sorted((stage / "bin").iterdir())
    if not programs:
        raise Stranger(f"{stage / 'bin'}: has no programs")
    version = version_of_tree()
    ours = [{"type": "application", "bom-ref": f"skein/{program.name}", "name": program.name, "version": version,
             "licenses": [{"license": {"id": "Apache-2.0"}}],
             "hashes": [{"alg": "SHA-256", "content": digest(program)}]} for program in programs]
    parts = library_components(stage, programs) + compiled_in(programs)
    base = [debian_component(*line.split("\t"), note="of the base image") for line in base_packages]
    listed = {component["bom-ref"]: component for component in base + parts}  # What is staged counts over the base's.
    components = ours + sorted(listed.values(), key=lambda component: component["bom-ref"])
    needs = sorted({component["bom-ref"] for component in parts})
    document = {
        "bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1,
        "metadata": {
            "tools": {"components": [{"type": "application", "name": "scripts/make_sbom.py", "version": version}]},
            "component": {"type": "container", "bom-ref": "image", "name": f"skein-{stage.name}", "version": version},
        },
        "components": components,
        "dependencies": [{"ref": "image", "dependsOn": sorted(component["bom-ref"] for component in ours)}] +
                        [{"ref": component["bom-ref"], "dependsOn": needs} for component in ours],
    }
    content = json.dumps(document, sort_keys=True)
    document["serialNumber"] = uuid.uuid5(uuid.NAMESPACE_URL, content).urn
    return document


def keep_copyrights(document, folder):
    for component in document["components"]:
        source = DOC / component["name"] / "copyright"
        if not component.get("purl", "").startswith("pkg:deb/") or not source.exists():
            continue
        (folder / component["name"]).mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, folder / component["name"] / "copyright")


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("stage", type=pathlib.Path)
    parser.add_argument("--base-packages", type=pathlib.Path)
    parser.add_argument("--copyrights", type=pathlib.Path)
    parser.add_argument("--output", type=pathlib.Path)
    try:
        args = parser.parse_args()
    except SystemExit as end:
        sys.exit(64 if end.code else 0)
    if not (args.stage / "bin").is_dir() or not (args.stage / "lib").is_dir():
        print(f"make_sbom: {args.stage}: has no bin and lib; run deploy/docker/stage_runtime.sh first", file=sys.stderr)
        sys.exit(64)
    base = args.base_packages.read_text().splitlines() if args.base_packages else []
    try:
        document = bill(args.stage.resolve(), base)
    except Stranger as error:
        print(f"make_sbom: {error}", file=sys.stderr)
        sys.exit(65)
    text = json.dumps(document, indent=1, ensure_ascii=False) + "\n"
    if args.copyrights:
        keep_copyrights(document, args.copyrights)
    if args.output:
        args.output.parent.mkdir(parents=True, exist_ok=True)
        args.output.write_text(text)
    else:
        sys.stdout.write(text)


if __name__ == "__main__":
    main()
