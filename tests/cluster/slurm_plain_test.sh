#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# deploy/slurm/plain.sh on a real Slurm: two learners (ranks; three are asked for) on the first node, an actor on each
# of two others. An actor is killed and starts again; then the job is told that its time is nearly up: it writes a
# checkpoint, goes back into the queue by itself, goes on from there and learns CartPole-v1.
. "$(dirname "${BASH_SOURCE[0]}")/slurm_cluster.sh"

begin_test
submit_cartpole plain.sh SKEIN_LEARNERS=3
wait_for 90 "a checkpoint" has_checkpoint
wait_for 60 "two actors" said '^actor joined member=actor-2'
said '^2 ranks instead of 3: ' || give_up "there are more ranks than actors"

node=$(scontrol show hostnames "$(squeue --noheader --jobs="$job" --format=%N)" | tail -n 1)
for pid in $(pids_with "SLURMD_NODENAME=$node"); do
  if [[ $(<"/proc/$pid/comm") == skein-actor ]] && is_ours "$pid"; then kill -KILL "$pid"; fi
done
wait_for 60 "the actor to start again" said '^actor joined member=actor-3'
job_is RUNNING || give_up "the job did not outlive one of its actors"

set_target
# As Slurm does it so long before the time limit as --signal says.
scancel --batch --signal=USR1 "$job"
wait_for 90 "the job to go back into the queue" restarted 1
said 'back into the queue: learners ended with code 0, time_is_up' || give_up "the learners did not end in order"
wait_for 120 "the job to start again" starts_again
expect_success
