#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How well shares of a machine hold: the tables of docs/resources.md.

    scripts/share_study.py held                     # an actor that wants more than its share, beside rivals that want all
    scripts/share_study.py held --without-groups    # the same by affinity and priority: as a user without control groups
    scripts/share_study.py neighbours               # a training beside one whose actor overruns its memory again and again

`held`: HalfCheetah-v5 in mode async, so that the actor never waits, with shares of 0.25, 0.5, 0.75 and 1 CPU for it and one
CPU for the learner. The rivals are loops without a share, four for each CPU; --without-groups takes one. What the actor
uses is the kernel's count over --seconds.

`neighbours`: env steps a second of such a training with half a CPU for each process, in turn alone, beside another training
that keeps its share, and beside one whose actor is killed because of its memory whenever it starts. In each round the
three are measured for --seconds; the next round measures them in the other order.

Writes DATA/STUDY.json, or DATA/held_without_groups.json, and the table between the marks of that name in --document.
--tables only writes the tables anew. Exit code 1: the figures miss their bars, 5 % and 2 %.
"""

import argparse
import contextlib
import json
import os
import pathlib
import platform
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time

sys.dont_write_bytecode = True
from directions_study import write_table  # noqa: E402  Beside this script.

ROOT = pathlib.Path(__file__).resolve().parents[1]
SHARES = (0.25, 0.5, 0.75, 1.0)
SITUATIONS = ("alone", "kept", "overrun")
MOST_OFF, MOST_LOST = 5.0, 2.0  # Percent.
NOBODY = "65534"
LOOP = ["/bin/sh", "-c", "while :; do :; done"]
# An update that is soon done: the actor is what limits the training.
TRAINING = ["--env", "HalfCheetah-v5", "--no-eval", "--runners", "2", "--steps", "1e12", "--resume", "never",
            "--set", "sync.mode=async", "--set", "ppo.epochs=1", "--set", "ppo.minibatch_size=2048",
            "--set", "rollout.steps_per_iteration=4096", "--set", "checkpoint.interval_steps=1000000000000"]
# Its actor needs more than 64 MiB before it has done anything.
OVERRUN = ["--env", "CartPole-v1", "--no-eval", "--runners", "1", "--resume", "never", "--envs", "65536", "--envs-per-runner",
           "65536", "--set", "rollout.steps_per_iteration=4194304", "--set", "resources.actor.memory=64MiB"]
HALVES = ["--set", "resources.actor.cpus=0.5", "--set", "resources.learner.cpus=0.5"]
HOW = "share of each actor: "


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("study", choices=["held", "neighbours"])
    parser.add_argument("--bin", type=pathlib.Path, default=ROOT / "build/release", help="folder of the programs")
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--rounds", type=int, default=5, help="of neighbours")
    parser.add_argument("--rivals", type=int, help="of held, for each CPU")
    parser.add_argument("--without-groups", action="store_true", help="as the user nobody; only root can")
    parser.add_argument("--data", type=pathlib.Path, default=ROOT / "docs/benchmarks/shares")
    parser.add_argument("--document", type=pathlib.Path, default=ROOT / "docs/resources.md")
    parser.add_argument("--tables", action="store_true")
    arguments = parser.parse_args()
    if arguments.without_groups and arguments.study != "held":
        parser.error("--without-groups is for held")
    if arguments.seconds <= 0 or arguments.rounds < 1:
        parser.error("--seconds and --rounds must be above 0")
    if arguments.rivals is None:
        arguments.rivals = 1 if arguments.without_groups else 4
    return arguments


def study_name(arguments):
    return "held_without_groups" if arguments.without_groups else arguments.study


# --- What is measured.


class Training:
    """A `skein train` in a folder of its own; ended at the end of its scope."""

    def __init__(self, arguments, folder, name, words):
        self.run, self.log_path = folder / "runs" / name, folder / f"{name}.log"
        command = [arguments.bin.resolve() / "skein", "train", "--name", name, "--runs-dir", folder / "runs", *words]
        if arguments.without_groups:
            command = ["setpriv", "--reuid", NOBODY, "--regid", NOBODY, "--clear-groups", *command]
        with open(self.log_path, "w") as log:
            self.process = subprocess.Popen([str(word) for word in command], stdout=log, stderr=log, cwd=folder,
                                            env={**os.environ, "SKEIN_BOOKINGS": str(folder / "bookings")})

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.terminate()
        self.process.wait(timeout=60)

    def log(self):
        return self.log_path.read_text(errors="replace")

    def env_steps(self):
        """Of the last whole line of its metrics."""
        try:
            lines = (self.run / "metrics.jsonl").read_bytes().splitlines(keepends=True)
        except FileNotFoundError:
            return 0
        whole = [line for line in lines[-2:] if line.endswith(b"\n")]
        return json.loads(whole[-1])["env_steps"] if whole else 0

    def wait_until_it_trains(self, seconds=120):
        deadline = time.monotonic() + seconds
        while self.env_steps() == 0:
            if self.process.poll() is not None or time.monotonic() > deadline:
                sys.exit(f"the training does not begin:\n{self.log()}")
            time.sleep(0.05)

    def how(self):
        lines = [line for line in self.log().splitlines() if line.startswith(HOW)]
        return lines[0][len(HOW):] if lines else ""


def descendants(pid):
    parents = {}
    for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):  # It has just ended.
            parents[int(stat.parent.name)] = int(stat.read_text().rpartition(")")[2].split()[1])
    found = [pid]
    for one in found:
        found += [child for child, parent in parents.items() if parent == one]
    return found[1:]


def actor_of(training):
    for pid in descendants(training.process.pid):
        with contextlib.suppress(OSError):
            if pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[0].endswith(b"skein-actor"):
                return pid
    sys.exit(f"the training has no actor:\n{training.log()}")


def cpu_seconds(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def cpus_used(pid, seconds):
    before, began = cpu_seconds(pid), time.monotonic()
    time.sleep(seconds)
    return (cpu_seconds(pid) - before) / (time.monotonic() - began)


def rate(samples):
    """Steps a second between the first and the last change of (seconds, steps); None: there is none."""
    changes = [sample for before, sample in zip(samples, samples[1:]) if sample[1] != before[1]]
    if len(changes) < 2:
        return None
    return (changes[-1][1] - changes[0][1]) / (changes[-1][0] - changes[0][0])


def measure_training(training, seconds):
    """Env steps a second, and the CPUs that its actor uses."""
    actor, samples, end = actor_of(training), [], time.monotonic() + seconds
    before, began = cpu_seconds(actor), time.monotonic()
    while time.monotonic() < end:
        samples.append((time.monotonic(), training.env_steps()))
        time.sleep(0.005)
    used = (cpu_seconds(actor) - before) / (time.monotonic() - began)
    found = rate(samples)
    if found is None:
        sys.exit(f"{seconds} s are too short: fewer than two iterations ended")
    return found, used


@contextlib.contextmanager
def rivals(count):
    started = [subprocess.Popen(LOOP) for _ in range(count)]
    try:
        yield
    finally:
        for one in started:
            one.send_signal(signal.SIGKILL)
            one.wait()


@contextlib.contextmanager
def scratch_folder(arguments):
    with tempfile.TemporaryDirectory(prefix="share-study-") as name:
        if arguments.without_groups:
            os.chown(name, int(NOBODY), int(NOBODY))
        yield pathlib.Path(name)


class Overruns:
    """A training whose actor overruns its memory, again and again until the end of the scope. `count`: how often."""

    def __init__(self, arguments, folder):
        self.arguments, self.folder, self.count, self.over = arguments, folder, 0, False
        self.first = threading.Event()
        self.thread = threading.Thread(target=self.carry)

    def carry(self):
        while not self.over:
            with Training(self.arguments, self.folder, "overrun", [*OVERRUN, *HALVES]) as training:
                while training.process.poll() is None and not self.over:
                    time.sleep(0.05)
            self.count += training.log().count("more memory than its share")
            self.first.set()

    def __enter__(self):
        self.thread.start()
        if not self.first.wait(180):
            self.over = True
            sys.exit("the actor that overruns its memory did not end within 180 s")
        return self

    def __exit__(self, *_):
        self.over = True
        self.thread.join()


def measure_held(arguments):
    rows, how = [], ""
    for cpus in SHARES:
        words = [*TRAINING, "--set", f"resources.actor.cpus={cpus}", "--set", "resources.learner.cpus=1"]
        with scratch_folder(arguments) as folder, Training(arguments, folder, "held", words) as training:
            training.wait_until_it_trains()
            how = training.how()
            with rivals(arguments.rivals * os.cpu_count()):
                time.sleep(1)
                used = cpus_used(actor_of(training), arguments.seconds)
        rows.append({"cpus": cpus, "used": round(used, 4), "off_percent": round(100 * (used / cpus - 1), 2)})
        print(rows[-1], file=sys.stderr, flush=True)
    return {"how": how, "rivals_per_cpu": arguments.rivals, "rows": rows}


def measure_neighbours(arguments):
    rows = []
    with scratch_folder(arguments) as folder, Training(arguments, folder, "neighbour", [*TRAINING, *HALVES]) as neighbour:
        neighbour.wait_until_it_trains()
        for number in range(arguments.rounds):
            row = {}
            for situation in SITUATIONS if number % 2 == 0 else SITUATIONS[::-1]:
                if situation == "alone":
                    measured = measure_training(neighbour, arguments.seconds)
                elif situation == "kept":
                    with Training(arguments, folder, "kept", [*TRAINING, *HALVES]) as other:
                        other.wait_until_it_trains()
                        measured = measure_training(neighbour, arguments.seconds)
                else:
                    with Overruns(arguments, folder) as overruns:
                        measured = measure_training(neighbour, arguments.seconds)
                        row["overruns"] = overruns.count  # With the one that was waited for.
                row[situation], row[f"{situation}_cpus"] = round(measured[0], 1), round(measured[1], 3)
            rows.append(row)
            print(rows[-1], file=sys.stderr, flush=True)
        how = neighbour.how()
    return {"how": how, "rows": rows, **losses(rows)}


def losses(rows):
    """What the overruns cost in each round, in percent: [smallest, median, largest]."""
    of = {}
    for other in SITUATIONS[:2]:
        lost = [100 * (1 - row["overrun"] / row[other]) for row in rows]
        of[f"lost_percent_beside_{other}"] = [round(figure(lost), 2) for figure in (min, statistics.median, max)]
    return of


# --- What is said of it.


def machine():
    with open("/proc/cpuinfo") as file:
        models = [line.partition(":")[2].strip() for line in file if line.startswith("model name")]
    return {"processor": models[0] if models else platform.machine(), "cpus": os.cpu_count(),
            "kernel": platform.release(), "load_average": round(os.getloadavg()[0], 2)}


def load(result):
    return f"Load average before: {result['machine']['load_average']:.1f}."


def held_table(result):
    lines = [f"Held by: {result['how']}. Rivals that want all: {result['rivals_per_cpu']} for each of "
             f"{result['machine']['cpus']} CPUs; {result['seconds']:g} s each. {load(result)}", "",
             "| share, CPUs | used | off |", "|---|---|---|"]
    return lines + [f"| {row['cpus']:g} | {row['used']:.3f} | {round(row['off_percent'], 1) + 0.0:+.1f} % |"
                    for row in result["rows"]]


def neighbours_table(result):
    rows, names = result["rows"], {"alone": "by itself", "kept": "beside one that keeps its share",
                                   "overrun": "beside one that overruns its memory"}
    overruns = sum(row["overruns"] for row in rows)
    lines = [f"Held by: {result['how']}. {len(rows)} rounds of {result['seconds']:g} s; {overruns} overruns. {load(result)} "
             "Medians; of the last column also the smallest and the largest; negative is faster.", "",
             "| a training with half a CPU for each process | CPUs of its actor | env steps a second | how much slower the last row is in the same round |",
             "|---|---|---|---|"]
    for situation in SITUATIONS:
        lost = result.get(f"lost_percent_beside_{situation}")
        loss = "" if lost is None else f"{lost[1]:.1f} % ({lost[0]:.1f} to {lost[2]:.1f})"
        cpus, steps = (statistics.median(row[key] for row in rows) for key in (f"{situation}_cpus", situation))
        lines.append(f"| {names[situation]} | {cpus:.3f} | {steps:,.0f} | {loss} |")
    return lines


def misses(study, result):
    """The figures that miss their bar, a line each."""
    if study == "neighbours":
        return [f"{key}: {result[key][1]} %, want less than {MOST_LOST:g}" for key in result
                if key.startswith("lost_percent") and result[key][1] >= MOST_LOST]
    return [f"a share of {row['cpus']:g}: off by {row['off_percent']:+} %, want at most {MOST_OFF:g}"
            for row in result["rows"] if abs(row["off_percent"]) > MOST_OFF]


def main():
    arguments = parse_arguments()
    path = arguments.data / f"{study_name(arguments)}.json"
    if arguments.tables:
        result = json.loads(path.read_text())
    else:
        result = {"machine": machine(), "seconds": arguments.seconds}
        result.update(measure_held(arguments) if arguments.study == "held" else measure_neighbours(arguments))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(result, indent=1) + "\n")
    lines = held_table(result) if arguments.study == "held" else neighbours_table(result)
    write_table(arguments.document, study_name(arguments), lines)
    print("\n".join(lines))
    missed = misses(arguments.study, result)
    for line in missed:
        print(f"MISSED: {line}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
