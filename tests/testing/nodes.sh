# SPDX-License-Identifier: Apache-2.0
# To be sourced: "nodes" that are network namespaces, joined by a bridge in another namespace, the switch. Nothing outside
# them is touched. Needs iproute2, and root or a kernel that lets users make namespaces.
#   . nodes.sh
#   enter_nodes "$0" "$@"
#   add_node NAME ADDRESS
#   ip netns exec "$prefix-NAME" COMMAND...
#   ip -n "$prefix-switch" link set NAME down    # Cuts it off.
# What runs is in `pids`, files are in `folder`: both are gone at the end, and the ends of *.log in `folder` shown if the
# script fails. cannot_run, which the script may define anew, says what happens where namespaces are not allowed.
readonly prefix=skein-$$
nodes=(switch)
folder=
pids=()

give_up() {
  echo "$(basename "$0" .sh): $*" >&2
  exit 1
}

cannot_run() {
  echo "$(basename "$0" .sh): $*" >&2
  exit 77
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
  for node in "${nodes[@]}"; do
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
    sleep 0.1
  done
}

# enter_nodes SCRIPT ARGUMENT...: makes the switch and the folder. Who is not root begins SCRIPT anew in namespaces of
# its own.
enter_nodes() {
  trap clean_up EXIT
  trap 'exit 130' INT TERM
  command -v ip >/dev/null || cannot_run "there is no ip command"
  if [[ $(id -u) != 0 ]]; then
    # Root of a user namespace of its own will do; `ip netns` keeps its names in a /run of its own.
    unshare --user --map-root-user --net --mount true 2>/dev/null || cannot_run "network namespaces need root"
    exec unshare --user --map-root-user --net --mount bash -c 'mount -t tmpfs tmpfs /run && exec bash "$@"' bash "$@"
  fi
  ip netns add "$prefix-switch" 2>/dev/null || cannot_run "this system allows no network namespace"
  ip -n "$prefix-switch" link add bridge type bridge 2>/dev/null || cannot_run "this system allows no bridge"
  ip -n "$prefix-switch" link set bridge up
  folder=$(mktemp -d)
}

add_node() { # NODE ADDRESS
  nodes+=("$1")
  ip netns add "$prefix-$1"
  ip -n "$prefix-switch" link add "$1" type veth peer name eth0 netns "$prefix-$1"
  ip -n "$prefix-switch" link set "$1" master bridge up
  ip -n "$prefix-$1" addr add "$2/24" dev eth0
  ip -n "$prefix-$1" link set eth0 up
  ip -n "$prefix-$1" link set lo up
}
