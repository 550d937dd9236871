#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Lets two learner ranks with TLS and a token train for hours while actors come and go, and checks that nothing grows.

    scripts/long_soak.py --hours 4 --out docs/benchmarks/long-soak

Latency-v0 sleeps in its steps, so the run needs about a tenth of a core and can go on beside other work. Every few
seconds an actor is killed (-9), is drained, gets SIGTERM, or another one joins, at random from --seed; actor-1 stays.
Every ten seconds the step account must balance; every minute the memory, file descriptors, threads and metric series of
every process are taken. SIGTERM and SIGINT end it early and in order. Writes OUT.md and OUT.csv and prints the table;
exit code 1: something did not hold (see `judge`). For faults of coordinator, learners and links: scripts/soak.py.

A soak that was killed together with all its processes, as by a machine that stops, goes on in its folder with
--resume FOLDER: another part of the same run, from its last checkpoint. --hours is then what all parts have together.
"""

import argparse
import collections
import json
import os
import pathlib
import random
import shutil
import signal
import ssl
import statistics
import subprocess
import sys
import tempfile
import time
import traceback

from soak_cluster import Process, free_ports, http_get
from soak_report import ALLOWED_GROWTH, TITLES, describe_machine

RANKS = 2
SETTINGS = ["env.id=Latency-v0", "env.latency.step_ms=5", "total_steps=1000000000", "rollout.num_envs=32",
            "rollout.envs_per_runner=4", "rollout.steps_per_iteration=2048", "ppo.epochs=2", "ppo.minibatch_size=512",
            "checkpoint.interval_steps=40960"]
FATES = ("collected", "trained", "stale", "rejected", "lost", "pending")
STATE = "soak.json"  # What is needed to go on, written with each sample.
LOOK_SECONDS, SAMPLE_SECONDS, START_SECONDS = 10, 60, 60


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hours", type=float, default=4)
    parser.add_argument("--seed", type=int, default=1, help="of what happens to actors")
    parser.add_argument("--actors", type=int, default=4, help="on average")
    parser.add_argument("--pause", type=float, default=8, help="mean seconds from one event to the next")
    parser.add_argument("--bin", type=pathlib.Path, default="build/release", help="folder of the programs")
    parser.add_argument("--out", type=pathlib.Path, help="path of the results without ending; default: only printed")
    parser.add_argument("--resume", type=pathlib.Path, help="folder of a soak that was killed, which goes on")
    parser.add_argument("--keep", action="store_true", help="keep logs and history, and say where they are")
    options = parser.parse_args()
    if options.resume and not (options.resume / STATE).exists():
        parser.error(f"--resume: there is no {options.resume / STATE}, want the folder that a soak has printed")
    return options


class LongSoak:
    def __init__(self, options, folder):
        self.options, self.folder = options, folder
        self.credentials, self.history = folder / "credentials", folder / "history"
        if not options.resume:
            self.history.mkdir()
            subprocess.run([options.bin / "skein", "certs", "init", self.credentials], check=True,
                           stdout=subprocess.DEVNULL)
        tls = ssl.create_default_context(cafile=str(self.credentials / "ca.crt"))
        tls.check_hostname = False  # The certificate is for metrics.skein, not for the loopback's address.
        self.access = (tls, (self.credentials / "token").read_text().strip())
        self.grpc, self.http = free_ports(2)
        self.coordinator, self.learners, self.actors, self.next_actor = None, [], {}, 1
        self.events, self.failures = collections.Counter(), []
        self.looks = self.imbalances = self.unanswered = 0
        self.parts = []  # One, and another for each time that it was resumed: (second of its start, machine, samples).
        self.account, self.status, self.stopped = {}, {}, False
        earlier = 0.0
        if options.resume:
            state = json.loads((folder / STATE).read_text())
            earlier, self.parts, self.next_actor = state["seconds"], state["parts"], state["next_actor"]
            self.events.update(state["events"])
            self.looks, self.imbalances, self.unanswered = (state[one] for one in ("looks", "imbalances", "unanswered"))
            self.failures = state["failures"]
        self.random = random.Random(f"{options.seed}, part {len(self.parts)}" if self.parts else options.seed)
        self.samples = {}  # Of this part, by name: [seconds since the start of all, usage].
        self.parts.append([earlier, describe_machine(options.bin), self.samples])
        self.begin = time.monotonic() - earlier

    def elapsed(self):
        return time.monotonic() - self.begin

    def write_state(self):
        state = {one: getattr(self, one) for one in
                 ("parts", "next_actor", "events", "looks", "imbalances", "unanswered", "failures")}
        temporary = self.folder / f"{STATE}.tmp"
        temporary.write_text(json.dumps({"seconds": self.elapsed(), **state}))
        temporary.replace(self.folder / STATE)

    # ---- processes

    def variables(self, role):
        files = {"TOKEN_FILE": "token", "TLS_CERT": f"{role}.crt", "TLS_KEY": f"{role}.key", "TLS_CA": "ca.crt"}
        return {f"SKEIN_{name}": str(self.credentials / file) for name, file in files.items()}

    def start(self, name, program, role, arguments, environment=None):
        variables = {"SKEIN_HISTORY": str(self.history), **self.variables(role), **(environment or {})}
        command = [str(self.options.bin / program), *arguments, "--exit-with-parent"]
        return Process(name, command, self.folder, variables, self.access)

    def start_all(self):
        address, run = f"127.0.0.1:{self.grpc}", str(self.folder / "run")
        settings = [word for setting in SETTINGS for word in ("--set", setting)]
        self.coordinator = self.start("coordinator", "skein-coordinator", "coordinator", [
            *settings, "--listen", address, "--http", f"127.0.0.1:{self.http}", "--run-id", "soak", "--run-dir", run])
        self.coordinator.metrics_address = f"127.0.0.1:{self.http}"
        self.coordinator.find_in_log("(coordinator listening)")
        for rank in range(RANKS):
            place = {"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(RANKS), "MASTER_ADDR": "127.0.0.1",
                     "MASTER_PORT": "1"}
            self.learners.append(self.start(f"rank-{rank}", "skein-learner", "learner",
                                            ["--coordinator", address, "--run-dir", run], place))
        self.staying_actor = f"actor-{self.next_actor}"
        for _ in range(self.options.actors):
            self.start_actor()

    def start_actor(self):
        name = f"actor-{self.next_actor}"
        self.next_actor += 1
        self.actors[name] = self.start(name, "skein-actor", "actor", ["--coordinator", f"127.0.0.1:{self.grpc}"])

    def processes(self):
        return [self.coordinator, *self.learners, *self.actors.values()]

    # ---- what happens to actors

    def end_in_order(self, name, kind):
        process = self.actors.pop(name)
        if kind == "drain":
            process.find_in_log("actor joined member=(\\S+)")
            self.look()
            member = next(one["member_id"] for one in self.status["members"] if int(one["pid"]) == process.pid)
            ended = subprocess.run([self.options.bin / "skein", "drain", member, "--address", f"127.0.0.1:{self.grpc}"],
                                   env={**os.environ, **self.variables("client")}, capture_output=True, text=True)
            if ended.returncode != 0:
                self.fail(f"skein drain {member} ended with code {ended.returncode}: {ended.stderr.strip()}")
        else:
            process.signal(signal.SIGTERM)
        code = process.wait(60)
        if code != 0:
            self.fail(f"{name} was to end ({kind}) and has code {code}")
            process.kill()

    def event(self):
        """Actors number about options.actors; the first of this part is never ended."""
        ends = [name for name in self.actors if name != self.staying_actor]
        kind = self.random.choice(("kill", "drain", "terminate") if len(ends) >= self.options.actors else
                                  ("join",) if len(ends) < self.options.actors - 1 else
                                  ("kill", "drain", "terminate", "join"))
        self.events[kind] += 1
        if kind == "join":
            self.start_actor()
        elif kind == "kill":
            self.actors.pop(self.random.choice(ends)).kill()
        else:
            self.end_in_order(self.random.choice(ends), kind)
        for name, process in list(self.actors.items()):
            if not process.alive():
                self.fail(f"{name} ended by itself with code {process.popen.returncode}: {process.log()[-300:]}")
                del self.actors[name]
        for process in (self.coordinator, *self.learners):
            if not process.alive():
                raise RuntimeError(f"{process.name} ended with code {process.popen.returncode}: {process.log()[-500:]}")

    # ---- looking

    def fail(self, text):
        print(f"FAILED: {text}", flush=True)
        self.failures.append(text)

    def look(self):
        self.looks += 1
        text = http_get(f"127.0.0.1:{self.http}", "/api/status", timeout=10, access=self.access)
        if not text:
            self.unanswered += 1
            return
        self.status = json.loads(text)
        account = self.status.get("progress", {}).get("account", {})
        self.account = {fate: int(account.get(fate, 0)) for fate in FATES}
        if 2 * self.account["collected"] != sum(self.account.values()):
            self.imbalances += 1
            self.fail(f"the account does not balance: {self.account}")

    def sample(self):
        line, seconds = [], self.elapsed()
        for process in self.processes():
            usage = process.usage()
            if usage and usage["series"]:
                self.samples.setdefault(process.name, []).append((seconds, usage))
                line.append(f"{process.name} {usage['rss_mib']:.0f}")
        print(f"{seconds / 60:6.1f} min  {self.account.get('trained', 0)} steps trained  {sum(self.events.values())} events"
              f"  RSS in MiB: {', '.join(line)}", flush=True)
        self.write_state()

    # ---- the whole

    def run(self):
        self.start_all()
        start, _, _ = self.parts[-1]
        next_look, next_sample, next_event = start + LOOK_SECONDS, start + START_SECONDS, start + START_SECONDS
        while not self.stopped and self.elapsed() < 3600 * self.options.hours:
            if self.elapsed() >= next_look:
                next_look = self.elapsed() + LOOK_SECONDS
                self.look()
            if self.elapsed() >= next_sample:
                next_sample = self.elapsed() + SAMPLE_SECONDS
                self.sample()
            if self.elapsed() >= next_event:
                next_event = self.elapsed() + self.random.uniform(0.3, 1.7) * self.options.pause
                self.event()
            time.sleep(0.25)
        self.sample()
        self.stop()

    def stop(self):
        for process in self.learners:
            process.signal(signal.SIGTERM)
        for process in (*self.learners, *self.actors.values()):
            code = process.wait(60)
            if code != 0:
                self.fail(f"{process.name} was to end and has code {code}")
        self.look()
        if self.account.get("pending") != 0:
            self.fail(f"steps are pending after the end: {self.account}")
        self.coordinator.signal(signal.SIGTERM)
        if self.coordinator.wait(20) != 0:
            self.fail("the coordinator did not end in order")

    def kill_all(self):
        for process in self.processes():
            if process is not None and process.alive():
                process.kill()


def staying(samples):
    """Whom nobody ended in this part: the coordinator, the ranks, and the actor that was started first."""
    actors = [name for name in samples if name.startswith("actor-")]
    return [name for name in samples if not name.startswith("actor-")] + actors[:1]


def growth(start, samples):
    """Of one part, by name and measure: at its start, after a quarter, half, three quarters of it, and at its end; the
    median of up to five samples each, so that one look into a busy moment does not count."""
    end = samples["coordinator"][-1][0]
    table = {}
    for name in staying(samples):
        for measure in TITLES:
            points = [(seconds, usage[measure]) for seconds, usage in samples[name]]
            table[name, measure] = [statistics.median(value for _, value in sorted(
                points, key=lambda point: abs(point[0] - start - share * (end - start)))[:5])
                for share in (0, 0.25, 0.5, 0.75, 1)]
    return table


def judge(soak, tables):
    """Grown: more than ALLOWED_GROWTH from a quarter of a part to its end."""
    for table in tables:
        for (name, measure), values in table.items():
            share, amount = ALLOWED_GROWTH[measure]
            if values[-1] > values[1] * (1 + share) + amount:
                soak.fail(f"{name}: {TITLES[measure]} grew from {values[1]:.1f} to {values[-1]:.1f}")
    if soak.unanswered > 0.01 * soak.looks:
        soak.fail(f"{soak.unanswered} of {soak.looks} looks at the status were not answered in 10 s")
    ended = subprocess.run([soak.options.bin / "skein", "check-history", soak.history], capture_output=True, text=True)
    if ended.returncode != 0:
        soak.fail(f"the history: {ended.stdout.strip()[-500:]} {ended.stderr.strip()[-500:]}")
    return ended.stdout.strip()


def as_markdown(soak, tables, history):
    lines = ["# A long soak with two ranks and TLS", ""]
    for number, (start, machine, samples) in enumerate(soak.parts):
        command = f"scripts/long_soak.py --hours {soak.options.hours:g} --seed {soak.options.seed}"
        lines += [f"`{command}{' --resume FOLDER' if number else ''}`, {machine['started']}, {machine['cores']} cores "
                  f"({machine['cpu']}), load {machine['load_average']:.1f} at the start, {machine['programs']}, "
                  f"{machine['commit']}: {(samples['coordinator'][-1][0] - start) / 3600:.2f} hours.", ""]
    if len(soak.parts) > 1:
        lines += ["Between two parts all processes were killed at once, this script too.", ""]
    lines += [f"{sum(soak.events.values())} events ("
              + ", ".join(f"{count} {kind}" for kind, count in sorted(soak.events.items())) + f"); {soak.looks} looks, "
              f"{soak.imbalances} imbalances, {soak.unanswered} unanswered. Steps: "
              + ", ".join(f"{fate} {count:,}" for fate, count in soak.account.items()) + ".", ""]
    for number, table in enumerate(tables):
        name = f"part {number + 1}" if len(tables) > 1 else "process"
        lines += [f"| {name} | | start | 1/4 | 1/2 | 3/4 | end |", "|---|---|---|---|---|---|---|"]
        for (name, measure), values in table.items():
            lines.append(f"| {name} | {TITLES[measure]} | " + " | ".join(
                f"{value:.1f}" if measure == "rss_mib" else f"{value:.0f}" for value in values) + " |")
        lines.append("")
    most = max((usage["rss_mib"] for _, _, samples in soak.parts for name, points in samples.items()
                if name not in staying(samples) for _, usage in points), default=0)
    lines += [f"Actors that came and went took {most:.0f} MiB at most. {history}", ""]
    lines += [f"- {failure}" for failure in soak.failures] or ["Everything held."]
    return "\n".join(lines) + "\n"


def as_csv(parts):
    rows = [f"{seconds:.0f},{name},{usage['rss_mib']:.1f},{usage['fds']},{usage['threads']},{usage['series']}"
            for _, _, samples in parts for name, points in samples.items() for seconds, usage in points]
    return "\n".join(["seconds,process,rss_mib,fds,threads,series", *rows]) + "\n"


def main():
    options = parse_arguments()
    folder = options.resume or pathlib.Path(tempfile.mkdtemp(prefix="skein-long-soak-"))
    print(f"if it is killed, it goes on with --resume {folder}", flush=True)
    soak = LongSoak(options, folder)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: setattr(soak, "stopped", True))
    try:
        try:
            soak.run()
            (folder / STATE).unlink()  # It has ended in order: there is nothing to resume.
        except Exception:  # What has been seen until then is worth a report.
            soak.fail("the soak broke off: " + traceback.format_exc(limit=-2).strip().replace("\n", " "))
        soak.kill_all()
        tables = [growth(start, samples) for start, _, samples in soak.parts]
        text = as_markdown(soak, tables, judge(soak, tables))
    finally:
        soak.kill_all()
        if options.keep:
            print(f"logs and history: {folder}")
        else:
            shutil.rmtree(folder, ignore_errors=True)
    print(text)
    if options.out:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.with_suffix(".md").write_text(text)
        options.out.with_suffix(".csv").write_text(as_csv(soak.parts))
    return 1 if soak.failures else 0


if __name__ == "__main__":
    sys.exit(main())
