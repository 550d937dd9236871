#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# link_down.sh SKEIN_HISTORY=FOLDER: a head and two workers on three "nodes", network namespaces joined by a bridge in a
# fourth. The link of one worker is taken down for 15 s: it is expelled, its memory grows by less than 32 MiB, training
# goes on without it, and when the link is up again it joins and is trained on again. Nothing outside the namespaces is
# touched.
# 77: this system allows no network namespaces.
set -euo pipefail
. "$(dirname "$0")/../testing/nodes.sh"

readonly bin=${SKEIN_BIN:?the folder of the skein binary}
readonly history_variable=${1:?SKEIN_HISTORY=FOLDER} history=${1#*=}
readonly config=$(cd "$(dirname "$0")/../.." && pwd)/configs/cartpole_ppo.yaml
export SKEIN_INSECURE=true  # Nobody else is in these networks.
readonly head_address=10.78.0.1

start() { # NODE LOG ARGUMENT...
  local node=$1 log=$2
  shift 2
  ip netns exec "$prefix-$node" env "$history_variable" "$bin/skein" "$@" >"$folder/$log.log" 2>&1 &
  pids+=("$!")
}

recorded() { grep -qhE "$1" "$history"/*.jsonl; }
member_of() { sed -nE 's/^actor joined member=(actor-[0-9]+) .*/\1/p' "$folder/$1.log" | tail -n 1; }
has_joined() { [[ -n $(member_of "$1") ]]; }
accepted_from() { recorded "\"event\":\"batch\",\"actor\":\"$1\".*\"result\":\"accepted\""; }
count_accepted() { cat "$history"/*.jsonl | grep -cE "\"event\":\"batch\",\"actor\":\"$1\".*\"result\":\"accepted\"" || true; }
more_than() { (($(count_accepted "$1") > $2)); }
# KiB resident of all that runs on a node.
memory_of() {
  ip netns pids "$prefix-$1" | while read -r pid; do cat "/proc/$pid/status" 2>/dev/null || true; done |
    awk '/^VmRSS:/ { sum += $2 } END { print sum + 0 }'
}
memory=0
memory_is_bounded() {
  local now
  now=$(memory_of worker1)
  ((now > 0)) || give_up "the worker that is cut off has ended"
  ((now < memory + 32 * 1024)) || give_up "the worker that is cut off uses $now KiB, and $memory before"
}

enter_nodes "$0" "$@"
add_node head "$head_address"
add_node worker1 10.78.0.2
add_node worker2 10.78.0.3

start head head head --config "$config" --host "$head_address" --runs-dir "$folder/runs" --name run \
  --steps 1000000000 --set coordinator.lease_seconds=2 --set coordinator.heartbeat_seconds=0.2 ${SKEIN_HEAD_FLAGS:-}
start worker1 cut worker --address "$head_address:7070" --runners 1
wait_for 60 "the first worker to join" has_joined cut
start worker2 stays worker --address "$head_address:7070" --runners 1
wait_for 60 "the second worker to join" has_joined stays
cut=$(member_of cut)
stays=$(member_of stays)
wait_for 60 "data of both" accepted_from "$cut"
wait_for 60 "data of both" accepted_from "$stays"

memory=$(memory_of worker1)
down_since=$SECONDS
ip -n "$prefix-switch" link set worker1 down
wait_for 30 "the worker that is cut off to be expelled" recorded "\"event\":\"expire\",\"member\":\"$cut\""
before=$(count_accepted "$stays")
wait_for 60 "training to go on without it" more_than "$stays" $((before + 20))
while memory_is_bounded && ((SECONDS < down_since + 15)); do sleep 0.2; done
ip -n "$prefix-switch" link set worker1 up

# It hears of the end of its lease from the coordinator or from the learner, whichever it reaches first, or from both.
newest_name() { sed -nE 's/.*joined (again as |member=)(actor-[0-9]+) .*/\2/p' "$folder/cut.log" | tail -n 1; }
has_joined_again() { [[ $(newest_name) != "$cut" ]]; }
is_trained_on_again() { accepted_from "$(newest_name)"; }
wait_for 60 "the worker to join again" has_joined_again
wait_for 60 "data of it again" is_trained_on_again
