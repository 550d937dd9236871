#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""How well `skein fit` and `skein detect` find the abnormal sessions of the HDFS log.

  scripts/deeplog_study.py --train hdfs_train --abnormal hdfs_test_abnormal [--seeds 10]

Trains configs/deeplog_hdfs.yaml once for each seed on four fifths of the normal sessions; the other fifth, by a fixed split,
is what false alarms are counted on. Seed s leaves out fifth s mod 5, so that five seeds judge each normal session once.
With detect.known_counts the runs are judged twice: as the configuration has it, and by the model alone with the limit that
was chosen for it. Beside them are baselines that learn nothing. Writes docs/benchmarks/deeplog.json after each seed, goes on
from there when called again, and makes docs/benchmarks/deeplog.md of it. That file lacks no seed: to measure anew, give --out a
file of your own.

Each seed's row has digests of both data files and of the configuration with its --set. Where rows are of others it ends with code
65 and writes nothing; with --replace it drops these rows and measures anew the seeds that are asked for.
"""
import argparse
import collections
import hashlib
import json
import math
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
import learning_study  # noqa: E402  Beside this script.

ROOT = pathlib.Path(__file__).resolve().parent.parent
FOLDS = 5
CONFIG = ROOT / "configs/deeplog_hdfs.yaml"
COMMAND = "scripts/deeplog_study.py --train hdfs_train --abnormal hdfs_test_abnormal"
SPEED = "\n## How fast it trains\n"
NORMAL, ABNORMAL = 553_366, 16_838  # Sessions of the full test set.


def read(path):
    lines = [tuple(line.split()) for line in pathlib.Path(path).read_text().splitlines()]
    return [line for line in lines if line]


def digest(path):
    return hashlib.sha256(pathlib.Path(path).read_bytes()).hexdigest()[:8]


def digests_of(train, abnormal, settings):
    """What a row is of."""
    return {"train": digest(train), "abnormal": digest(abnormal),
            "configuration": learning_study.settings_digest(CONFIG, settings)}


def of_others(study):
    """The seeds whose rows are of other data or another configuration than the study is."""
    return sorted(row["seed"] for row in study["seeds"] if row.get("of") != study["of"])


def fold_of(index):
    """The fifth of normal session `index`: fixed, of no seed."""
    return hashlib.sha256(f"deeplog {index}".encode()).digest()[0] % FOLDS


def f1(recall, false_alarms):
    hits, alarms = recall * ABNORMAL, false_alarms * NORMAL
    return 2 * hits / (2 * hits + alarms + (ABNORMAL - hits)) if hits else 0.0


def binomial_tail(n, k, p):
    """P(X >= k), X of n with probability p."""
    if p <= 0:
        return 1.0 if k <= 0 else 0.0
    if p >= 1:
        return 1.0
    log = lambda i: (math.lgamma(n + 1) - math.lgamma(i + 1) - math.lgamma(n - i + 1)
                     + i * math.log(p) + (n - i) * math.log1p(-p))
    return 1.0 - math.fsum(math.exp(log(i)) for i in range(k))


def interval(k, n):
    """The 95 % interval of a share, Clopper and Pearson 1934."""
    def solve(f):
        low, high = 0.0, 1.0
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (middle, high) if f(middle) else (low, middle)
        return low
    lower = 0.0 if k == 0 else solve(lambda p: binomial_tail(n, k, p) < 0.025)
    upper = 1.0 if k == n else solve(lambda p: 1 - binomial_tail(n, k + 1, p) > 0.025)
    return lower, upper


def grams(session, n):
    marked = (None,) * (n - 1) + session + ("end",)
    return {marked[i:i + n] for i in range(len(marked) - n + 1)}


# Each gives the set of features of a session; one that training never had makes the session anomalous.
BASELINES = {
    "unseen key": lambda s: set(s),
    "unseen 2-gram": lambda s: grams(s, 2),
    "unseen 3-gram": lambda s: grams(s, 3),
    "unseen 4-gram": lambda s: grams(s, 4),
    "unseen count vector": lambda s: {tuple(sorted(collections.Counter(s).items()))},
    "unseen length": lambda s: {len(s)},
    "shorter or longer than all": None,
}


def flags_of(name, train):
    if BASELINES[name] is None:
        lengths = [len(s) for s in train]
        least, most = min(lengths), max(lengths)
        return lambda s: not least <= len(s) <= most
    features = BASELINES[name]
    seen = set().union(*(features(s) for s in set(train)))
    return lambda s: not features(s) <= seen


def baselines(normal, abnormal):
    rows = {}
    for name in BASELINES:
        alarms = distinct_alarms = distinct_normal = 0
        hits, distinct_hits = [], []
        for fold in range(FOLDS):
            train = [s for i, s in enumerate(normal) if fold_of(i) != fold]
            test = [s for i, s in enumerate(normal) if fold_of(i) == fold]
            flag = flags_of(name, train)
            alarms += sum(map(flag, test))
            distinct_alarms += sum(map(flag, set(test)))
            distinct_normal += len(set(test))
            hits.append(sum(map(flag, abnormal)) / len(abnormal))
            distinct_hits.append(sum(map(flag, set(abnormal))) / len(set(abnormal)))
        rows[name] = {"recall": statistics.mean(hits), "alarms": alarms, "normal": len(normal),
                      "distinct_recall": statistics.mean(distinct_hits), "distinct_alarms": distinct_alarms,
                      "distinct_normal": distinct_normal}
    return rows


def detect(skein, run, sessions, folder, name, settings):
    path = folder / name
    path.write_text("".join(" ".join(s) + "\n" for s in sessions))
    out = subprocess.run([skein, "detect", "--checkpoint", run, "--data", path, *settings], check=True, capture_output=True,
                         text=True)
    return [json.loads(line)["anomalous"] for line in out.stdout.splitlines()]


def judge(skein, run, test, abnormal, folder, settings=()):
    alarms = detect(skein, run, test, folder, "normal", settings)
    hits = detect(skein, run, abnormal, folder, "abnormal", settings)
    by_normal, by_abnormal = dict(zip(test, alarms)), dict(zip(abnormal, hits))
    return {"normal": len(test), "alarms": sum(alarms), "abnormal": len(abnormal), "hits": sum(hits),
            "distinct_normal": len(by_normal), "distinct_alarms": sum(by_normal.values()),
            "distinct_abnormal": len(by_abnormal), "distinct_hits": sum(by_abnormal.values())}


def train(skein, seed, normal, abnormal, extra, keep):
    fold = seed % FOLDS
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(keep or temporary)
        data = folder / f"train-{fold}"
        data.write_text("".join(" ".join(s) + "\n" for i, s in enumerate(normal) if fold_of(i) != fold))
        run = folder / f"run-{seed}"
        begin = time.monotonic()
        done = subprocess.run([skein, "fit", "--config", CONFIG, "--data", data, "--seed", str(seed),
                               "--run-dir", run, "--resume", "never", "--port", "-1", *extra], capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"skein fit ended with code {done.returncode}: {done.stderr}")
        seconds = time.monotonic() - begin
        test = [s for i, s in enumerate(normal) if fold_of(i) == fold]
        result = judge(skein, run, test, abnormal, folder)
        result["alone"] = judge(skein, run, test, abnormal, folder, ["--set", "detect.known_counts=false"])
        last = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()][-1]
    return {"seed": seed, "fold": fold, "seconds": round(seconds, 1), "held_out_loss": last.get("held_out_loss"), **result}


def percent(share, digits=2):
    return f"{100 * share:.{digits}f} %"


def of_model(study, seeds):
    """The table of seeds, and what they come to together."""
    lines = ["| seed | fifth | recall | false alarms | F1 | recall, distinct | false alarms, distinct | training, s |",
              "|---|---|---|---|---|---|---|---|"]
    scores = scores_of(seeds)
    for s, score in zip(seeds, scores):
        lines.append(f"| {s['seed']} | {s['fold']} | {percent(s['hits'] / s['abnormal'])} | {s['alarms']} of {s['normal']} | {score:.4f} | "
                     f"{percent(s['distinct_hits'] / s['distinct_abnormal'])} | {s['distinct_alarms']} of {s['distinct_normal']} | "
                     f"{s['seconds']:.0f} |")
    alarms, normal = sum(s["alarms"] for s in seeds), sum(s["normal"] for s in seeds)
    recall = statistics.mean(s["hits"] / s["abnormal"] for s in seeds)
    low, high = interval(alarms, normal)
    once = min(normal, study["normal"])  # The same session, judged by another seed, is no new session.
    low_once, high_once = interval(round(alarms * once / normal), once)
    spread = statistics.stdev(scores) if len(scores) > 1 else float("nan")
    lines += ["", f"Mean F1 of {len(seeds)} seeds: **{statistics.mean(scores):.4f}** (standard deviation {spread:.4f}). Together: recall "
              f"{percent(recall)}, false alarms {alarms} of {normal} = {percent(alarms / normal, 3)}, F1 **{f1(recall, alarms / normal):.4f}**.",
              "", f"How sure is that? The 95 % interval of the false alarms (Clopper and Pearson) is {percent(low_once, 3)} to "
              f"{percent(high_once, 3)} if only the {once:,} different sessions count, {percent(low, 3)} to {percent(high, 3)} if each "
              f"judgement does: F1 {f1(recall, high_once):.3f} to {f1(recall, low_once):.3f}. One false alarm in a fifth of about "
              f"{study['normal'] // FOLDS} sessions is already {percent(FOLDS / study['normal'], 2)}, that is {f1(recall, FOLDS / study['normal']):.3f}.", ""]
    return lines


def recall_and_alarms(rows):
    return (statistics.mean(row["hits"] / row["abnormal"] for row in rows),
            sum(row["alarms"] for row in rows) / sum(row["normal"] for row in rows))


def scores_of(rows):
    return [f1(row["hits"] / row["abnormal"], row["alarms"] / row["normal"]) for row in rows]


def bars(study, seeds):
    """What is wanted, and whether it is reached."""
    scores, alone = scores_of(seeds), [s["alone"] for s in seeds]
    of_alone = statistics.mean(scores_of(alone))
    below = [f"seed {s['seed']} has {score:.4f}" for s, score in zip(seeds, scores) if score < 0.964]
    counts = study["baselines"]["unseen count vector"]
    rule = f1(counts["recall"], counts["alarms"] / counts["normal"])
    together = f1(*recall_and_alarms(alone))
    (recall, alarms), mean, longest = recall_and_alarms(seeds), statistics.mean(scores), max(s["seconds"] for s in seeds)
    word = lambda reached: "reached" if reached else "**missed**"
    return ["| wanted | measured | |", "|---|---|---|",
            f"| mean F1 of at least 0.964 | {mean:.4f} | {word(mean >= 0.964)} |",
            f"| the same of the model alone | {of_alone:.4f}; together {together:.4f}, where the rule \"unseen count vector\", which "
            f"learns nothing, has {rule:.4f} | {word(of_alone >= 0.964)} |",
            f"| better, mean F1 of at least 0.975 | {mean:.4f} | {word(mean >= 0.975)} |",
            f"| false alarms of at most 0.15 % at a recall of at least 98 % | {percent(alarms, 3)} at {percent(recall)} | "
            f"{word(alarms <= 0.0015 and recall >= 0.98)} |",
            f"| F1 of at least 0.964 for every seed | {', '.join(below) or f'least {min(scores):.4f}'} | {word(not below)} |",
            f"| training in less than 180 s | longest {longest:.0f} s | {word(longest < 180)} |", ""]


def row_of_model(name, seeds):
    recall, alarms = recall_and_alarms(seeds)
    distinct = sum(s["distinct_alarms"] for s in seeds) / sum(s["distinct_normal"] for s in seeds)
    return (f"| {name} | {percent(recall)} | {percent(alarms, 3)} | {f1(recall, alarms):.4f} | "
            f"{percent(statistics.mean(s['distinct_hits'] / s['distinct_abnormal'] for s in seeds))} | {percent(distinct)} |")


def markdown(study):
    seeds = sorted(study["seeds"], key=lambda s: s["seed"])
    of = study["of"]
    lines = ["# Abnormal sessions of the HDFS log", "",
             "A session is anomalous here if two things hold: no session of the training data has each key as often (its count vector is "
             "new, `detect.known_counts`), and the model finds a key improbable. The model alone is measured beside it.", "",
             f"Made by `{COMMAND}` with `configs/deeplog_hdfs.yaml`; "
             "figures: [deeplog.json](deeplog.json). [What is trained](../fit.md), [how](../algorithms.md#models-of-sequences). The "
             "command trains only the seeds that the JSON lacks. To measure anew, give it a file of your own:", "",
             f"    {COMMAND} --out my-deeplog.json", "",
             f"Each seed's row has the first 8 hexadecimal digits of the SHA-256 of what it was made with: normal sessions {of['train']}, "
             f"abnormal ones {of['abnormal']}, configuration {of['configuration']}. Rows of anything else are refused.", "",
             f"Data: {study['normal']:,} normal sessions ({study['distinct_normal']:,} distinct) and {study['abnormal']:,} "
             f"abnormal ones ({study['distinct_abnormal']:,} distinct). Training sees normal sessions only: of each seed four "
             f"fifths, of which two fifths are held out for the limit. False alarms are counted on the last fifth, recall on all "
             f"abnormal sessions. F1 is re-weighted to the full test set: {NORMAL:,} normal and {ABNORMAL:,} abnormal sessions.", ""]
    lines += ["The limit is chosen on held-out normal sessions alone. What the configuration "
              "itself is, was not: that no abnormal session has a count vector of a normal one was seen on these sessions before "
              "the setting was made, and two sizes of the held-out part, several shares of false alarms and both rules were "
              "compared on them. So expect somewhat less on other sessions.", ""]
    if seeds:
        lines += bars(study, seeds) + of_model(study, seeds)
    else:
        lines += [f"The model has not been measured in this way yet: `{COMMAND}` does it and writes this page anew.", ""]
    lines += ["## Beside rules that learn nothing", "",
              "A session is anomalous if it has something that no session of the other four fifths has.", "",
              "| rule | recall | false alarms | F1 | recall, distinct | false alarms, distinct |", "|---|---|---|---|---|---|"]
    for name, row in study["baselines"].items():
        share = row["alarms"] / row["normal"]
        lines.append(f"| {name} | {percent(row['recall'])} | {percent(share, 3)} | {f1(row['recall'], share):.4f} | "
                     f"{percent(row['distinct_recall'])} | {percent(row['distinct_alarms'] / row['distinct_normal'])} |")
    if seeds:
        lines.append(row_of_model("the model alone", [s["alone"] for s in seeds]))
        lines.append(row_of_model("the configuration", seeds))
    lines += ["", f"{percent(study['short'])} of the abnormal sessions have fewer than 11 keys: programs that pad windows of 10 keys flag "
              "them without a look at the model. This model has a start, an end and no padding.", ""]
    return "\n".join(lines)


def kept(page):
    """The last section of a page, which is not of this study."""
    text = page.read_text() if page.exists() else ""
    return text[text.index(SPEED):] if SPEED in text else ""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--train", required=True, help="normal sessions, one a line")
    parser.add_argument("--abnormal", required=True, help="abnormal sessions")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--first-seed", type=int, default=1)
    parser.add_argument("--skein", default=ROOT / "build/release/skein")
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "docs/benchmarks/deeplog.json")
    parser.add_argument("--set", action="append", default=[], help="a setting other than the configuration's, for trials")
    parser.add_argument("--replace", action="store_true", help="drop rows of --out that are of other data or another configuration")
    parser.add_argument("--keep", help="a folder for runs, which are otherwise removed")
    options = parser.parse_args()
    normal, abnormal = read(options.train), read(options.abnormal)
    study = json.loads(options.out.read_text()) if options.out.exists() else {"seeds": []}
    of = digests_of(options.train, options.abnormal, options.set)
    if any(study.get("of", {}).get(file) != of[file] for file in ("train", "abnormal")):
        study.pop("baselines", None)
    study["of"] = of
    others = of_others(study)
    if others and not options.replace:
        print(f"{options.out}: the rows of seeds {', '.join(map(str, others))} are of other data or another configuration; give --out "
              "a file of your own, or --replace to drop them", file=sys.stderr)
        sys.exit(65)
    study["seeds"] = [row for row in study["seeds"] if row["seed"] not in others]
    study.update({"normal": len(normal), "distinct_normal": len(set(normal)), "abnormal": len(abnormal),
                  "distinct_abnormal": len(set(abnormal)), "short": sum(len(s) < 11 for s in abnormal) / len(abnormal)})
    if "baselines" not in study:
        study["baselines"] = baselines(normal, abnormal)
    extra = [word for setting in options.set for word in ("--set", setting)]
    for seed in range(options.first_seed, options.first_seed + options.seeds):
        if any(done["seed"] == seed for done in study["seeds"]):
            continue
        study["seeds"].append({**train(options.skein, seed, normal, abnormal, extra, options.keep), "of": of})
        last = study["seeds"][-1]
        options.out.write_text(json.dumps(study, indent=1) + "\n")
        print(f"seed {seed}: {last['hits']} of {last['abnormal']} found, {last['alarms']} of {last['normal']} false alarms, "
              f"F1 {f1(last['hits'] / last['abnormal'], last['alarms'] / last['normal']):.4f}, {last['seconds']} s", flush=True)
    options.out.write_text(json.dumps(study, indent=1) + "\n")
    page = options.out.with_suffix(".md")
    page.write_text(markdown(study) + kept(page))


if __name__ == "__main__":
    main()
