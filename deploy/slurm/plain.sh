#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# One training run on N equal nodes: coordinator and learners on the first, an actor on each of the others (on the same
# one if N is 1).
#
#   sbatch deploy/slurm/plain.sh configs/half_cheetah_ppo.yaml cheetah \
#       --envs 1536 --envs-per-runner 16 --set rollout.steps_per_iteration=24576 \
#       --set ppo.minibatch_size=1024
#
# Three nodes that act have 96 runners, one a CPU; each steps 16 environments: 1536 altogether, 16 steps an iteration.
#
# Arguments: configuration, name of the run, then whatever else `skein head` takes. The run folder is runs/NAME in the
# folder you submit from, which all nodes must see under the same path. Submitting again, or requeueing, goes on from
# the last checkpoint. More: docs/cluster.md.
#
# Change to what you have: nodes, CPUs, GPUs (here on every node; heterogeneous.sh asks for them where learners are
# only), time; add partition and account.
#SBATCH --job-name=skein
#SBATCH --nodes=4 --ntasks-per-node=1 --cpus-per-task=32
##SBATCH --gpus-per-node=4
#SBATCH --time=24:00:00
#SBATCH --output=%x-%j.out --open-mode=append
# Started again after preemption or when the first node is lost; the others may be lost without harm.
#SBATCH --requeue --no-kill
# 180 s before the time is up: a checkpoint, and back into the queue. More if an update and a checkpoint take longer.
#SBATCH --signal=B:USR1@180

config=${1:?the configuration, e.g. configs/half_cheetah_ppo.yaml}
name=${2:?the name of the run}
shift 2

bin=${SKEIN_BIN:-$PWD/build/release} # The programs, on all nodes.
runs=${SKEIN_RUNS:-$PWD/runs}        # Run folders, on all nodes.
host=${SKEIN_HOST:-$(hostname)}      # This node's name in the network that trajectories are to take.
listen=${SKEIN_LISTEN:-0.0.0.0}      # Where to listen: in all networks.
# Callers must have this secret of the job's, a file that all nodes see. With SKEIN_TLS_CERT, _KEY and _CA set (those of
# node.crt, see docs/security.md) all connections are encrypted, too: Slurm passes them on.
token=${SKEIN_TOKEN_FILE:-$PWD/.skein-token-$SLURM_JOB_ID}
# Coordinator, and the status page on the next one. Its own for each job, from 20000 to 29999.
port=${SKEIN_PORT:-$((20000 + SLURM_JOB_ID % 500 * 20))}
data_port=${SKEIN_DATA_PORT:-$((port + 2))} # Of a node's first learner, the next one for each further; 0 = free ones.
ranks=${SKEIN_LEARNERS:-${SLURM_GPUS_ON_NODE:-1}} # One for each GPU of the first node.
cpus=${SLURM_CPUS_PER_TASK:-1}       # Runners of an actor: its node's CPUs.

mapfile -t nodes < <(scontrol show hostnames "$SLURM_JOB_NODELIST")
actor_nodes=("${nodes[@]:1}")
((${#nodes[@]} > 1)) || actor_nodes=("${nodes[0]}")
if ((ranks > ${#actor_nodes[@]})); then # An actor feeds one rank at a time.
  echo "${#actor_nodes[@]} ranks instead of $ranks: each needs an actor, and so many nodes have one" >&2
  ranks=${#actor_nodes[@]}
fi

if [[ -z ${SKEIN_TOKEN_FILE:-} ]]; then
  (umask 077 && rm -f "$token" && head -c 32 /dev/urandom | od -An -tx1 | tr -d ' \n' >"$token")
  trap 'rm -f "$token"' EXIT
fi
export SKEIN_TOKEN_FILE=$token

# TERM to the learners' step alone: they write a checkpoint and end.
stop_learners() {
  scancel --signal=TERM "$(squeue --noheader --steps --jobs="$SLURM_JOB_ID" --format='%j %i' | sed -n 's/^learner //p')"
}
ending=
trap 'ending=time_is_up; stop_learners' USR1
# Cancelled, preempted or requeued by others: Slurm tells the steps itself.
trap 'ending=by_slurm' TERM

"$bin/skein" head --config "$config" --name "$name" --runs-dir "$runs" --learners 0 --no-eval \
  --host "$listen" --announce-host "$host" --port "$port" --http-port $((port + 1)) "$@" &
head=$!
until "$bin/skein" status --address "$host:$port" >/dev/null 2>&1; do
  kill -0 "$head" 2>/dev/null || { wait "$head" && exit 1 || exit; } # It has said why.
  sleep 1
done

# A learner finds its rank in Slurm's variables. When one fails all end.
srun --job-name=learner --overlap --kill-on-bad-exit=1 --nodes=1 --nodelist="${nodes[0]}" --ntasks="$ranks" \
  --ntasks-per-node="$ranks" --cpus-per-task=$((cpus > ranks ? cpus / ranks : 1)) \
  "$bin/skein-learner" --coordinator "$host:$port" --run-dir "$runs/$name" \
  --listen "$listen:$data_port" --metrics "$listen:0" --timeout 2m &
learners=$!

# One step for each node: neither a lost node nor an actor that fails takes others along. One that fails starts again.
collect() { # NODE
  until srun --job-name=actor --overlap --no-kill --nodes=1 --nodelist="$1" --ntasks=1 --cpus-per-task="$cpus" \
    "$bin/skein" worker --address "$host:$port" --runners "$cpus" --metrics "$listen:0" --timeout 2m; do
    sleep "${SKEIN_RETRY_SECONDS:-30}"
  done
}
for node in "${actor_nodes[@]}"; do
  collect "$node" &
  collecting+=($!)
done
end() {
  kill "${collecting[@]}" 2>/dev/null
  if [[ $token == "$PWD/.skein-token-$SLURM_JOB_ID" ]]; then rm -f "$token"; fi
}
trap end EXIT

while kill -0 "$learners" 2>/dev/null; do wait "$learners"; done # A trap ends `wait` before its time.
wait "$learners"
code=$?
kill -TERM "$head" 2>/dev/null
wait "$head"

if [[ $ending == time_is_up ]] ||
  { [[ -z $ending ]] && ((code == 75 || code > 128)) && ((${SLURM_RESTART_COUNT:-0} < 20)); }; then
  # 75 or killed: a rank, a node or the coordinator was lost; they start again from the last checkpoint.
  echo "back into the queue: learners ended with code $code${ending:+, $ending}"
  scontrol requeue "$SLURM_JOB_ID"
elif [[ -z $ending ]] && ((code == 0)); then
  "$bin/skein" eval --checkpoint "$runs/$name" --json | tee "$runs/$name/eval.json"
fi
exit "$code"
