#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What one slow machine, or one slow environment, out of sixteen costs in each mode of synchronisation.
#
#     scripts/straggler_study.sh [folder of the programs]
#
# Latency-v0 sleeps 10 ms a step, so sixteen workers fit on two cores. Each case is a head and sixteen workers of one
# runner and one environment; the slow worker's steps, or the slow environment's, take ten times as long. Prints
# env-steps/s after the first two iterations, and as a share of the same mode without anybody slow.
set -euo pipefail
bin=$(realpath "${1:-build/release}")
work=$(mktemp -d)
cleanup() {
  kill $(jobs -p) 2>/dev/null || true
  rm -rf "$work"
}
trap cleanup EXIT
workers=16
iteration=1024  # 64 steps of each environment: 0.64 s.
iterations=12

# run NAME MODE SLOW_WORKERS SLOW_ENVS: prints env-steps/s.
run() {
  local name=$1 mode=$2 slow_workers=$3 slow_envs=$4
  cd "$work"
  "$bin/skein" head --env Latency-v0 --recipe study --name "$name" --envs $workers --envs-per-runner 1 --port 0 --http-port 0 \
    --steps $((iteration * iterations)) --no-eval --set rollout.steps_per_iteration=$iteration \
    --set rollout.fragment_steps=4 --set sync.mode="$mode" --set env.latency.slow_envs="$slow_envs" \
    --set ppo.minibatch_size=256 --set ppo.epochs=2 > "$name.log" 2>&1 &
  local head=$! address=
  until address=$(grep -oE 'skein worker --address [^ ]+' "$name.log" 2>/dev/null | head -1 | cut -d' ' -f4) && [ -n "$address" ]; do
    kill -0 $head || { cat "$name.log" >&2; exit 1; }
    sleep 0.1
  done
  for ((i = 0; i < workers; ++i)); do
    SKEIN_LATENCY_FACTOR=$([ $i -lt "$slow_workers" ] && echo 10 || echo 1) \
      "$bin/skein" worker --address "$address" --runners 1 > "$name-worker$i.log" 2>&1 &
  done
  wait $head || { tail -5 "$name.log" >&2; exit 1; }
  wait
  grep -oE 'stale [0-9,]+' "$name.log" | tail -1 | sed 's/stale //' > "$name.stale"
  grep -oE 'digest [0-9a-f]+' "$name.log" | tail -1 | sed 's/digest //' > "$name.digest"
  # Env steps and seconds of the third and the last iteration.
  sed -nE 's/.*"env_steps":([0-9]+).*"seconds":([0-9.]+).*/\1 \2/p' "runs/$name/metrics.jsonl" |
    awk 'NR == 3 { s = $1; t = $2 } END { printf "%.1f", ($1 - s) / ($2 - t) }'
}

echo "| mode | slow | env-steps/s | share | stale steps | digest |"
echo "|---|---|---|---|---|---|"
for mode in on_policy overlapped async; do
  none=$(run "$mode-none" $mode 0 0)
  worker=$(run "$mode-worker" $mode 1 0)
  env=$(run "$mode-env" $mode 0 1)
  for case in none worker env; do
    echo "| $mode | $case | ${!case} | $(awk "BEGIN { printf \"%.3f\", ${!case} / $none }") | $(cat "$work/$mode-$case.stale") |" \
      "$(cat "$work/$mode-$case.digest") |"
  done
done
