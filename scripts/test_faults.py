#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs every test of docs/faults.md and prints a verdict for each row: `make test-faults`.

    scripts/test_faults.py build/release                        # all rows
    scripts/test_faults.py build/release --quick                # those that take a few seconds
    scripts/test_faults.py build/release --rows 1,15 --verbose  # some rows, with what the tests say
    scripts/test_faults.py build/release --seed 7               # other random choices
    scripts/test_faults.py build/release --jobs 3 --json FILE   # three rows at a time
    scripts/test_faults.py build/release --rerun-failed FILE    # those that did not pass then

A row NN passes if there are tests named FaultRowNN.*, in whichever binary under BUILD/tests, and all of them pass; it is
`missing` if there are none, and `skipped` if one of them cannot run here: which one is said below it. Exit code 1 unless
every row that was asked for passes, or with --allow-skipped is skipped at worst. What tests chose by the seed is said below their row, too.
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time

# What a quick run leaves out: minutes of waiting, or many repetitions.
SLOW_ROWS = {5, 24, 28, 34, 37}
DOCUMENT = pathlib.Path("docs/faults.md")


def titles():
    """What is done in each row, from the table of the document."""
    found = {}
    for line in DOCUMENT.read_text().splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if len(cells) >= 3 and cells[0].isdigit():
            found[int(cells[0])] = cells[1]
    return found


def fault_tests(binary):
    """Names of the tests in a binary that belong to a row."""
    # A binary without such a name inside need not be started; most are in this case, and some take long to load.
    if b"FaultRow" not in binary.read_bytes():
        return []
    listing = subprocess.run([binary, "--gtest_list_tests", "--gtest_filter=*FaultRow*"], capture_output=True, text=True)
    if listing.returncode != 0:
        raise RuntimeError(f"{binary} cannot list its tests: {listing.stderr.strip()[-300:]}")
    tests, suite = [], None
    for line in listing.stdout.splitlines():
        line = line.split("#")[0].rstrip()
        if re.match(r"(\w+/)?FaultRow\d\d\w*(/\w+)?\.$", line):
            suite = line
        elif not line.startswith(" "):
            suite = None
        elif suite:
            tests.append(suite + line.strip())
    return tests


def row_of(test):
    return int(re.search(r"FaultRow(\d\d)", test).group(1))


def find(build):
    """{row: {binary: [tests]}}"""
    binaries = [p for p in sorted((build / "tests").iterdir()) if p.is_file() and os.access(p, os.X_OK)]
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        found = list(pool.map(fault_tests, binaries))
    rows = {}
    for binary, tests in zip(binaries, found):
        for test in tests:
            rows.setdefault(row_of(test), {}).setdefault(binary, []).append(test)
    return rows


def kill_tree(pid):
    """Ends a process and all that it started: test binaries that are killed leave their programs behind."""
    children = {}
    for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = int(stat.read_text().rpartition(")")[2].split()[1])
        except (OSError, IndexError, ValueError):
            continue  # It has ended meanwhile.
        children.setdefault(parent, []).append(int(stat.parent.name))
    todo = [pid]
    while todo:
        next_pid = todo.pop()
        todo += children.get(next_pid, [])
        try:
            os.kill(next_pid, signal.SIGKILL)
        except ProcessLookupError:
            pass


def run(build, binary, tests, options):
    """[(test, verdict, seconds)] of tests of one binary and one row, run in one process, and what the seed chose."""
    environment = dict(os.environ, SKEIN_BIN=str(build.resolve()), SKEIN_FAULT_SEED=str(options.seed))
    with tempfile.NamedTemporaryFile(suffix=".json") as report:
        command = [binary, "--gtest_filter=" + ":".join(tests), f"--gtest_output=json:{report.name}",
                   f"--gtest_random_seed={options.seed % 100000}", "--gtest_color=no"]
        with subprocess.Popen(command, env=environment, text=True, errors="replace", stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT) as process:
            try:
                output, _ = process.communicate(timeout=options.timeout)
            except subprocess.TimeoutExpired:
                kill_tree(process.pid)
                output = process.communicate()[0] + f"\nstill running after {options.timeout} s\n"
        try:
            suites = json.loads(pathlib.Path(report.name).read_text() or "{}").get("testsuites", [])
        except json.JSONDecodeError:
            suites = []
    seen = {}
    for suite in suites:
        for case in suite["testsuite"]:
            verdict = "fail" if case.get("failures") else "skipped" if case["result"] == "SKIPPED" else "pass"
            seen[f"{suite['name']}.{case['name']}"] = (verdict, float(case["time"].rstrip("s")))
    # A test that ended its process has no report.
    results = [(test, *seen.get(test.split("  ")[0], ("fail", 0.0))) for test in tests]
    if options.verbose or any(verdict == "fail" for _, verdict, _ in results):
        print(f"--- {binary.name}\n{output[-20000 if options.verbose else -6000:]}", file=sys.stderr, flush=True)
    return results, re.findall(r"^seed \d+: .*$", output, re.MULTILINE)


