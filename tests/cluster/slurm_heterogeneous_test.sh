#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# deploy/slurm/heterogeneous.sh on a real Slurm: two learners (ranks) and three actors, on a node each. An actor's node
# dies, and the job goes on without it, also when Slurm has noticed. Then the job is requeued: it goes on from its
# checkpoint, on other nodes, and learns CartPole-v1.
. "$(dirname "${BASH_SOURCE[0]}")/slurm_cluster.sh"

begin_test
submit_cartpole heterogeneous.sh
wait_for 90 "a checkpoint" has_checkpoint
wait_for 60 "three actors" said '^actor joined member=actor-3'

actors=($(scontrol show hostnames "$(squeue --noheader --jobs="$job" --format='%P %N' | sed -n 's/^actors //p')"))
((${#actors[@]} == 3)) || give_up "actors are on '${actors[*]}', want three nodes"
lost=${actors[2]}
lose_node "$lost"
node_is_down() { grep -q '^down' <(sinfo --noheader --nodes="$lost" --format=%T); }
wait_for 90 "Slurm to notice that $lost is gone" node_is_down
wait_for 60 "the lease of its actor to end" grep -q 'actor-. on .* fell silent' "$folder/runs/run/log/coordinator.log"
job_is RUNNING || give_up "the job did not outlive one of its nodes"
wait_for 60 "training without $lost" beyond $(($(trained_steps) + 10240))

set_target
scontrol requeue "$job"
wait_for 120 "the job to start again" starts_again
expect_success
