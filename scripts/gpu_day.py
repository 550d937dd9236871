#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""One command for a day with a GPU: builds the learner's core, runs its tests, measures, and writes down what it saw.

    scripts/gpu_day.sh --out gpu-day

Writes OUT.json (each step with its command, what it returned and how long it took, and samples of the GPUs) after
every step, and OUT.md (tables) at the end. Each step has a time of its own, and all measurements together --minutes; what does not fit
is left out and named. A step that fails is noted, and the next one is done. Ends with 1 if any step failed.

With an OUT.json of an earlier day on such a GPU, it builds and tests again and measures only what is missing there.

The steps: build, tests, the device's own limit (skein bench device), updates of one learner with three sizes of the
network, gradient steps of skein fit, UAV worlds stepped and trained on, directions of ars on the device, ranks: one,
and as many as there are GPUs; and, as far as time is left, updates by every arithmetic, size of the network and minibatch. A GPU is as busy as the
measurement itself says, or else as nvidia-smi says of the busiest --seconds of the step.

    scripts/gpu_day.sh --out /tmp/dry --dry-run --bench build/release/skein-bench

measures with small sizes on the CPU and builds nothing: to see that all of it works before the GPU is there.
"""

import argparse
import json
import os
import pathlib
import shutil
import signal
import statistics
import subprocess
import sys
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
BUILD_SECONDS, TEST_SECONDS, STEP_SECONDS = 1800, 600, 90
LEAST_SECONDS = 10  # A measurement for which less is left is left out.
LINES_KEPT = 400
SAMPLED = ("utilization.gpu", "memory.used", "power.draw")


def parse_arguments(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", required=True, type=pathlib.Path, help="path of the results without ending")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/cuda", help="folder of the build")
    parser.add_argument("--bench", type=pathlib.Path, help="a skein-bench that is there: nothing is built or tested")
    parser.add_argument("--device", default="cuda:0", help="cuda:N or cpu")
    parser.add_argument("--gpus", type=int, help="for the ranks; default: as many as nvidia-smi lists")
    parser.add_argument("--minutes", type=float, default=20, help="of all measurements")
    parser.add_argument("--step-seconds", type=float, default=STEP_SECONDS, help="most of one measurement")
    parser.add_argument("--seconds", type=float, default=3, help="of each rate")
    parser.add_argument("--dry-run", action="store_true", help="small sizes on the CPU")
    parser.add_argument("--only", default="", help=f"of {', '.join(GROUPS)}; comma-separated")
    options = parser.parse_args(arguments)
    for group in options.only.split(",") if options.only else []:
        if group not in GROUPS:
            parser.error(f"--only: got {group}, want some of {', '.join(GROUPS)}")
    if options.dry_run:
        options.device, options.seconds, options.gpus = "cpu", min(options.seconds, 0.05), 0
    return options


class Gpus:
    """What nvidia-smi, which asks NVML, says of all GPUs twice a second, while steps run."""

    def __init__(self):
        self.names, self.samples, self._process = [], [], None
        if shutil.which("nvidia-smi") is None:
            return
        listed = subprocess.run(["nvidia-smi", "--query-gpu=name,memory.total,driver_version", "--format=csv,noheader"],
                                capture_output=True, text=True, check=False)
        if listed.returncode != 0:
            return
        self.names = listed.stdout.strip().splitlines()
        self._process = subprocess.Popen(
            ["nvidia-smi", "--query-gpu=index," + ",".join(SAMPLED), "--format=csv,noheader,nounits", "-lms", "500"],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        for line in self._process.stdout:
            words = [word.strip() for word in line.split(",")]
            try:
                self.samples.append((time.monotonic(), int(words[0]), *map(float, words[1:])))
            except ValueError:  # "[N/A]": this GPU does not tell.
                pass

    def between(self, begin, end, window):
        """Means of the busiest GPU over its busiest `window` seconds: not of starting and of making data."""
        of_gpu = {}
        for when, gpu, *values in list(self.samples):
            if begin <= when <= end:
                of_gpu.setdefault(gpu, []).append((when, values))
        means = []
        for rows in of_gpu.values():
            for first, _ in rows:
                inside = [values for when, values in rows if first <= when <= first + window]
                if first == rows[0][0] or rows[-1][0] >= first + window:
                    means.append([statistics.mean(column) for column in zip(*inside)])
        if not means:
            return {}
        return dict(zip(("busy_percent", "memory_mib", "watts"), map(lambda x: round(x, 1), max(means))))

    def stop(self):
        if self._process is not None:
            self._process.terminate()


class Day:
    """Runs steps and keeps what they say."""

    def __init__(self, options):
        self.options = options
        self.gpus = Gpus()
        self.commit = subprocess.run(["git", "describe", "--always", "--dirty"], cwd=ROOT, capture_output=True,
                                     text=True, check=False).stdout.strip()
        self.steps = []
        self.earlier = {}  # Measurements that are there already, by group and name.
        if pathlib.Path(f"{options.out}.json").exists():
            before = json.loads(pathlib.Path(f"{options.out}.json").read_text())
            models = [[gpu.split(",")[0] for gpu in gpus] for gpus in (before["gpus"], self.gpus.names)]
            if models[0] != models[1]:
                self.gpus.stop()
                sys.exit(f"gpu_day: {options.out}.json was measured with GPUs {models[0]}, here are {models[1]}; want "
                         "another --out")
            self.earlier = {(step["group"], step["name"]): step for step in before["steps"] if "report" in step}
        self.deadline = None  # Of the measurements.

    def step(self, group, name, command, seconds, wants_json=True, **facts):
        """Runs a command for at most `seconds`; returns its JSON, or None if it failed or there is no time left."""
        if (group, name) in self.earlier:
            self.steps.append(self.earlier[group, name])
            return self.earlier[group, name]["report"]
        step = {"group": group, "name": name, "command": " ".join(map(str, command)), "commit": self.commit, **facts}
        self.steps.append(step)
        if self.deadline is not None and time.monotonic() > self.deadline - LEAST_SECONDS:
            step["left_out"] = "no time was left"
            return None
        print(f"gpu_day: {group}: {name}", file=sys.stderr, flush=True)
        begin = time.monotonic()
        # A session of its own, so that what the command has started ends with it.
        out = ""
        try:
            process = subprocess.Popen([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                       text=True, cwd=ROOT, start_new_session=True)
        except OSError as error:
            step["failed"] = f"cannot be started: {error.strerror}"
        else:
            try:
                out, err = process.communicate(timeout=seconds)
                if process.returncode != 0:
                    words = (err.strip() or out.strip() or "it says nothing").splitlines()
                    step["failed"] = f"exit code {process.returncode}: {words[-1]}"
                    step["output"] = out.splitlines()[-LINES_KEPT:]  # Of ctest: which tests failed.
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.communicate()
                step["failed"] = f"took longer than {seconds:.0f} s"
        end = time.monotonic()
        step.update(seconds=round(end - begin, 2), **self.gpus.between(begin, end, self.options.seconds))
        report = None
        if "failed" not in step and wants_json:
            try:
                report = json.loads(out)
                step["report"] = {key: report[key] for key in ("summary", "rows")}
                step.setdefault("machine", report["machine"])
            except (ValueError, KeyError) as error:
                step["failed"] = f"its answer is not what was expected: {error}"
        if "failed" in step:
            print(f"gpu_day: {group}: {name}: {step['failed']}", file=sys.stderr, flush=True)
        self.write()
        return None if "failed" in step else report

    def bench(self, group, name, *arguments, **facts):
        command = [self.options.bench, *arguments, "--json"]
        left = self.deadline - time.monotonic()
        return self.step(group, name, command, min(self.options.step_seconds, max(1, left)), **facts)

    def build(self):
        folder = self.options.build
        torch = subprocess.run(["python3", "-c", "import torch; print(torch.utils.cmake_prefix_path)"],
                               capture_output=True, text=True, check=False).stdout.strip()
        self.step("build", "libraries", ["scripts/fetch_core_dependencies.sh"], BUILD_SECONDS, wants_json=False)
        configure = ["cmake", "-G", "Ninja", "-S", ROOT, "-B", folder, "-DCMAKE_BUILD_TYPE=Release",
                     "-DSKEIN_CORE_ONLY=ON"] + ([f"-DCMAKE_PREFIX_PATH={torch}"] if torch else [])
        self.step("build", "configure", configure, BUILD_SECONDS, wants_json=False)
        self.step("build", "build", ["ninja", "-C", folder], BUILD_SECONDS, wants_json=False)
        self.options.bench = folder / "skein-bench"
        if not self.built():
            return
        jobs = max(4, (os.cpu_count() or 1) // 2)
        # Not all of Torch's threads in each of them.
        self.step("tests", "core", ["env", "OMP_NUM_THREADS=2", "ctest", "--test-dir", folder, "--output-on-failure", "-j",
                                    jobs], TEST_SECONDS, wants_json=False)

    def built(self):
        """Without this a program of an earlier commit would be measured in the name of this one."""
        return not any("failed" in step for step in self.steps if step["group"] == "build")

    def write(self):
        options = {name: str(value) for name, value in vars(self.options).items()}
        result = {"options": options, "commit": self.commit, "gpus": self.gpus.names, "steps": self.steps}
        temporary = pathlib.Path(f"{self.options.out}.json.tmp")
        temporary.write_text(json.dumps(result, indent=1) + "\n")
        temporary.replace(f"{self.options.out}.json")


# Arithmetic of updates: name, settings, and whose peak they are measured against.
ARITHMETIC = (("fp32", [], "fp32_flops"),
              ("TF32", ["learner.tf32=true"], "tf32_flops"),
              ("bf16", ["learner.precision=bf16"], "bf16_flops"),
              ("fp32, graph", ["learner.cuda_graph=true"], "fp32_flops"),
              ("TF32, graph", ["learner.tf32=true", "learner.cuda_graph=true"], "tf32_flops"),
              ("bf16, graph", ["learner.precision=bf16", "learner.cuda_graph=true"], "bf16_flops"))


# Of an update, as in configs/study.yaml: each batch comes from the host and is trained on so often.
EPOCHS = 5
# A model of log keys, and how many tokens a second one H100 is to train on.
SEQUENCES = {"vocabulary": 10_000, "embedding": 128, "hidden": 256, "layers": 2, "length": 512, "batch-size": 256}
SMALL_SEQUENCES = {"vocabulary": 50, "embedding": 16, "hidden": 16, "layers": 2, "length": 8, "batch-size": 8}
SEQUENCES_MARK = 2_600_000
GROUPS = ("device", "learner", "fit", "stepping", "training", "ars", "ranks")
# Agent-steps a second of UAVs stepped as tensors; the share of the time that a GPU is busy with directions.
AGENT_STEPS_MARK = 40_000_000
BUSY_MARK = "90 %"


def settings(values):
    return [word for value in values for word in ("--set", value)]


def measure(day):
    options, dry = day.options, day.options.dry_run
    wanted = options.only.split(",") if options.only else []
    common = ["--rounds", "1", "--seconds", options.seconds]
    device = ["--device", options.device]
    cpu = options.device == "cpu"

    def does(group):
        return not wanted or group in wanted

    if does("device"):
        day.bench("device", "products and copies", "device", "--seconds", options.seconds, *device)
    def learner(arithmetic, parameters, minibatch, batch):
        name, values, peak = arithmetic
        day.bench("learner", f"{name}, {parameters:,} parameters, minibatches of {minibatch:,}", "learner", "--env",
                  "HalfCheetah-v5", "--parameters", parameters, "--batch", batch, "--minibatch", minibatch, *device,
                  *common, *settings([f"ppo.epochs={EPOCHS}", *values]), arithmetic=name, peak=peak,
                  parameters=parameters, minibatch=minibatch)

    sizes = [1000] if dry else [10_000, 100_000, 1_000_000, 10_000_000]
    batches = [(64, 256)] if dry else [(65536, 131072), (8192, 65536), (1024, 16384)]
    every = [(arithmetic, parameters, *batch) for batch in batches
             for arithmetic in (ARITHMETIC[:1] if cpu else ARITHMETIC) for parameters in sizes]
    # Small, middle and large networks, plain and with all that a GPU has for speed.
    first = [(arithmetic, parameters, *batch) for arithmetic, parameters, *batch in every
             if arithmetic in (ARITHMETIC[0], ARITHMETIC[-1]) and parameters != 100_000 and tuple(batch) == batches[0]]
    for one in first if does("learner") else []:
        learner(*one)
    if does("fit"):
        for precision in ("fp32",) if cpu else ("fp32", "bf16"):
            model = SMALL_SEQUENCES if dry else SEQUENCES
            flags = [word for name, value in model.items() for word in (f"--{name}", value)]
            day.bench("fit", f"LSTM {model['hidden']} x {model['layers']}, {precision}", "fit", *flags, *device, *common,
                      *settings([f"train.precision={precision}"]), precision=precision)
    for group, more in (("stepping", []), ("training", ["--train"])):
        for worlds in ([16] if dry else [1024, 4096, 16384, 65536]) if does(group) else []:
            values = [f"ppo.minibatch_size={worlds * 8}", "ppo.epochs=2"] if more else []
            day.bench(group, f"UavNavigate-v0, {worlds:,} worlds", "tensor", "--env", "UavNavigate-v0", "--worlds",
                      worlds, "--steps", 8 if dry else 32, *device, *common, *more, *settings(values), worlds=worlds)
    if does("ars"):
        dirs, worlds = (2, 4) if dry else (64, 1024)
        for env in ("CartPole-v1", "UavNavigate-v0"):
            for policy in ("linear", "mlp"):
                day.bench("ars", f"{env}, {policy}", "tensor", "--env", env, "--algorithm", "ars", "--dirs", dirs,
                          "--worlds", worlds, *device, *common, *settings([f"model.policy={policy}"] +
                          (["env.max_episode_steps=20"] if dry else [])), dirs=dirs, worlds=worlds)
    if does("ranks"):
        gpus = options.gpus if options.gpus is not None else len(day.gpus.names)
        for learners in ["1"] + ([str(gpus)] if gpus > 1 else []):
            day.bench("ranks", f"{learners} ranks", "learner", "--env", "HalfCheetah-v5", "--learners", learners,
                      "--parameters", 1000 if dry else 1_000_000, "--batch", 256 if dry else 65536, "--minibatch",
                      64 if dry else 8192, "--device", "cpu" if cpu else "cuda", *common, learners=int(learners))
    for one in every if does("learner") else []:
        if one not in first:
            learner(*one)


def table(title, head, rows):
    if not rows:
        return ""
    lines = [f"## {title}", "", "| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return "\n".join(lines + ["| " + " | ".join(map(str, row)) + " |" for row in rows]) + "\n\n"


def count(value):
    return "-" if value is None else f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def busy(step):
    own = step["report"]["rows"][0].get("gpu_utilization")
    percent = 100 * own if own is not None else step.get("busy_percent")
    return "not measured" if percent is None else f"{percent:.0f} %"


def markdown(day):
    """The tables: everything that was measured, then everything that was not."""
    done = [step for step in day.steps if "report" in step]
    of = {group: [step for step in done if step["group"] == group]
          for group in ("device", "learner", "fit", "stepping", "training", "ars", "ranks")}
    peaks = of["device"][0]["report"]["summary"] if of["device"] else {}
    machine = next((step["machine"] for step in done), {})
    text = f"# A day with {', '.join(day.gpus.names) or 'no GPU'}\n\n"
    text += (f"{machine.get('cpu', '?')}, {machine.get('cores', '?')} cores, LibTorch {machine.get('libtorch', '?')}, "
             f"device {day.options.device}. Made by scripts/gpu_day.sh; {day.options.out.name}.json has all of it.\n\n")
    text += table("The device's limit", ["what", "a second"],
                  [(name, count(value)) for name, value in peaks.items() if isinstance(value, (int, float))])
    rows = []
    for step in of["learner"]:
        summary = step["report"]["summary"]["combinations"][0]
        rate, parameters = summary["limit_samples_per_second"], summary["parameters"]
        peak = peaks.get(step["peak"])
        # A forward pass is two operations for each parameter and sample, backward four.
        share = f"{100 * 6 * parameters * rate / peak:.1f} %" if peak else "-"
        rows.append((step["arithmetic"], f"{parameters:,}", f"{step['minibatch']:,}", count(rate), share, busy(step)))
    text += table(f"Updates of one learner, {EPOCHS} epochs; the mark for large networks is {BUSY_MARK} busy",
                  ["arithmetic", "parameters", "minibatch", "samples/s", "of the peak", "busy"], rows)
    text += table(f"Gradient steps of skein fit; the mark is {SEQUENCES_MARK:,} tokens/s on one H100",
                  ["model", "tokens/s", "plain LibTorch", "ratio", "waits for data", "of the mark", "busy"],
                  [(step["name"], count(summary["tokens_per_second"]), count(summary["limit_tokens_per_second"]),
                    f"{summary['ratio']:.3f}", f"{100 * summary['data_wait_share']:.1f} %",
                    "-" if day.options.dry_run else f"{100 * summary['tokens_per_second'] / SEQUENCES_MARK:.0f} %",
                    busy(step)) for step in of["fit"] for summary in [step["report"]["summary"]]])
    for group, title in (("stepping", f"UAV worlds stepped; the mark is {AGENT_STEPS_MARK:,} agent-steps/s"),
                         ("training", "UAV worlds trained on")):
        text += table(title, ["worlds", "env-steps/s", "agent-steps/s", "busy"],
                      [(f"{step['worlds']:,}", count(step["report"]["rows"][0]["env_steps_per_second"]),
                        count(step["report"]["rows"][0].get("agent_steps_per_second")), busy(step))
                       for step in of[group]])
    text += table(f"Directions of ars on the device; the mark is {BUSY_MARK} busy",
                  ["what", "directions x worlds", "env-steps/s", "s an iteration", "busy"],
                  [(step["name"], f"{step['dirs']} x 2 x {step['worlds']:,}",
                    count(step["report"]["rows"][0]["env_steps_per_second"]),
                    count(step["report"]["rows"][0]["seconds_per_iteration"]), busy(step)) for step in of["ars"]])
    text += table("Ranks", ["ranks", "samples/s", "of independent ones", "hidden share of all-reduce", "busy"],
                  [(step["learners"], count(summary["samples_per_second"]), f"{summary['ratio']:.3f}",
                    f"{summary['hidden_share']:.2f}", busy(step))
                   for step in of["ranks"] for summary in step["report"]["summary"]["combinations"]])
    rest = [(step["group"], step["name"], step["failed"]) for step in day.steps if "failed" in step]
    for group in dict.fromkeys(step["group"] for step in day.steps):
        left_out = [step["left_out"] for step in day.steps if step["group"] == group and "left_out" in step]
        if left_out:
            rest.append((group, f"{len(left_out)} measurements", left_out[0]))
    return text + table("What was not done", ["step", "what", "why"], [[cell.replace("|", "/") for cell in row] for row in rest])


def main(arguments=None):
    options = parse_arguments(arguments)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    day = Day(options)
    if options.bench is None:
        day.build()
    options.bench = options.bench.resolve()
    day.deadline = time.monotonic() + 60 * options.minutes
    if day.built() and not options.bench.exists():
        day.steps.append({"group": "build", "name": "skein-bench", "failed": f"{options.bench} is not there"})
    if day.built():
        measure(day)
    day.gpus.stop()
    day.write()
    text = markdown(day).rstrip("\n") + "\n"
    pathlib.Path(f"{options.out}.md").write_text(text)
    print(text, end="")
    return 1 if any("failed" in step for step in day.steps) else 0


if __name__ == "__main__":
    sys.exit(main())
