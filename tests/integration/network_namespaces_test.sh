#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A head and two workers on three "nodes": network namespaces joined by a bridge in a fourth. CartPole-v1 must reach 475
# although one worker is killed with -9 on the way and another joins. Nothing outside the namespaces is touched.
# Needs iproute2, and root or a kernel that lets users make namespaces. SKEIN_ALLOW_NO_NETNS=1: without them it is
# skipped (77) instead of failing. Who calls must have a token: the addresses are public ones.
set -euo pipefail
. "$(dirname "$0")/../testing/nodes.sh"

readonly bin=${SKEIN_BIN:?the folder of the skein binary}
readonly config=$(cd "$(dirname "$0")/../.." && pwd)/configs/cartpole_ppo.yaml
readonly head_address=10.77.0.1

# Skipped only where somebody said so.
cannot_run() {
  echo "network_namespaces_test: $*; run as root with iproute2, or set SKEIN_ALLOW_NO_NETNS=1 to skip" >&2
  [[ ${SKEIN_ALLOW_NO_NETNS:-} == 1 ]] && exit 77
  exit 1
}

on() { # NODE COMMAND...
  local node=$1
  shift
  ip netns exec "$prefix-$node" "$@"
}

start_worker() { # NODE LOG; its pid is in $started.
  # `ip netns exec` becomes the program, so this is the worker's own pid.
  ip netns exec "$prefix-$1" "$bin/skein" worker --address "$head_address:7070" --runners 1 --metrics 0.0.0.0:0 \
    >"$folder/$2.log" 2>&1 &
  started=$!
  pids+=("$started")
}

ended() { ! kill -0 "$1" 2>/dev/null; }
has_checkpoint() { compgen -G "$folder/runs/run/checkpoints/step_*/DONE" >/dev/null; }
status_shows() { grep -qE "$1" <(on head "$bin/skein" status --address "$head_address:7070" 2>/dev/null); }

# The page http://HOST:PORT/metrics as the head's node sees it.
metrics_from_head() { # HOST PORT
  on head bash -c "exec 3<>/dev/tcp/$1/$2
    printf 'GET /metrics HTTP/1.0\r\nAuthorization: Bearer %s\r\n\r\n' $(<"$SKEIN_TOKEN_FILE") >&3; cat <&3"
}

expect_success() { # WHO PID
  wait_for 30 "the end of $1" ended "$2"
  local code=0
  wait "$2" || code=$?
  ((code == 0)) || give_up "$1 ended with code $code"
}

enter_nodes "$0" "$@"
[[ -x $bin/skein ]] || give_up "$bin/skein: no such program"
add_node head "$head_address"
add_node worker1 10.77.0.2
add_node worker2 10.77.0.3
export SKEIN_TOKEN_FILE=$folder/token
(umask 077 && head -c 32 /dev/urandom | od -An -tx1 | tr -d ' \n' >"$SKEIN_TOKEN_FILE")

ip netns exec "$prefix-head" "$bin/skein" head --config "$config" --host "$head_address" --runs-dir "$folder/runs" \
  --name run --set checkpoint.interval_steps=10240 >"$folder/head.log" 2>&1 &
head=$!
pids+=("$head")
start_worker worker1 stays
stays=$started
start_worker worker2 dies
dies=$started

wait_for 60 "a checkpoint" has_checkpoint
status_shows '^actor-1 .*10\.77\.0\.' || give_up "the head does not know where actor-1 serves its metrics"
port=$(sed -nE 's/^actor joined .*metrics=[^ ]*:([0-9]+)$/\1/p' "$folder/stays.log")
grep -q '^skein_actor_env_steps_total' <(metrics_from_head 10.77.0.2 "$port") ||
  give_up "a worker's metrics cannot be read from the head's node"
on worker1 env -u SKEIN_TOKEN_FILE "$bin/skein" status --address "$head_address:7070" >/dev/null 2>&1 &&
  give_up "the head answers somebody without a token"

kill -KILL "$dies"
wait "$dies" 2>/dev/null || true
start_worker worker2 joins
joins=$started

wait_for 120 "the end of training" ended "$head"
expect_success head "$head"
expect_success "the worker that stayed" "$stays"
expect_success "the worker that joined" "$joins"

mean=$(sed -nE 's/.*"return_mean": ?([0-9.]+).*/\1/p' "$folder/runs/run/eval.json")
awk -v mean="$mean" 'BEGIN { exit !(mean >= 475) }' || give_up "return $mean, want at least 475"
steps=$(sed -nE 's/^actor left .*env_steps=([0-9]+)$/\1/p' "$folder/joins.log")
((steps > 0)) || give_up "the worker that joined collected nothing"
grep -E '^(step account|evaluation):' "$folder/head.log"
