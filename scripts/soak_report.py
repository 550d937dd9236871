# SPDX-License-Identifier: Apache-2.0
"""What scripts/soak.py makes of what it has seen."""

import collections
import json
import os
import platform
import re
import statistics

# By so much what a process uses may grow over the window that is looked at: a share, and an amount.
ALLOWED_GROWTH = {"rss_mib": (0.05, 8.0), "fds": (0.0, 4.0), "threads": (0.0, 3.0), "series": (0.0, 2.0)}

INTRODUCTION = """
A coordinator, a learner and some actors train CartPole while [faults](../faults.md) are injected, sometimes two at
once: `scripts/soak.py` says which. A recovery begins with the fault, or where something is stopped, cut or slow with
the end of that; it ends when all are members again and the one that was hit delivers data (a learner: finishes an
iteration). Restarts are immediate, and their time is counted. "First" and "last" are medians over the first and last
third of the time in which nobody kills that process. What is rolled back at a learner's death had been trained on
after its last checkpoint, which is written each 20,480 steps here, and is collected again; `lost` is what actors had
collected and nobody could train on.
""".strip().splitlines()


def count_batches(history):
    """Of the learners' records: batches by result, and how many were accepted more than once."""
    results, accepted = collections.Counter(), collections.Counter()
    for path in history.glob("*.jsonl"):
        with open(path, errors="replace") as lines:
            for line in lines:
                try:
                    event = json.loads(line)
                except ValueError:
                    continue  # Cut off by a kill.
                if event.get("event") != "batch":
                    continue
                results[event["result"]] += 1
                if event["result"] == "accepted":
                    accepted[event["actor"], event["generation"], event["sequence"]] += 1
    return results, sum(count - 1 for count in accepted.values())


def growth(samples, begin, end):
    """Of each resource, the median in the first and the last third of the window, and whether that is flat."""
    inside = [usage for seconds, usage in samples if begin <= seconds <= end]
    if len(inside) < 6:
        return None
    third = len(inside) // 3
    verdict = {}
    for name, (share, amount) in ALLOWED_GROWTH.items():
        first = statistics.median(usage[name] for usage in inside[:third])
        last = statistics.median(usage[name] for usage in inside[-third:])
        verdict[name] = {"first": round(first, 1), "last": round(last, 1), "flat": last <= first * (1 + share) + amount}
    return verdict


def first_and_last_return(path):
    """Of the iterations' mean returns the first, and the mean over the last fifth."""
    returns = []
    with open(path, errors="replace") as lines:
        for line in lines:
            found = re.search(r'"episode_return_mean":([-0-9.e+]+)', line)
            if found:
                returns.append(float(found.group(1)))
    return (returns[0], statistics.mean(returns[-max(1, len(returns) // 5):])) if returns else (0.0, 0.0)


def summarize(soak, kinds, results, duplicates):
    options = soak.options
    every = sorted(value for values in soak.recoveries.values() for value in values)
    figures = lambda values: {"count": len(values), "median_s": round(statistics.median(values), 2),
                              "worst_s": round(max(values), 2)} if values else {"count": 0}
    # After the start of the part in which nobody kills them, and some time to settle.
    begin, end = 0.65 * options.seconds, soak.usage and max(at for samples in soak.usage.values() for at, _ in samples)
    resources = {}
    for (name, _), samples in soak.usage.items():
        if name in ("coordinator", "learner", "actor-1") and samples[-1][0] >= end - 30 and samples[0][0] < begin:
            resources[name] = growth([one for one in samples if one[0] < end - 1], begin, end)
    for name in ("coordinator", "learner", "actor-1"):
        if not resources.get(name):
            soak.fail(f"too few samples of {name} to tell whether it leaks")
        for what, verdict in (resources.get(name) or {}).items():
            if not verdict["flat"]:
                soak.fail(f"{name}: {what} grew from {verdict['first']} to {verdict['last']}")
    first, last = first_and_last_return(soak.cluster.run_directory / "metrics.jsonl")
    if not last > 1.5 * first:
        soak.fail(f"the return does not rise: {first:.1f} at first, {last:.1f} at last")
    if duplicates:
        soak.fail(f"{duplicates} batches were accepted more than once")
    command = (f"scripts/soak.py --seconds {options.seconds:g} --seed {options.seed} --actors {options.actors} "
               f"--pause {options.pause:g}")
    return {
        "command": command, "machine": platform.machine(), "cores": len(os.sched_getaffinity(0)),
        "seconds": options.seconds, "seed": options.seed,
        "faults": {kind: {"injected": soak.injected[kind], **figures(soak.recoveries[kind])} for kind in kinds},
        "all": {"injected": sum(soak.injected.values()), **figures(every)},
        "account": soak.account, "rolled_back_env_steps": soak.rolled_back, "batches": dict(results),
        "accepted_more_than_once": duplicates, "slowest_leave_s": round(max(soak.leaves, default=0), 2),
        "return": {"first": round(first, 1), "last": round(last, 1)}, "resources": resources, "failures": soak.failures,
    }


def as_markdown(summary):
    lines = ["# Reliability", "", *INTRODUCTION, "",
             f"    {summary['command']}", "", f"On {summary['cores']} cores ({summary['machine']}). "
             "[The same as JSON](reliability.json).", "",
             "| fault | injected | recovered | median recovery | worst |", "|---|---|---|---|---|"]
    for kind, one in [*summary["faults"].items(), ("all", summary["all"])]:
        times = f"{one['median_s']} s | {one['worst_s']} s" if one["count"] else "- | -"
        lines.append(f"| {kind} | {one['injected']} | {one['count']} | {times} |")
    account = summary["account"]
    lines += ["", "| env steps | |", "|---|---|"]
    lines += [f"| {fate} | {count:,} |" for fate, count in account.items()]
    lines += [f"| rolled back to a checkpoint when the learner was killed | {summary['rolled_back_env_steps']:,} |", "",
              "| batches | |", "|---|---|"]
    lines += [f"| {result} | {count:,} |" for result, count in sorted(summary["batches"].items())]
    lines += [f"| accepted more than once | {summary['accepted_more_than_once']} |", "",
              "| process | RSS (MiB) | file descriptors | threads | metric series |", "|---|---|---|---|---|"]
    for name, verdicts in summary["resources"].items():
        cells = [f"{one['first']:g} to {one['last']:g}" for one in (verdicts or {}).values()]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    lines += ["", f"Mean return of the last 100 episodes: {summary['return']['first']} at first, "
                  f"{summary['return']['last']} at last."]
    lines += ["", "What did not hold:", *[f"- {text}" for text in summary["failures"]]] if summary["failures"] else []
    return "\n".join(lines) + "\n"
