#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tells how long actors take from the start of their process until the coordinator's log says that they have joined.

    scripts/actor_start.py --starts 20           one after the other: median, smallest and largest
    scripts/actor_start.py --together 256        all at once: until the last has joined, and the CPU time of all

The run is one of Latency-v0, whose environments cost nothing. No learner is there: actors join before they look for one.
"""
import argparse
import os
import pathlib
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import time

CONFIG = """
env: {id: Latency-v0}
rollout: {num_envs: 256, envs_per_runner: 1, steps_per_iteration: 4096}
"""


def fail(why):
    sys.exit(f"actor_start: {why}")


class Coordinator:
    """skein-coordinator of a run of its own; its log is read line by line."""

    def __init__(self, binaries, folder):
        config = pathlib.Path(folder, "run.yaml")
        config.write_text(CONFIG)
        self.process = subprocess.Popen(
            [binaries / "skein-coordinator", f"--config={config}", "--listen=127.0.0.1:0", "--http=127.0.0.1:0"],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        address = re.search(r"grpc=(\S+)", self.process.stdout.readline())
        if address is None:
            fail(f"the coordinator did not start: {self.process.stderr.read()[-300:]}")
        self.address = address.group(1)

    def wait_for_joins(self, count):
        for line in self.process.stderr:
            count -= " joined from " in line
            if count == 0:
                return
        fail("the coordinator ended")


def end(processes):
    for process in processes:
        process.terminate()
    for process in processes:
        process.wait()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=pathlib.Path, default="build/release", help="folder of the programs")
    parser.add_argument("--starts", type=int, default=0)
    parser.add_argument("--together", type=int, default=0)
    options = parser.parse_args()
    if options.starts < 1 and options.together < 1:
        parser.error("give --starts or --together")
    os.environ["SKEIN_LOG"] = "info"
    with tempfile.TemporaryDirectory() as folder:
        coordinator = Coordinator(options.bin, folder)

        def start():
            return subprocess.Popen([options.bin / "skein-actor", f"--coordinator={coordinator.address}", "--runners=1"],
                                    stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

        try:
            seconds = []
            for _ in range(options.starts):
                begin = time.monotonic()
                actor = start()
                coordinator.wait_for_joins(1)
                seconds.append(time.monotonic() - begin)
                end([actor])
            if seconds:
                print(f"{len(seconds)} starts: joined after {1000 * statistics.median(seconds):.1f} ms "
                      f"({1000 * min(seconds):.1f} to {1000 * max(seconds):.1f})")
            if options.together > 0:
                begin = time.monotonic()
                actors = [start() for _ in range(options.together)]
                coordinator.wait_for_joins(options.together)
                joined = time.monotonic() - begin
                before = resource.getrusage(resource.RUSAGE_CHILDREN)
                end(actors)
                after = resource.getrusage(resource.RUSAGE_CHILDREN)
                cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
                print(f"{options.together} at once: all joined after {joined:.1f} s; {cpu:.1f} s of CPU to their end")
        finally:
            end([coordinator.process])


main()
