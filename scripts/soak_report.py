# SPDX-License-Identifier: Apache-2.0
"""What scripts/soak.py makes of what it has seen."""

import collections
import datetime
import itertools
import json
import os
import pathlib
import platform
import re
import statistics
import subprocess

# By so much what a process uses may grow over the window that is looked at: a share, and an amount.
ALLOWED_GROWTH = {"rss_mib": (0.05, 8.0), "fds": (0.0, 4.0), "threads": (0.0, 3.0), "series": (0.0, 2.0)}
TITLES = {"rss_mib": "RSS (MiB)", "fds": "file descriptors", "threads": "threads", "series": "metric series"}
# Those that nobody kills in the end.
WATCHED = ("coordinator", "learner", "actor-1")
# What a soak's history cannot be without (docs/faults.md): else somebody did not record, and there is less to judge.
RECORDED = ("join", "leave", "learner", "batch", "trained", "account", "policy")
MOST_POINTS = 300  # That a slope is computed of.

INTRODUCTION = """
A coordinator, a learner and some actors train CartPole while [faults](../faults.md) are injected, sometimes two at
once: `scripts/soak.py` says which. "Cut link" parts an actor from both coordinator and learner. A recovery begins with
the fault, or where something is stopped, cut or slow with the end of that; it ends when all are members again and the
one that was hit delivers data (a learner: finishes an iteration; a coordinator: knows of progress). Restarts are
immediate, and their time is counted; with "environment hangs" so is the time until it does, up to 20,000 steps after a
restart, and the 5 s that a step may take.
""".strip().splitlines()

ABOUT_STEPS = """
What is rolled back at a learner's death had been trained on after its last checkpoint, which is written each 20,480
steps here, and is collected again; `lost` is what actors had collected and nobody could train on.
""".strip().splitlines()

ABOUT_HISTORY = """
Each process records what happens to it, and `skein check-history` judges the records of all: each batch accepted once,
one live member of a rank, barriers and policy versions in order, no step trained on that was not accepted
([the invariants](../faults.md#the-history-and-its-invariants)).
""".strip().splitlines()

ABOUT_RESOURCES = """
Over the last 35 % of the time, in which nobody kills these three: medians of the first and the last third of it, and the
slope (the median over all pairs of samples). Flat: slope times window is at most 5 % and 8 MiB of memory, 4 file
descriptors, 3 threads, 2 series.
""".strip().splitlines()


def output_of(*command):
    """Its standard output; empty: it failed."""
    try:
        environment = {name: value for name, value in os.environ.items() if name != "SKEIN_PARENT_PID"}
        ended = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=60, env=environment)
        return ended.stdout.strip() if ended.returncode == 0 else ""
    except (OSError, subprocess.TimeoutExpired):
        return ""


