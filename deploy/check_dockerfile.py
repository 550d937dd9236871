#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the images of deploy/Dockerfile without Docker and tries them: its steps run in clean Debian roots.

    sudo deploy/check_dockerfile.py [--binaries build/release]     about a minute: programs that were built before
    sudo deploy/check_dockerfile.py --full                         the build stage, too: packages, compiler, everything

Of each target it checks that its program starts as the image's user on a root file system that cannot be written,
that it finds all its libraries and that there is no compiler; then that a coordinator, a learner and an actor, each in
its own image, train CartPole-v1 to the end. Needs root, debootstrap and a Debian mirror; the bare root is kept in .deps/.
Exit codes: 1 a check has failed; 77 this machine cannot do it, and why.
"""
import argparse
import os
import pathlib
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
BASE = ROOT / ".deps/debian-bookworm.tar"
COMPILERS = ("cc", "gcc", "g++", "c++", "clang", "as", "ld", "make", "cmake", "ninja")
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
TARGETS = ("coordinator", "actor", "learner")
CONFIG = """
total_steps: 4096
env: {id: CartPole-v1}
rollout: {num_envs: 8, envs_per_runner: 4, steps_per_iteration: 1024}
ppo: {minibatch_size: 256}
"""


def cannot(why):
    print(f"check_dockerfile: {why}", file=sys.stderr)
    sys.exit(77)


def parse(text):
    """[(instruction, rest)], with continued lines joined and variables of ARG replaced."""
    steps, arguments = [], {}
    for line in re.sub(r"\\\n", " ", text).splitlines():
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        instruction, rest = line.split(None, 1)
        for name, value in arguments.items():
            rest = rest.replace("${%s}" % name, value)
        if instruction == "ARG":  # Without a value it brings one from above the first FROM into its stage.
            name, given, value = rest.partition("=")
            if given:
                arguments[name] = value
        else:
            steps.append((instruction, rest.strip()))
    return steps


class Stage:
    """One image in the making: a root folder and what Docker keeps beside it."""

    def __init__(self, root, parent=None):
        self.root = root
        self.environment = dict(parent.environment) if parent else {"PATH": PATH}
        self.labels = dict(parent.labels) if parent else {}
        self.workdir, self.user, self.entrypoint = "/", "0:0", []
        if parent:
            subprocess.run(["cp", "-a", "--reflink=auto", parent.root, root], check=True)
        else:
            root.mkdir()
            subprocess.run(["tar", "-xf", BASE, "-C", root], check=True)

    def command(self, argv, writable=True, mounts=()):
        """The argv that runs `argv` inside; its PIDs are its own. mounts: (folder outside, path inside)."""
        root = shlex.quote(str(self.root))
        script = [f"mount --bind {root} {root}", f"mount -t proc proc {root}/proc"]
        script += [f"mount --bind {shlex.quote(str(a))} {root}{b}" for a, b in mounts]
        if not writable:
            script.append(f"mount -o remount,bind,ro {root}")
        environment = [f"{name}={value}" for name, value in self.environment.items()]
        inside = ["chroot", f"--userspec={self.user}", str(self.root), "env", "-i", *environment,
                  "sh", "-c", f'cd {shlex.quote(self.workdir)} && exec "$@"', "sh", *argv]
        script.append("exec " + shlex.join(inside))
        return ["unshare", "--mount", "--pid", "--fork", "sh", "-ec", "; ".join(script)]

    def run(self, argv, **how):
        return subprocess.run(self.command(argv, **how), capture_output=True, text=True)


class Builder:
    def __init__(self, work, full, binaries):
        self.work, self.full, self.binaries = work, full, binaries
        self.stages = {}

    def build(self, steps):
        stage = None
        for instruction, rest in steps:
            if instruction == "FROM":
                base, name = re.fullmatch(r"(\S+) AS (\S+)", rest).groups()
                print(f"[{name}]")
                stage = Stage(self.work / name, self.stages.get(base))
                self.stages[name] = stage
                if base not in self.stages and base.split("@")[0] != "debian:bookworm-slim":
                    raise SystemExit(f"FROM {base}: this script knows debian:bookworm-slim only")
                shutil.copy("/etc/resolv.conf", stage.root / "etc/resolv.conf")
                ready_made = name == "build" and not self.full
                continue
            self.step(stage, instruction, rest, ready_made)

    def step(self, stage, instruction, rest, ready_made):
        if instruction == "RUN":
            if ready_made:
                self.stage_binaries(stage, rest)
                return
            print(f"  RUN {rest[:100]}")
            done = stage.run(["sh", "-c", rest])
            if done.returncode != 0:
                raise SystemExit(f"RUN {rest}: code {done.returncode}\n{done.stdout[-3000:]}{done.stderr[-3000:]}")
        elif instruction == "COPY":
            if not ready_made:
                self.copy(stage, rest.split())
        elif instruction == "ENV":
            name, _, value = rest.partition("=")
            stage.environment[name] = value
        elif instruction == "LABEL":
            stage.labels.update(word.split("=", 1) for word in shlex.split(rest))
        elif instruction == "WORKDIR":
            stage.workdir = rest
            (stage.root / rest.lstrip("/")).mkdir(parents=True, exist_ok=True)
        elif instruction == "USER":
            stage.user = rest
        elif instruction == "ENTRYPOINT":
            stage.entrypoint = [word.strip('" ') for word in rest.strip("[]").split(",")]
        elif instruction not in ("EXPOSE", "VOLUME", "CMD"):
            raise SystemExit(f"{instruction}: this script does not know it")

    def stage_binaries(self, stage, rest):
        """Of the build stage only what gathers programs and libraries, here and from the programs of this machine."""
        for target, programs in re.findall(r"stage_runtime\.sh /(\S+) build/release ([^&]+)", rest):
            print(f"  stage_runtime.sh /{target} {programs}")
            subprocess.run([ROOT / "deploy/docker/stage_runtime.sh", stage.root / target, self.binaries,
                            *programs.split()], check=True)

    def copy(self, stage, words):
        origin = ROOT
        if words[0].startswith("--from="):
            origin = self.stages[words.pop(0).removeprefix("--from=")].root
        *sources, destination = words
        inside = stage.root / os.path.join(stage.workdir, destination).lstrip("/")
        for source in sources:
            path = origin / source.lstrip("/")
            if path.is_dir():  # Docker copies what is in it.
                shutil.copytree(path, inside, symlinks=True, dirs_exist_ok=True)
            else:
                into = inside / path.name if destination.endswith("/") or len(sources) > 1 else inside
                into.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(path, into)


def check_image(name, stage):
    """What is wrong with it."""
    problems = []
    if not re.fullmatch(r"[1-9]\d*:[1-9]\d*", stage.user):
        problems.append(f"user is {stage.user}, want numbers other than 0")
    missing = {"title", "description", "version", "revision", "created", "licenses", "base.name"} - {
        key.removeprefix("org.opencontainers.image.") for key, value in stage.labels.items() if value}
    if missing or stage.labels["org.opencontainers.image.title"] != f"skein-{name}":
        problems.append(f"labels are {stage.labels}, missing {missing}")
    started = stage.run([*stage.entrypoint, "--help"], writable=False)
    if started.returncode != 0 or "Usage" not in started.stdout:
        problems.append(f"--help: code {started.returncode}: {started.stdout[-300:]}{started.stderr[-300:]}")
    for program in sorted((stage.root / "opt/skein/bin").iterdir()):
        needed = stage.run(["ldd", f"/opt/skein/bin/{program.name}"], writable=False)
        lost = [line.strip() for line in needed.stdout.splitlines() if "not found" in line]
        if needed.returncode != 0 or lost:
            problems.append(f"{program.name}: {lost or needed.stderr}")
    # What there is depends on nobody's PATH.
    found = [str(path.relative_to(stage.root)) for folder in ("usr/bin", "usr/local/bin", "usr/sbin", "opt/skein/bin")
             for path in (stage.root / folder).glob("*")
             if path.name in COMPILERS or re.match(r"(gcc|g\+\+|clang)-\d", path.name)]
    if found:
        problems.append(f"compilers: {found}")
    if stage.run(["touch", "/opt/skein/bin/x"]).returncode == 0:
        problems.append("the image's user can write to /opt/skein")
    size = subprocess.run(["du", "-sm", stage.root / "opt"], capture_output=True, text=True).stdout.split()[0]
    print(f"{name}: {size} MB on top of Debian, user {stage.user}, {'; '.join(problems) or 'as it should be'}")
    return problems


def stop(process):
    """Of a command of Stage: unshare itself does not heed SIGTERM, and ends with its child."""
    children = pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children")
    for signal_number, seconds in ((signal.SIGTERM, 5), (signal.SIGKILL, None)):
        if process.poll() is None:
            for child in children.read_text().split():
                os.kill(int(child), signal_number)
        try:
            process.wait(timeout=seconds)
            return
        except subprocess.TimeoutExpired:
            pass


def check_run(stages, work):
    """Trains in the three images. Returns what is wrong."""
    config, runs = work / "run.yaml", work / "runs"
    config.write_text(CONFIG)
    config.chmod(0o644)
    runs.mkdir()
    uid, gid = (int(number) for number in stages["learner"].user.split(":"))
    os.chown(runs, uid, gid)
    (stages["coordinator"].root / "etc/skein.yaml").touch()

    def start(name, flags, mounts=(), **how):
        argv = stages[name].command([*stages[name].entrypoint, *flags], writable=False, mounts=mounts)
        return subprocess.Popen(argv, stdout=subprocess.PIPE, text=True, **how)

    flags = ["--config=/etc/skein.yaml", "--listen=127.0.0.1:0", "--http=127.0.0.1:0"]
    coordinator = start("coordinator", flags, [(config, "/etc/skein.yaml")])
    others = []
    try:
        line = coordinator.stdout.readline()
        address = re.search(r"grpc=(\S+)", line)
        if not address:
            return [f"the coordinator said '{line}'"]
        to = f"--coordinator={address.group(1)}"
        others.append(start("learner", [to, "--run-dir=/runs/run"], [(runs, "/runs")], stderr=subprocess.STDOUT))
        others.append(start("actor", [to, "--runners=1"], stderr=subprocess.STDOUT))
        problems = []
        for name, process in zip(("learner", "actor"), others):  # An actor waits for a learner for ever.
            try:
                output, _ = process.communicate(timeout=5 if problems else 60)
            except subprocess.TimeoutExpired:
                stop(process)
                output, _ = process.communicate()
            if process.returncode != 0:
                problems.append(f"{name}: code {process.returncode}: {output[-500:]}")
        if not list(runs.glob("run/checkpoints/*/DONE")):
            problems.append("there is no checkpoint")
        print(f"a run of the three: {'; '.join(problems) or 'finished, with a checkpoint'}")
        return problems
    finally:
        for process in (coordinator, *others):
            stop(process)


def prepare_base():
    if os.geteuid() != 0:
        cannot("needs root, for chroot and mount")
    for program in ("debootstrap", "unshare", "chroot"):
        if not shutil.which(program):
            cannot(f"there is no {program}: apt-get install debootstrap")
    if subprocess.run(["unshare", "--mount", "--pid", "--fork", "true"], capture_output=True).returncode != 0:
        cannot("may not make a mount namespace here")
    if BASE.exists():
        return
    listed = subprocess.run(["apt-get", "indextargets", "--format", "$(REPO_URI)", "Created-By: Packages",
                             "Codename: bookworm"], capture_output=True, text=True).stdout.split()
    mirror = next((uri for uri in listed if uri.rstrip("/").endswith("/debian")), "http://deb.debian.org/debian")
    print(f"debootstrap from {mirror}")
    BASE.parent.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=BASE.parent) as folder:
        root = pathlib.Path(folder, "root")
        done = subprocess.run(["debootstrap", "--variant=minbase", "bookworm", root, mirror],
                              capture_output=True, text=True)
        if done.returncode != 0:
            cannot(f"debootstrap failed: {done.stdout[-500:]}{done.stderr[-500:]}")
        shutil.rmtree(root / "var/cache/apt", ignore_errors=True)
        subprocess.run(["tar", "-cf", f"{folder}/base.tar", "-C", root, "."], check=True)
        os.rename(f"{folder}/base.tar", BASE)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--full", action="store_true", help="run the build stage, too")
    parser.add_argument("--binaries", type=pathlib.Path, default=ROOT / "build/release",
                        help="folder of programs built before")
    options = parser.parse_args()
    prepare_base()
    with tempfile.TemporaryDirectory(dir=ROOT / ".deps") as folder:
        os.chmod(folder, 0o755)
        builder = Builder(pathlib.Path(folder), options.full, options.binaries.resolve())
        builder.build(parse((ROOT / "deploy/Dockerfile").read_text()))
        problems = [problem for name in TARGETS for problem in check_image(name, builder.stages[name])]
        problems += check_run(builder.stages, pathlib.Path(folder))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
