#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# scripts/plot_scaling.py draws the study that the documents show. Run in the root of the tree; skipped without gnuplot.
command -v gnuplot >/dev/null || exit 77
folder=$(mktemp -d) || exit 1
trap 'rm -r "$folder"' EXIT
cp docs/benchmarks/scaling/results.json "$folder" && scripts/plot_scaling.py "$folder" && test -s "$folder/dashboard.png"
