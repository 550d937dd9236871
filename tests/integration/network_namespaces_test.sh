#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A head and two workers on three "nodes": network namespaces joined by a bridge in a fourth. CartPole-v1 must reach 475
# although one worker is killed with -9 on the way and another joins. Nothing outside the namespaces is touched.
# Needs iproute2, and root or a kernel that lets users make namespaces. SKEIN_ALLOW_NO_NETNS=1: without them it is
# skipped (77) instead of failing. Who calls must have a token: the addresses are public ones.
set -euo pipefail

readonly bin=${SKEIN_BIN:?the folder of the skein binary}
readonly config=$(cd "$(dirname "$0")/../.." && pwd)/configs/cartpole_ppo.yaml
readonly prefix=skein-$$
readonly head_address=10.77.0.1
folder=
pids=()

give_up() {
  echo "network_namespaces_test: $*" >&2
  exit 1
}

cannot_run() {
  echo "network_namespaces_test: $*; run as root with iproute2, or set SKEIN_ALLOW_NO_NETNS=1 to skip" >&2
  [[ ${SKEIN_ALLOW_NO_NETNS:-} == 1 ]] && exit 77
  exit 1
}

clean_up() {
  local code=$?
  trap - EXIT
  if ((${#pids[@]} > 0)); then
    kill -TERM "${pids[@]}" 2>/dev/null || true
    for ((i = 0; i < 120; ++i)); do
      kill -0 "${pids[@]}" 2>/dev/null || break
      sleep 0.1
    done
    kill -KILL "${pids[@]}" 2>/dev/null || true
    wait "${pids[@]}" 2>/dev/null || true
  fi
  for node in switch head worker1 worker2; do
    ip netns del "$prefix-$node" 2>/dev/null || true
  done
  if [[ -n $folder ]]; then
    if ((code != 0 && code != 77)); then tail -n 30 "$folder"/*.log >&2 || true; fi
    rm -rf "$folder"
  fi
  exit "$code"
}

# wait_for SECONDS WHAT COMMAND...: until the command succeeds.
wait_for() {
  local deadline=$((SECONDS + $1)) what=$2
  shift 2
  until "$@"; do
    ((SECONDS < deadline)) || give_up "waited in vain for $what"
    sleep 0.05
  done
}

on() { # NODE COMMAND...
  local node=$1
  shift
  ip netns exec "$prefix-$node" "$@"
}

add_node() { # NODE ADDRESS
  ip netns add "$prefix-$1"
  ip -n "$prefix-switch" link add "$1" type veth peer name eth0 netns "$prefix-$1"
  ip -n "$prefix-switch" link set "$1" master bridge up
  ip -n "$prefix-$1" addr add "$2/24" dev eth0
  ip -n "$prefix-$1" link set eth0 up
  ip -n "$prefix-$1" link set lo up
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
status_shows() { on head "$bin/skein" status --address "$head_address:7070" 2>/dev/null | grep -qE "$1"; }

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

trap clean_up EXIT
trap 'exit 130' INT TERM
command -v ip >/dev/null || cannot_run "there is no ip command"
if [[ $(id -u) != 0 ]]; then
  # Root of a user namespace of its own will do; `ip netns` keeps its names in a /run of its own.
  unshare --user --map-root-user --net --mount true 2>/dev/null || cannot_run "network namespaces need root"
  exec unshare --user --map-root-user --net --mount bash -c 'mount -t tmpfs tmpfs /run && exec bash "$0"' "$0"
fi
[[ -x $bin/skein ]] || give_up "$bin/skein: no such program"
ip netns add "$prefix-switch" 2>/dev/null || cannot_run "this system allows no network namespace"
ip -n "$prefix-switch" link add bridge type bridge 2>/dev/null || cannot_run "this system allows no bridge"
ip -n "$prefix-switch" link set bridge up
add_node head "$head_address"
add_node worker1 10.77.0.2
add_node worker2 10.77.0.3
folder=$(mktemp -d)
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
metrics_from_head 10.77.0.2 "$port" | grep -q '^skein_actor_env_steps_total' ||
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
