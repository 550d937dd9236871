#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws DIR/dashboard.png from DIR/results.json, which `skein bench scaling --out DIR` has written. Needs gnuplot."""

import json
import pathlib
import subprocess
import sys

SCRIPT = """
set terminal pngcairo size 1600,1000 font "DejaVu Sans,11"
set output "dashboard.png"
set key top left reverse Left
set grid ytics lc rgb "#e4e4e4" lt 1
set style fill solid 0.85 noborder
set boxwidth 0.62
set multiplot layout 2,2 title "{title}" noenhanced font "DejaVu Sans,16"
set logscale xy 2
set xlabel "environments"
set title "Speed-up against one environment"
plot $rows using 2:2 with lines dt 2 lc rgb "#8a8a8a" title "ideal", \\
     $rows using 2:3 with points pt 7 ps 1.4 lc rgb "#1f6fb4" title "measured"
unset logscale y
set yrange [0:*]
set title "Parallel efficiency and share of the limit in %"
plot $rows using 2:4 with points pt 7 ps 1.4 lc rgb "#1f6fb4" title "of ideal speed-up", \\
     $rows using 2:5 with points pt 9 ps 1.3 lc rgb "#2e8b57" title "of the physical limit"
unset logscale x
set xlabel "runners x environments of each"
set xtics rotate by -45
set title "Env-steps/s"
plot $rows using 0:6:xtic(1) with boxes lc rgb "#1f6fb4" notitle
set title "CPU and GPU in %, average"
plot $rows using 0:7:xtic(1) with boxes lc rgb "#edae49" title "CPU", \\
     $rows using 0:8 with points pt 7 lc rgb "#d1495b" title "GPU"
"""


def Row(row):
    def Percent(share):
        return "NaN" if share is None else 100 * share

    gpu = row["gpu"] and row["gpu"]["average"]
    figures = (row["configuration"], row["environments"], row["speed_up"], Percent(row["efficiency"]),
               Percent(row["limit_ratio"]), row["env_steps_per_second"], Percent(row["cpu"]["average"]), Percent(gpu))
    return " ".join(str(figure) for figure in figures)


def Main():
    if len(sys.argv) != 2:
        sys.exit(f"usage: {sys.argv[0]} DIR")
    folder = pathlib.Path(sys.argv[1])
    results = json.loads((folder / "results.json").read_text())
    title = f"{results['config']['env']} on {results['machine']['cpu']}, {results['machine']['cores']} cores"
    rows = "\n".join(Row(row) for row in results["rows"])
    script = f"$rows << END\n{rows}\nEND\n" + SCRIPT.format(title=title.replace('"', "'"))
    subprocess.run(["gnuplot"], input=script, text=True, cwd=folder, check=True)


if __name__ == "__main__":
    Main()
