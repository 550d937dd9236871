#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# skein sweep on a real Slurm: in a job each training is a step with its share; then in a job array, whose jobs share
# one sweep. The job that leads is cancelled, and one that lends its place: others go on. No trial is lost, trained
# twice or marked failed.
. "$(dirname "${BASH_SOURCE[0]}")/slurm_cluster.sh"

space() { # NAME; then lines of the space file.
  printf '%s\n' "sampler: {kind: grid}" "test_seeds: 0" "${@:2}" "space:" \
    "  ppo.lr: [1.0e-2, 3.0e-3, 1.0e-3, 3.0e-4]" >"$folder/$1.yaml"
}
sweep() { # NAME STEPS
  echo "'$bin/skein' sweep --config configs/cartpole_ppo.yaml --space '$folder/$1.yaml' --runs-dir '$folder/runs'" \
    "--steps $2 --set checkpoint.interval_steps=2048"
}
states() { sed 1d "$folder/runs/$1/sweep.csv" 2>/dev/null | cut -d, -f2 | sort | uniq -c | xargs; } # NAME
submit() { # NAME STEPS FLAGS...
  (cd "$root" && sbatch --parsable --output="$folder/$1-%a.out" "${@:3}" --wrap "$(sweep "$1" "$2")")
}

begin_test
space steps "resources: {cpus: 2, memory: 300MiB}"
job=$(submit steps 4096 --ntasks=2 --cpus-per-task=2)
has_step() { [[ -n $(squeue --noheader --steps --jobs="$job" --format=%i | grep -v batch) ]]; }
wait_for 60 "a step" has_step
step=$(squeue --noheader --steps --jobs="$job" --format=%i | grep -v batch | head -n 1)
grep -q 'CPUs=2 ' <(scontrol show step "$step") ||
  give_up "a training's step does not have two CPUs"
wait_for 120 "the end of the job" job_has_ended
job_is COMPLETED || give_up "the job has ended as $(squeue --noheader --states=all --jobs="$job" --format=%T)"
grep -q '2 slots of 2 cores, 300 MiB' "$folder"/steps-*.out || give_up "no share is said"
[[ $(states steps) == '4 complete' ]] || give_up "trials: $(states steps)"

space array
job=
array=$(submit array 262144 --array=0-2 --ntasks=1 --cpus-per-task=2)
leads() { grep -qs '^sweep: ' "$folder/array-$1.out"; }
someone_leads() { leads 0 || leads 1 || leads 2; }
three_places() { grep -qsE '^places in the jobs of the array: [0-9]+-0 [0-9]+-0 [0-9]+-0$' "$folder"/array-?.out; }
three_train() {
  (($(compgen -G "$folder/runs/array/trial-*/checkpoints/step_*/DONE" | grep -o 'trial-[0-9]*' | sort -u | wc -l) >= 3))
}
wait_for 60 "a leader" someone_leads
wait_for 60 "three places" three_places
wait_for 120 "three trainings" three_train
for leader in 0 1 2; do leads "$leader" && break; done
lender=$(((leader + 1) % 3))
scancel "${array}_$lender"
sleep 3
[[ -z $(grep 'has failed' "$folder"/array-?.out) ]] || give_up "a trial has failed"
scancel "${array}_$leader"
last=$((3 - leader - lender))
wait_for 60 "another leader" leads "$last"
ended() { [[ -z $(squeue --noheader --jobs="$array" 2>/dev/null) ]]; }
wait_for 240 "the end of the array" ended
[[ $(states array) == '4 complete' ]] || give_up "trials: $(states array)"
[[ $(sed 1d "$folder/runs/array/sweep.csv" | cut -d, -f8 | sort -u) == 0 ]] || give_up "trainings have failed"
grep -q '^best: ' "$folder/array-$last.out" || give_up "no best trial is said"
[[ -z $(ls "$folder/runs/array/places") ]] || give_up "places are left"
echo "$(states array); led by $leader, then by $last"