def describe_machine(programs):
    """What a figure depends on, as it is now."""
    cpu = re.search(r"model name\s*:\s*(.+)", pathlib.Path("/proc/cpuinfo").read_text())
    memory = re.search(r"MemTotal:\s+(\d+)", pathlib.Path("/proc/meminfo").read_text())
    system = re.search(r'PRETTY_NAME="?([^"\n]+)', pathlib.Path("/etc/os-release").read_text())
    git = ("git", "--no-optional-locks", "-C", pathlib.Path(__file__).resolve().parent)
    commit = output_of(*git, "rev-parse", "--short=12", "HEAD") or "unknown"
    changed = output_of(*git, "status", "--porcelain", "--untracked-files=no")
    return {"cpu": cpu.group(1) if cpu else platform.machine(), "cores": len(os.sched_getaffinity(0)),
            "memory_gib": round(int(memory.group(1)) / 2**20, 1), "os": system.group(1) if system else platform.system(),
            "load_average": os.getloadavg()[0], "programs": (output_of(programs / "skein", "--version") or "unknown").split("\n")[0],
            "commit": commit + (" and changes" if changed else ""),
            "started": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC")}


def judge_history(soak):
    """What `skein check-history` says of all that the processes recorded."""
    folder = soak.cluster.history
    environment = {name: value for name, value in os.environ.items() if name != "SKEIN_PARENT_PID"}
    ended = subprocess.run([str(soak.options.bin / "skein"), "check-history", str(folder), "--json"],
                           capture_output=True, text=True, env=environment)
    try:
        judged = json.loads(ended.stdout)
    except ValueError:
        soak.fail(f"the history cannot be judged: {ended.stderr.strip()}")
        return {"bytes": 0, "processes": 0, "events": {}, "batches": {}, "accepted_more_than_once": 0, "breaches": 0}
    for breach in judged["first_breaches"]:
        soak.fail(f"history: {breach}")
    if ended.returncode != 0 and not judged["first_breaches"]:
        soak.fail(f"skein check-history ended with code {ended.returncode}: {ended.stderr.strip()}")
    missing = [event for event in RECORDED if not judged["events"].get(event)]
    if missing:
        soak.fail(f"the history has no {', '.join(missing)}")
    return {"bytes": sum(path.stat().st_size for path in folder.glob("*.jsonl")), **judged}


def slope(points):
    """Theil-Sen: the median of the slopes of all pairs."""
    points = points[::len(points) // MOST_POINTS + 1]
    return statistics.median((b - a) / (t - s) for (s, a), (t, b) in itertools.combinations(points, 2) if t > s)


def growth(samples, begin, end):
    """Of each resource the median in the first and the last third of the window, the slope, and whether that is flat."""
    inside = [(seconds, usage) for seconds, usage in samples if begin <= seconds <= end]
    if len(inside) < 6:
        return None
    third, window = len(inside) // 3, inside[-1][0] - inside[0][0]
    verdict = {}
    for name, (share, amount) in ALLOWED_GROWTH.items():
        first = statistics.median(usage[name] for _, usage in inside[:third])
        last = statistics.median(usage[name] for _, usage in inside[-third:])
        per_second = slope([(seconds, usage[name]) for seconds, usage in inside])
        verdict[name] = {"first": round(first, 1), "last": round(last, 1), "per_hour": round(per_second * 3600, 2),
                         "window_s": round(window), "grew": round(per_second * window, 2),
                         "allowed": round(first * share + amount, 2),
                         "flat": per_second * window <= first * share + amount}
    return verdict


def judge_resources(soak):
    """Of those that nobody kills in the end, after some time to settle."""
    usage, resources = soak.usage, {}
    begin = 0.65 * soak.options.seconds
    end = max((samples[-1][0] for samples in usage.values()), default=0)
    for (name, _), samples in usage.items():
        if name in WATCHED and samples[-1][0] >= end - 30 and samples[0][0] < begin:
            resources[name] = growth([one for one in samples if one[0] < end - 1], begin, end)
    for name in WATCHED:
        if not resources.get(name):
            soak.fail(f"too few samples of {name} to tell whether it leaks")
        for what, one in (resources.get(name) or {}).items():
            if not one["flat"]:
                soak.fail(f"{name}: {TITLES[what]} grew by {one['grew']:g} in {one['window_s']} s, from {one['first']:g} "
                          f"to {one['last']:g}; {one['allowed']:g} is allowed")
    return {name: resources[name] for name in WATCHED if resources.get(name)}


def as_csv(usage, seconds):
    """What each process used, about 120 times for one that lived all the time."""
    lines, lives = ["seconds,process,life," + ",".join(TITLES)], collections.Counter()
    for (name, _), samples in usage.items():
        lives[name] += 1
        due = 0.0
        for at, one in samples:
            if at >= due:
                due = at + seconds / 120
                lines.append(f"{at:.0f},{name},{lives[name]},{one['rss_mib']:.1f},{one['fds']},{one['threads']},{one['series']}")
    return "\n".join(lines) + "\n"


def returns_by_tenth(path):
    """The first iteration's mean return, and the means over each tenth of all iterations."""
    returns = []
    try:
        with open(path, errors="replace") as lines:
            for line in lines:
                found = re.search(r'"episode_return_mean":([-0-9.e+]+)', line)
                if found:
                    returns.append(float(found.group(1)))
    except OSError:
        pass
    if len(returns) < 10:
        return 0.0, [], len(returns)
    ends = [len(returns) * i // 10 for i in range(11)]
    return returns[0], [statistics.mean(returns[a:b]) for a, b in zip(ends, ends[1:])], len(returns)


def judge_return(soak):
    first, tenths, iterations = returns_by_tenth(soak.cluster.run_directory / "metrics.jsonl")
    last = statistics.mean(tenths[-2:]) if tenths else 0.0
    least = soak.options.least_return
    if not tenths:
        soak.fail(f"there are too few iterations, {iterations}, to tell whether the return rises")
    elif not last > (1.5 * first if least is None else least):
        soak.fail(f"the return does not rise: {first:.1f} at first, {last:.1f} at last")
    return {"first": round(first, 1), "last": round(last, 1),
            "by_tenth": [round(one, 1) for one in tenths], "iterations": iterations}


def figures(values):
    if not values:
        return {"count": 0}
    return {"count": len(values), "median_s": round(statistics.median(values), 2), "worst_s": round(max(values), 2)}


def summarize(soak, kinds, history, machine):
    options = soak.options
    summary = {
        "command": f"scripts/soak.py --seconds {options.seconds:g} --seed {options.seed} --actors {options.actors} "
                   f"--pause {options.pause:g}" + "".join(f" --set {setting}" for setting in options.settings)
                   + ("" if options.least_return is None else f" --least-return {options.least_return:g}"),
        "machine": machine, "seconds": options.seconds, "seed": options.seed,
        "faults": {kind: {"injected": soak.injected[kind], **figures(soak.recoveries[kind])} for kind in kinds},
        "all": {"injected": sum(soak.injected.values()),
                **figures([value for values in soak.recoveries.values() for value in values])},
        "actors_that_ended_by_themselves": soak.ended_by_itself, "slowest_leave_s": round(max(soak.leaves, default=0), 2),
        "account": soak.account, "rolled_back_env_steps": soak.rolled_back, "history": history,
        "return": judge_return(soak), "resources": judge_resources(soak), "failures": soak.failures}
    recovered = f"{summary['all']['count']} of {summary['all']['injected']} faults recovered from"
    breaches = f"{history['breaches']} breaches in {sum(history['events'].values()):,} recorded events"
    held = "FAILED: " + f"{len(soak.failures)} things did not hold" if soak.failures else "PASSED: everything held"
    collected = soak.account.get("collected", 0)
    lost = f"{soak.account['lost'] / collected:.2%} of the steps lost" if collected else "no steps collected"
    summary["verdict"] = (f"{held}; {recovered}, {lost}, {history['accepted_more_than_once']} batches accepted twice, "
                          f"{breaches}")
    return summary


def table(titles, rows):
    return ["", "| " + " | ".join(titles) + " |", "|---" * len(titles) + "|",
            *("| " + " | ".join(str(cell) for cell in row) + " |" for row in rows)]


def as_markdown(summary, name):
    machine, account, history = summary["machine"], summary["account"], summary["history"]
    lines = ["# Reliability", "", f"**{summary['verdict']}.**", "", *INTRODUCTION, "", f"    {summary['command']}", "",
             f"{machine['cpu']}, {machine['cores']} cores, {machine['memory_gib']} GiB, {machine['os']}; load average "
             f"{machine['load_average']:.1f} at the start;", f"{machine['programs']}, commit {machine['commit']}, "
             f"{machine['started']}."]
    if name:
        lines[-1] += f" [As JSON]({name}.json); [what the processes used, over time]({name}.csv)."
    if summary["failures"]:
        lines += ["", "What did not hold:", "", *[f"- {text}" for text in summary["failures"]]]
    lines += ["", "## Faults and recoveries"]
    kinds = [*summary["faults"].items(), ("all", summary["all"])]
    lines += table(["fault", "injected", "recovered", "median recovery", "worst"],
                   [[kind, one["injected"], one["count"],
                     *([f"{one['median_s']} s", f"{one['worst_s']} s"] if one["count"] else "--")] for kind, one in kinds])
    lines += ["", f"{summary['actors_that_ended_by_themselves']} actors ended by themselves so as to be started again."]
    lines += ["", "## Steps", "", *ABOUT_STEPS]
    share = lambda count: f"{count / account['collected']:.3%}" if account.get("collected") else ""
    lines += table(["env steps", "", "of those collected"],
                   [*([fate, f"{count:,}", share(count)] for fate, count in account.items()),
                    ["rolled back when the learner was killed", f"{summary['rolled_back_env_steps']:,}",
                     share(summary["rolled_back_env_steps"])]])
    lines += ["", "## Invariants", "", *ABOUT_HISTORY]
    lines += table(["of the history", ""],
                   [["processes", history["processes"]], ["size", f"{history['bytes'] / 1e6:,.1f} MB"],
                    *([f"events: {event}", f"{count:,}"] for event, count in history["events"].items()),
                    *([f"batches: {result}" + (", told so and not counted" if result == "duplicate" else ""), f"{count:,}"]
                      for result, count in history["batches"].items()),
                    ["batches accepted more than once", history["accepted_more_than_once"]],
                    ["breaches of what must hold", history["breaches"]]])
    lines += ["", "## Resources", "", *ABOUT_RESOURCES]
    lines += table(["process", *TITLES.values()],
                   [[process, *(f"{one['first']:g} to {one['last']:g}; {one['per_hour']:+g} an hour, "
                                f"{'flat' if one['flat'] else 'NOT FLAT'}" for one in verdicts.values())]
                    for process, verdicts in summary["resources"].items()])
    lines += ["", "## Return", "", f"Mean return of the last 100 episodes, at first {summary['return']['first']}, and by "
              f"tenths of {summary['return']['iterations']:,} iterations:", "",
              "    " + "  ".join(f"{one:g}" for one in summary["return"]["by_tenth"])]
    return "\n".join(lines) + "\n"
