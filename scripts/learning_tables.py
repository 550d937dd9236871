# SPDX-License-Identifier: Apache-2.0
"""The tables in Markdown and the charts of learning_study.py, of rows that it has read or measured."""

import math
import pathlib
import statistics
import subprocess

from learning_suites import MILLION  # Beside this file.


def first_at(rows, seed, steps):
    """The seed's first checkpoint at `steps` or later."""
    return next((row for row in rows if row["seed"] == seed and row["env_steps"] >= steps), None)


def first_above(rows, seed, target, figure="return_mean"):
    """The seed's first checkpoint that has passed `target`."""
    return next((row for row in rows if row["seed"] == seed and row[figure] >= target), None)


def number(value, figure, digits=1):
    return f"{value:,.{digits}f}" if figure == "return_mean" else f"{value:.3f}"


def spread(values, figure):
    mean = statistics.mean(values)
    digits = 0 if abs(mean) >= 100 else 2
    return f"{number(mean, figure, digits)} +- {number(statistics.pstdev(values), figure, digits)}"


def title(figure):
    return "return" if figure == "return_mean" else figure


def returns_table(rows, seeds, columns, figure):
    lines = ["| seed | " + " | ".join(f"{title(figure)} at {steps:,} steps (digest)" for steps in columns) + " |",
             "|---" * (len(columns) + 1) + "|"]
    found = {steps: [first_at(rows, seed, steps) for seed in seeds] for steps in columns}
    for i, seed in enumerate(seeds):
        cells = [found[steps][i] for steps in columns]
        lines.append(f"| {seed} | " + " | ".join(
            f"{number(row[figure], figure)} ({row['digest']})" if row else "-" for row in cells) + " |")
    means, above = [], []
    for steps in columns:
        values = [row[figure] for row in found[steps] if row]
        means.append(f"**{spread(values, figure)}**" if values else "-")
        above.append(f"{sum(value > 4000 for value in values)} of {len(values)}" if values else "-")
    lines.append("| mean +- std | " + " | ".join(means) + " |")
    if figure == "return_mean":
        lines.append("| above 4,000 | " + " | ".join(above) + " |")
    return "\n".join(lines)


def target_table(rows, seeds, target, figure):
    lines = [f"| seed | seconds to {title(figure)} {target:g} | env steps |", "|---|---|---|"]
    reached = []
    for seed in seeds:
        row = first_above(rows, seed, target, figure)
        reached.append(row["seconds"] if row else math.inf)
        lines.append(f"| {seed} | {row['seconds']:.1f} | {row['env_steps']:,} |" if row else f"| {seed} | never | - |")
    median = statistics.median(reached)
    lines.append(f"| median | **{'never' if median == math.inf else f'{median:.1f}'}** | |")
    return "\n".join(lines)


def draw(rows, seeds, out, heading, figure):
    steps = sorted({row["env_steps"] for row in rows})
    blocks = []
    for seed in seeds:
        blocks.append("\n".join(f"{row['env_steps'] / 1e6} {row[figure]}" for row in rows if row["seed"] == seed))
    mean = []
    for step in steps:
        values = [row[figure] for row in rows if row["env_steps"] == step and row["seed"] in seeds]
        if len(values) == len(seeds):
            mean.append(f"{step / 1e6} {statistics.mean(values)}")
    data = "\n".join(f"$seed{i} << END\n{block}\nEND" for i, block in enumerate(blocks))
    data += "\n$mean << END\n" + "\n".join(mean) + "\nEND"
    plots = [f"$seed{i} with lines lw 1 lc rgb '#b0c4de' notitle" for i in range(len(seeds))]
    plots.append("$mean with lines lw 3 lc rgb '#1f4e9c' title 'mean'")
    script = f"""{data}
set terminal pngcairo size 960,540 font 'sans,12'
set output '{out}.png'
set title '{heading}' noenhanced
set xlabel 'env steps (millions)'
set ylabel 'deterministic test {title(figure)}' noenhanced
set grid
set key bottom right
plot {', '.join(plots)}
"""
    subprocess.run(["gnuplot"], input=script, text=True, check=True)


def find_row(rows, task, seed):
    return next((row for row in rows
                 if (row["env"], row["asked"], int(row["seed"])) == (task.env, task.recipe, seed)), None)


def what_differs(task):
    if task.config:
        return f", {task.recipe}"
    return "" if task.recipe == "auto" else f", `--recipe {task.recipe}`"


def suite_table(rows, seeds_of_task):
    """seeds_of_task: task -> seeds. A column for each seed of any task."""
    seeds = sorted({seed for those in seeds_of_task.values() for seed in those})
    lines = ["| environment | recipe | env steps | threshold | source | " +
             " | ".join(f"seed {seed}" for seed in seeds) + " | mean | reached |", "|---" * (7 + len(seeds)) + "|"]
    for task, those in seeds_of_task.items():
        found = [find_row(rows, task, seed) if seed in those else None for seed in seeds]
        done = [row for row in found if row]
        reached = sum(float(row["value"]) >= task.threshold for row in done)
        first = done[0] if done else {"recipe": "", "env_steps": 0}
        lines.append(
            f"| {task.env}{what_differs(task)} | {pathlib.PurePath(first['recipe']).name} | {int(first['env_steps']):,} | "
            f"{task.threshold:,} {'' if task.figure == 'return_mean' else task.figure} | {task.source} | " +
            " | ".join(number(float(row["value"]), task.figure) if row else "-" for row in found) +
            f" | {number(statistics.mean(float(row['value']) for row in done), task.figure) if done else '-'}"
            f" | {reached} of {len(done)} |")
    return "\n".join(lines)


def table_steps(task):
    return sorted({min(MILLION, task.at), task.at} if task.at <= 3 * MILLION else {task.at})


def mujoco_line(task, steps, rows, seeds):
    done = [row for seed in seeds if (row := first_at(rows, seed, steps))]
    values = [row["return_mean"] for row in done]
    # Beside the last of our columns also what others reach with more steps.
    published = "; ".join(f"{value:,} at {at / MILLION:g}M" for at, value in task.published.items()
                          if at == steps or (steps == task.at and at > steps))
    return (f"| {task.name} | {steps:,} | {spread(values, 'return_mean') if values else '-'} | {len(values)} | "
            f"{', '.join(str(row['seed']) for row in done) or '-'} | "
            f"{f'{published} ({task.source})' if published else '-'} |")
