#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Torments a run for as long as you like, and checks that it neither leaks nor miscounts nor stops learning.

    scripts/soak.py --seconds 3600 --seed 1 --out docs/benchmarks/reliability

A coordinator, a learner and some actors train CartPole, or what --set says, while faults are injected one after the
other, sometimes two at once, chosen by --seed: kills of actors, learner and coordinator, actors that leave and join,
processes that are stopped for longer than their lease, links that are cut or slow, environments that fail, receipts
that get lost. After each fault the time is taken until all is well again. Meanwhile memory, file descriptors, threads
and metric series of the processes are recorded. In the last two fifths neither coordinator, learner nor the first actor
is killed, so that what they use can be seen to be flat. Every process records its history, which `skein check-history`
judges at the end. The step account must balance, no batch may have been accepted twice, nothing may be left
unrecovered, and the return must have risen. Writes OUT.md, OUT.json and OUT.csv (what the processes used, over time)
and prints the first; exit code 1: something did not hold.
"""

import argparse
import collections
import json
import pathlib
import random
import re
import shutil
import signal
import sys
import tempfile
import time
import traceback

from soak_cluster import Cluster
from soak_report import as_csv, as_markdown, describe_machine, judge_history, summarize

LEASE = 2.0
SETTINGS = ["env.id=CartPole-v1", "total_steps=1000000000", "rollout.num_envs=16", "rollout.envs_per_runner=4",
            "rollout.steps_per_iteration=2048", "model.normalize_observations=false", "ppo.lr=1.0e-4", "ppo.epochs=4",
            "ppo.minibatch_size=256", "ppo.entropy_coefficient=0.01", "ppo.normalize_advantages=true",
            "checkpoint.interval_steps=20480", "coordinator.heartbeat_seconds=0.5",
            f"coordinator.lease_seconds={LEASE}", "rollout.step_timeout_seconds=5", "rollout.env_rebuilds=1000"]
# What may be injected and how often, as weights.
WEIGHTS = {"kill actor": 6, "stop actor": 2, "actor leaves": 2, "actor joins": 2, "cut link": 4, "slow link": 2,
          "kill learner": 2, "kill coordinator": 2, "environment hangs": 1}
NOT_AT_THE_END = {"kill learner", "kill coordinator"}
RECOVERY_LIMIT = 90.0


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=3600)
    parser.add_argument("--seed", type=int, default=1, help="of the faults")
    parser.add_argument("--actors", type=int, default=4, help="that there are while nothing is wrong")
    parser.add_argument("--pause", type=float, default=3.0, help="mean seconds between a recovery and the next fault")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", dest="settings",
                        help="of the run, as for `skein train`; comes last, may be repeated: --set env.id=MyEnv-v0")
    parser.add_argument("--least-return", type=float,
                        help="that the last fifth must have on average; default: 1.5 times the first iteration's")
    parser.add_argument("--bin", type=pathlib.Path, default="build/release", help="folder of the programs")
    parser.add_argument("--out", type=pathlib.Path, help="path of the results without ending; default: only printed")
    parser.add_argument("--keep", action="store_true", help="keep logs and history, and say where they are")
    return parser.parse_args()


class Fault:
    """One that has been injected: when it is to be taken back, and how to tell that all is well."""

    def __init__(self, kind, heal_at=None, heal=None, well=None):
        self.kind, self.heal_at, self.heal, self.well = kind, heal_at, heal, well
        self.since = None  # Recovery is counted from here; from the healing where there is one.


class Soak:
    def __init__(self, options, folder):
        self.options, self.random = options, random.Random(options.seed)
        # Two of a thousand receipts get lost with their connection; half of them are sent again.
        receipts = f"receipt:drop@p=0.001,seed={options.seed};receipt:forget@p=0.001,seed={options.seed + 1}"
        self.cluster = Cluster(options.bin, folder, SETTINGS + options.settings, receipts)
        self.injected, self.recoveries = collections.Counter(), collections.defaultdict(list)
        self.failures = []
        self.usage = collections.defaultdict(list)  # By name and pid of the process: (time, usage).
        self.ended_by_itself = 0  # Actors, so that they are started again, as one whose environment hangs does.
        self.rolled_back = 0
        self.account = {}
        self.leaves = []
        self.next_sample = 0.0

    # ---- looking

    def fail(self, text):
        print(f"FAILED: {text}", flush=True)
        self.failures.append(text)

    def well(self, missing):
        """Everybody is a member, but for so many actors, and the learner trains."""
        status = self.cluster.status()
        if not status or status.get("state") != "RUN_STATE_TRAINING":
            return False
        roles = collections.Counter(member["role"] for member in status.get("members", []))
        actors = len(self.cluster.actors)
        return actors - missing <= roles["actor"] <= actors and roles["learner"] == 1

    def reported_env_steps(self):
        return int((self.cluster.status() or {}).get("progress", {}).get("env_steps", 0))

    def delivers(self, number):
        """A condition: this actor's next fragment has been accepted, or one of another in its place."""
        accepted = 'skein_actor_receipts_total{result="accepted"}'
        process = self.cluster.actors[number]
        before = process.metrics().get(accepted, 0.0)
        def has_delivered():
            now = self.cluster.actors[number]
            return now.metrics().get(accepted, 0.0) > (before if now is process else 0.0)
        return has_delivered

    def trains(self):
        """A condition: the learner has finished its next iteration."""
        iterations = "skein_learner_iterations_total"
        process = self.cluster.learner
        before = process.metrics().get(iterations, 0.0)
        return lambda: process.metrics().get(iterations, 0.0) > before

    def sample(self):
        now = time.monotonic()
        if now < self.next_sample:
            return
        self.next_sample = now + max(1.0, self.options.seconds / 1800)
        for process in self.cluster.processes():
            usage = process.usage()
            if usage and usage["series"]:
                self.usage[process.name, process.pid].append((now - self.begin, usage))
        status = self.cluster.status()
        if not status:
            return
        progress = status.get("progress", {})
        account = {fate: int(progress.get("account", {}).get(fate, 0))
                   for fate in ("collected", "trained", "stale", "rejected", "lost", "pending")}
        self.check_balance(account, "while it runs")

    def check_balance(self, account, when):
        self.account = account
        if account["collected"] != sum(account.values()) - account["collected"]:
            self.fail(f"the account does not balance {when}: {account}")

    def look_after(self):
        """Starts again what has ended by itself as its faults want it, as a supervisor does."""
        for number, process in list(self.cluster.actors.items()):
            if not process.alive():
                self.ended_by_itself += 1
                if process.popen.returncode != 75:
                    self.fail(f"{process.name} ended with code {process.popen.returncode}: {process.log()[-300:]}")
                self.cluster.start_actor(number)
        for name in ("coordinator", "learner"):
            process = getattr(self.cluster, name)
            if not process.alive():
                self.fail(f"{name} ended with code {process.popen.returncode}: {process.log()[-500:]}")
                getattr(self.cluster, f"start_{name}")()

    # ---- faults

    def inject(self, kind, target):
        cluster, rng = self.cluster, self.random
        now = time.monotonic()
        if kind == "kill actor":
            cluster.actors[target].kill()
            cluster.start_actor(target, faults=rng.choice(["", f"env:throw@p=0.0001,seed={rng.randrange(1000)},times=5",
                                                           f"env:nan@p=0.0001,seed={rng.randrange(1000)},times=5"]))
            return Fault(kind, well=self.delivers(target))
        if kind == "stop actor":
            cluster.actors[target].signal(signal.SIGSTOP)
            def go_on():
                cluster.actors[target].signal(signal.SIGCONT)
                return self.delivers(target)
            return Fault(kind, now + rng.uniform(0.5, 3 * LEASE), go_on)
        if kind == "actor leaves":
            process = cluster.actors[target]
            process.signal(signal.SIGTERM)
            code = process.wait(15)
            if code != 0:
                self.fail(f"{process.name} was asked to leave and ended with code {code}")
                process.kill()
            self.leaves.append(time.monotonic() - now)
            cluster.start_actor(target)
            return Fault(kind, well=self.delivers(target))
        if kind == "actor joins":
            number = cluster.start_actor()
            fault = Fault(kind, well=self.delivers(number))
            fault.guest = number
            return fault
        if kind in ("cut link", "slow link"):
            link = cluster.link_of[target]
            if kind == "cut link":
                link.cut()
            else:
                link.slow(rng.choice([16_000, 64_000, 256_000]), rng.choice([0.0, 0.02, 0.1]))
            def heal():
                link.heal()
                return self.delivers(target)
            return Fault(kind, now + rng.choice([0.5, 2.0, 5.0, 20.0]), heal)
        if kind == "environment hangs":
            cluster.actors[target].kill()
            cluster.start_actor(target, faults=f"env:hang@at={rng.randrange(1000, 20000)}")
            process = cluster.actors[target]
            def is_over():  # The supervisor of the actors has started another one, and that one delivers.
                other = cluster.actors[target]
                accepted = 'skein_actor_receipts_total{result="accepted"}'
                return other is not process and other.metrics().get(accepted, 0.0) > 0
            return Fault(kind, well=is_over)
        if kind == "kill learner":
            before = int(cluster.learner.metrics().get('skein_learner_env_steps_total{fate="trained"}', 0))
            cluster.learner.kill()
            cluster.start_learner()
            trains = self.trains()
            def goes_on():
                if not trains():
                    return False
                resumed = re.search(r"resumed from \S+ at (\d+) env steps", cluster.learner.log())
                fault.rolled_back = max(0, before - int(resumed.group(1) if resumed else 0))
                return True
            fault = Fault(kind, well=goes_on)
            return fault
        before = self.reported_env_steps()
        cluster.coordinator.kill()
        cluster.start_coordinator()
        return Fault(kind, well=lambda: self.reported_env_steps() > before)  # It hears of the learner's progress again.

    def round(self, at_the_end):
        """One or two faults, until all is well again."""
        kinds = [kind for kind in WEIGHTS if not (at_the_end and kind in NOT_AT_THE_END)]
        count = 2 if self.random.random() < 0.25 else 1
        chosen = self.random.choices(kinds, [WEIGHTS[kind] for kind in kinds], k=count)
        # The first actor is the one whose resources are looked at in the end.
        actors = [number for number in self.cluster.actors if number != 1 or not at_the_end]
        targets = self.random.sample(actors, len(chosen))
        if len(set(chosen)) < len(chosen) and chosen[0] in NOT_AT_THE_END:
            chosen = chosen[:1]
        faults = []
        for kind, target in zip(chosen, targets):
            self.injected[kind] += 1
            since = time.monotonic()
            faults.append(self.inject(kind, target))
            faults[-1].since = since
        open_faults, until = list(faults), time.monotonic() + RECOVERY_LIMIT
        while open_faults and time.monotonic() < until:
            now = time.monotonic()
            for fault in list(open_faults):
                if fault.heal_at is not None and now >= fault.heal_at:
                    fault.heal_at, fault.since = None, now
                    fault.well = fault.heal()
            waiting = [fault for fault in open_faults if fault.heal_at is not None]
            well = len(waiting) < len(open_faults) and self.well(missing=len(waiting))
            for fault in [fault for fault in open_faults if fault not in waiting]:
                if well and fault.well():
                    self.recoveries[fault.kind].append(time.monotonic() - fault.since)
                    self.rolled_back += getattr(fault, "rolled_back", 0)
                    open_faults.remove(fault)
            self.look_after()
            self.sample()
            time.sleep(0.05)
        for fault in open_faults:
            self.fail(f"{fault.kind}: not well after {RECOVERY_LIMIT:.0f} s")
            if fault.heal_at is not None:
                fault.heal()
        for fault in faults:
            if hasattr(fault, "guest"):
                guest = self.cluster.actors[fault.guest]
                guest.signal(signal.SIGTERM)
                if guest.wait(15) != 0:
                    self.fail(f"{guest.name} was asked to leave and did not end in order")
                    guest.kill()
                self.cluster.remove_actor(fault.guest)
        took = ", ".join(f"{fault.kind} {self.recoveries[fault.kind][-1]:.1f} s" for fault in faults
                         if fault not in open_faults)
        print(f"{time.monotonic() - self.begin:7.1f} s  {took}", flush=True)

    def pause(self):
        until = time.monotonic() + self.random.uniform(0.3, 1.7) * self.options.pause
        while time.monotonic() < until:
            self.look_after()
            self.sample()
            time.sleep(0.1)

    # ---- the whole

    def run(self):
        cluster = self.cluster
        self.begin = time.monotonic()
        cluster.start_coordinator()
        cluster.coordinator.find_in_log(r"(coordinator listening)")
        cluster.start_learner()
        for _ in range(self.options.actors):
            cluster.start_actor()
        until = time.monotonic() + RECOVERY_LIMIT
        while not self.well(0) and time.monotonic() < until:
            self.sample()
            time.sleep(0.1)
        while time.monotonic() - self.begin < self.options.seconds:
            self.round(time.monotonic() - self.begin > 0.6 * self.options.seconds)
            self.pause()
        self.stop()

    def stop(self):
        cluster = self.cluster
        cluster.learner.signal(signal.SIGTERM)
        if cluster.learner.wait(30) != 0:
            self.fail(f"the learner did not stop in order: {cluster.learner.log()[-500:]}")
        for process in cluster.actors.values():
            if process.wait(15) != 0:
                self.fail(f"{process.name} did not end in order when the run was stopped")
        self.next_sample = 0.0
        self.sample()
        if self.account.get("pending") != 0:
            self.fail(f"steps are pending after the end: {self.account}")
        cluster.coordinator.signal(signal.SIGTERM)
        if cluster.coordinator.wait(10) != 0:
            self.fail("the coordinator did not stop in order")


def main():
    options = parse_arguments()
    folder = pathlib.Path(tempfile.mkdtemp(prefix="skein-soak-"))
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # So that nothing is left running.
    machine = describe_machine(options.bin)
    soak = Soak(options, folder)
    try:
        try:
            soak.run()
        except Exception:  # What has been seen until then is worth a report.
            soak.fail("the soak broke off: " + traceback.format_exc(limit=-2).strip().replace("\n", " "))
        soak.cluster.kill_all()
        summary = summarize(soak, WEIGHTS, judge_history(soak), machine)
    finally:
        soak.cluster.kill_all()
        if options.keep:
            print(f"logs and history: {folder}")
        else:
            shutil.rmtree(folder, ignore_errors=True)
    text = as_markdown(summary, options.out.name if options.out else "")
    print(text)
    if options.out:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.with_suffix(".json").write_text(json.dumps(summary, indent=1) + "\n")
        options.out.with_suffix(".csv").write_text(as_csv(soak.usage, options.seconds))
        options.out.with_suffix(".md").write_text(text)
    print(summary["verdict"], flush=True)
    return 1 if summary["failures"] else 0


if __name__ == "__main__":
    sys.exit(main())