def try_row(binaries, options):
    """(results, choices, seconds) of one attempt at the tests of a row."""
    begin, results, choices = time.monotonic(), [], []
    for binary, tests in binaries.items():
        some_results, some_choices = run(options.build, binary, tests, options)
        results += some_results
        choices += some_choices
    return results, choices, time.monotonic() - begin


def verdict_of(results):
    verdicts = [verdict for _, verdict, _ in results]
    if not verdicts:
        return "missing"
    return "fail" if "fail" in verdicts else "skipped" if "skipped" in verdicts else "pass"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path, nargs="?", default=pathlib.Path("build/release"))
    parser.add_argument("--quick", action="store_true", help="leave out rows that take long")
    parser.add_argument("--rows", help="only these, e.g. 1,2,12-14")
    parser.add_argument("--seed", type=int, default=1, help="of what tests do at random (SKEIN_FAULT_SEED)")
    parser.add_argument("--rerun-failed", type=pathlib.Path, metavar="FILE", help="only rows that failed, or had no test, in a run with --json FILE")
    parser.add_argument("--jobs", type=int, default=1, help="rows that are tried at the same time")
    parser.add_argument("--timeout", type=float, default=900, help="seconds for the tests of one row in one binary")
    parser.add_argument("--allow-skipped", action="store_true", help="exit code 0 also where this machine cannot run a test")
    parser.add_argument("--json", type=pathlib.Path, help="write the verdicts there too")
    parser.add_argument("--list", action="store_true", help="name the tests of each row and run none")
    parser.add_argument("--verbose", action="store_true", help="show what the tests say, also where they pass")
    options = parser.parse_args()
    what = titles()
    rows_there_are = set(what)
    wanted = rows_there_are - (SLOW_ROWS if options.quick else set())
    if options.rows:
        wanted = set()
        for part in options.rows.split(","):
            first, _, last = part.partition("-")
            wanted |= set(range(int(first), int(last or first) + 1))
        if not wanted <= rows_there_are:
            parser.error(f"--rows: {DOCUMENT} has the rows {', '.join(map(str, sorted(what)))}")

    if options.rerun_failed:
        before = json.loads(options.rerun_failed.read_text())["rows"]
        wanted = {r["row"] for r in before if r["verdict"] in ("fail", "missing")}

    found = find(options.build)
    if options.list:
        for row in sorted(wanted):
            for binary, tests in found.get(row, {}).items():
                print("\n".join(f"{row:2} {binary.name} {test}" for test in tests))
        return 0
    width = max(len(text) for text in what.values()) if what else 20
    width = min(width, 76)
    print(f" row  verdict  tests  seconds  {'what is done':{width}}", flush=True)
    rows, begin = [], time.monotonic()

    def report(row, results, choices, seconds):
        verdict = verdict_of(results)
        print(f"  {row:2}  {verdict:7}  {len(results):5}  {seconds:7.1f}  {what.get(row, '')[:width]}", flush=True)
        for line in choices + [f"skipped: {t}" for t, v, _ in results if v == "skipped"]:
            print(f"      {line}", flush=True)
        rows.append({"row": row, "verdict": verdict, "seconds": round(seconds, 2), "choices": choices,
                     "tests": [{"name": t, "verdict": v, "seconds": s} for t, v, s in results]})

    # Most of a row is waiting: leases that end, processes that start.
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        tries = {row: pool.submit(try_row, found.get(row, {}), options) for row in sorted(wanted)}
        for row, tried in tries.items():
            report(row, *tried.result())
    passed = sum(r["verdict"] == "pass" for r in rows)
    print(f"{passed} of {len(rows)} rows pass, seed {options.seed}, {time.monotonic() - begin:.0f} s", flush=True)
    if options.json:
        options.json.write_text(json.dumps({"seed": options.seed, "passed": passed, "rows": rows}, indent=1) + "\n")
    enough = {"pass", "skipped"} if options.allow_skipped else {"pass"}
    return 0 if all(r["verdict"] in enough for r in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
