# SPDX-License-Identifier: Apache-2.0
# A real Slurm on this machine, for tests: munged, slurmctld and one slurmd for each of six "nodes" n1 to n6, all as
# root and all in a temporary folder, on free ports. To be sourced by bash.
#   begin_test            makes $folder, starts Slurm, and sees to it that everything ends with the script
#   give_up MESSAGE       the test has failed; logs are printed
#   wait_for SECONDS WHAT COMMAND...
#   lose_node NODE        what a power cut does: its slurmd, its steps and their tasks are killed with -9
#   submit_cartpole SCRIPT [ENVIRONMENT=VALUE...]   a job of deploy/slurm on configs/cartpole_ppo.yaml; see there
# Partition `all` has the six nodes, `learner` n1 and n2, `actors` the others. Needs Debian's slurm-wlm (built with
# --enable-multiple-slurmd) and munge, and root. SKEIN_ALLOW_NO_SLURM=1: without them a test is skipped (77) instead of
# failing.
set -euo pipefail

readonly root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
readonly bin=${SKEIN_BIN:?the folder of the skein binary}
folder=
job=
put_forward=
slurm_folder=
declare -A slurm_pids=()

give_up() {
  echo "$(basename "$0"): $*" >&2
  exit 1
}

cannot_run() {
  echo "$(basename "$0"): $*; set SKEIN_ALLOW_NO_SLURM=1 to skip this test" >&2
  [[ ${SKEIN_ALLOW_NO_SLURM:-} == 1 ]] && exit 77
  exit 1
}

wait_for() {
  local deadline=$((SECONDS + $1)) what=$2
  shift 2
  until "$@"; do
    ((SECONDS < deadline)) || give_up "waited in vain for $what"
    if [[ -n $job ]] && job_is FAILED; then give_up "the job has failed before $what"; fi
    sleep 0.1
  done
}

clean_up() {
  local code=$? file
  trap - EXIT
  set +e
  if ((code != 0 && code != 77)); then
    { squeue --all --states=all; squeue --all --steps; sinfo --Node; } >&2
    for file in "$folder"/job.out "$folder"/runs/*/log/*.log "$folder"/slurm/*.log; do
      [[ -s $file ]] && echo "--- ${file#"$folder"/}" && tail -n 80 "$file"
    done >&2
  fi
  stop_slurm
  rm -rf "$folder"
  exit "$code"
}

begin_test() {
  PATH=$PATH:/usr/sbin:/sbin
  local program
  for program in munged slurmctld slurmd sbatch; do
    command -v "$program" >/dev/null ||
      cannot_run "there is no $program; scripts/install_dependencies.sh cluster installs it"
  done
  [[ $(id -u) == 0 ]] || cannot_run "slurmd needs root"
  [[ -x $bin/skein ]] || give_up "$bin/skein: no such program"
  folder=$(mktemp -d)
  trap clean_up EXIT
  trap 'exit 130' INT TERM
  start_slurm
}

# Processes in whose environment there is the line $1: slurmd and its steps inherit ours, tasks are given theirs.
pids_with() {
  local file pid
  for file in /proc/[0-9]*/environ; do
    pid=${file//[!0-9]/}
    if [[ $pid != "$$" ]] && grep -qzxF -- "$1" "$file"; then echo "$pid"; fi
  done 2>/dev/null || true
}

free_ports() { # COUNT; the first of so many in a row that nobody listens on.
  local first used
  used=$(ss -Htan | awk '{ sub(/.*:/, "", $4); print $4 }')
  for ((;;)); do
    first=$((16000 + RANDOM % 12000))
    if ! seq "$first" $((first + $1 - 1)) | grep -qxF -f - <(echo "$used"); then
      echo "$first"
      return
    fi
  done
}

start_node() {
  SKEIN_TEST_NODE=$1 slurmd -D -N "$1" >"$slurm_folder/slurmd.$1.out" 2>&1 &
  slurm_pids[$1]=$!
  disown
}

is_ours() { grep -qzxF "SLURM_CONF=$SLURM_CONF" "/proc/$1/environ" 2>/dev/null; } # PID

lose_node() {
  local pid
  kill -KILL "${slurm_pids[$1]}" 2>/dev/null || true
  # A step is a process of its own, which outlives its slurmd.
  for pid in $(pids_with "SKEIN_TEST_NODE=$1") $(pids_with "SLURMD_NODENAME=$1"); do
    if is_ours "$pid"; then kill -KILL "$pid" 2>/dev/null || true; fi
  done
}

start_slurm() {
  slurm_folder=$folder/slurm
  local host first
  host=$(hostname)
  first=$(free_ports 7)
  mkdir -p "$slurm_folder/state"
  chmod 755 "$folder" "$slurm_folder"
  export SLURM_CONF=$slurm_folder/slurm.conf
  cat >"$SLURM_CONF" <<CONF
ClusterName=skein
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=$first
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=$slurm_folder/munge.sock
CredType=cred/munge
StateSaveLocation=$slurm_folder/state
SlurmdSpoolDir=$slurm_folder/spool.%n
SlurmctldPidFile=$slurm_folder/slurmctld.pid
SlurmdPidFile=$slurm_folder/slurmd.%n.pid
SlurmctldLogFile=$slurm_folder/slurmctld.log
SlurmdLogFile=$slurm_folder/slurmd.%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
JobCompType=jobcomp/none
MpiDefault=none
SwitchType=switch/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SlurmdParameters=config_overrides
ReturnToService=2
SlurmctldTimeout=30
SlurmdTimeout=6
InactiveLimit=0
KillWait=10
MinJobAge=300
SchedulerType=sched/backfill
SchedulerParameters=bf_interval=1,sched_min_interval=0
NodeName=n[1-6] NodeHostname=$host NodeAddr=127.0.0.1 Port=[$((first + 1))-$((first + 6))] CPUs=4 RealMemory=1000 State=UNKNOWN
PartitionName=all Nodes=n[1-6] Default=YES MaxTime=INFINITE State=UP
PartitionName=learner Nodes=n[1-2] MaxTime=INFINITE State=UP
PartitionName=actors Nodes=n[3-6] MaxTime=INFINITE State=UP
CONF
  (umask 077 && head -c 1024 /dev/urandom >"$slurm_folder/munge.key")
  munged --foreground --force --key-file="$slurm_folder/munge.key" --socket="$slurm_folder/munge.sock" \
    --pid-file="$slurm_folder/munged.pid" --log-file="$slurm_folder/munged.log" --seed-file="$slurm_folder/munged.seed" \
    >"$slurm_folder/munged.out" 2>&1 &
  slurm_pids[munged]=$!
  wait_for 30 "munged" test -S "$slurm_folder/munge.sock"
  slurmctld -D >"$slurm_folder/slurmctld.out" 2>&1 &
  slurm_pids[slurmctld]=$!
  local node
  for node in n1 n2 n3 n4 n5 n6; do start_node "$node"; done
  wait_for 60 "six idle nodes" nodes_idle 6
}

nodes_idle() { (($(sinfo -h -p all -N -t idle -o %N 2>/dev/null | wc -l) == $1)); }

stop_slurm() {
  [[ -n $slurm_folder ]] || return 0
  local pid i
  for pid in "${slurm_pids[@]}"; do kill -TERM "$pid" 2>/dev/null || true; done
  # Besides, whatever has the configuration of this cluster in its environment: steps, and the tasks of jobs that still run.
  for ((i = 0; i < 50; ++i)); do
    pids_with "SLURM_CONF=$slurm_folder/slurm.conf" >"$slurm_folder/left"
    for pid in $(<"$slurm_folder/left"); do kill -TERM "$pid" 2>/dev/null || true; done
    if ((i > 20)); then
      for pid in $(<"$slurm_folder/left") "${slurm_pids[@]}"; do kill -KILL "$pid" 2>/dev/null || true; done
    fi
    [[ -s $slurm_folder/left ]] || break
    sleep 0.2
  done
}

# A job of deploy/slurm as people submit it, two CPUs for each task, and everything on the loopback. The
# target is in $folder/cartpole.yaml, which the job reads whenever it starts; at first it is never reached, so that there
# is time for whatever is to happen to the run.
submit_cartpole() { # SCRIPT [NAME=VALUE...]
  local script=$1
  shift
  sed 's/^total_steps:.*/total_steps: 1000000000/' "$root/configs/cartpole_ppo.yaml" >"$folder/cartpole.yaml"
  sed -E "/^#SBATCH/ { s/ --gpus-per-node=[0-9]+//; s/--ntasks-per-node=4/--ntasks-per-node=1/; s/(--cpus-per-task)=[0-9]+/\\1=2/
    s/--nodes=4/--nodes=3/; s/--nodes=8/--nodes=3/; s|--output=[^ ]*|--output=$folder/job.out| }" \
    "$root/deploy/slurm/$script" >"$folder/$script"
  job=$(cd "$root" && env SKEIN_BIN="$bin" SKEIN_RUNS="$folder/runs" SKEIN_HOST=127.0.0.1 SKEIN_LISTEN=127.0.0.1 \
    SKEIN_PORT="$(free_ports 2)" SKEIN_DATA_PORT=0 SKEIN_RETRY_SECONDS=2 "$@" sbatch --parsable "$folder/$script" \
    "$folder/cartpole.yaml" run --envs 32 --set checkpoint.interval_steps=102400)
}

# Of the run: env steps of its last iteration; whether there is a checkpoint; whether it has come further than $1.
trained_steps() { tail -n 1 "$folder/runs/run/metrics.jsonl" 2>/dev/null | sed -nE 's/.*"env_steps":([0-9]+).*/\1/p'; }
has_checkpoint() { compgen -G "$folder/runs/run/checkpoints/step_*/DONE" >/dev/null; }
beyond() { (($(trained_steps) + 0 > $1)); }
said() { grep -qE -- "$1" "$folder/job.out"; } # PATTERN
job_is() { [[ $(squeue --noheader --states=all --jobs="$job" --format=%T | sort -u) == "$1" ]]; }
restarted() { grep -q "Restarts=$1 " <(scontrol show job "$job"); }

# As long again as the run has gone, and 200,000 env steps more; whole iterations. Read when the job starts again.
set_target() {
  target=$((($(trained_steps) * 2 + 200000) / 1024 * 1024))
  sed -i "s/^total_steps:.*/total_steps: $target/" "$folder/cartpole.yaml"
}

# Slurm leaves a requeued job alone for two minutes. Here it need not, but within a second of its end nodes refuse it.
starts_again() {
  if [[ -z $put_forward ]] && restarted 1 && job_is PENDING; then
    scontrol update JobId="$job" StartTime=now+3 2>/dev/null && put_forward=yes
  fi
  said '^resuming at'
}

# The job was started again once, from a checkpoint; then it reached the target and 475, and no env step is missing.
expect_success() {
  wait_for 180 "the end of the job" job_has_ended
  job_is COMPLETED || give_up "the job has ended as $(squeue --noheader --states=all --jobs="$job" --format=%T)"
  restarted 1 || give_up "the job was not started again once"
  local from mean account
  from=$(sed -nE 's/^resuming at ([0-9,]+) of .*/\1/p' "$folder/job.out")
  ((${from//,/} > 0)) || give_up "resumed at '$from', want one number above 0"
  mean=$(sed -nE 's/.*"return_mean": ?([0-9.]+).*/\1/p' "$folder/runs/run/eval.json")
  awk -v mean="$mean" 'BEGIN { exit !(mean >= 475) }' || give_up "return $mean, want at least 475"
  account=$(grep '^step account:' "$folder/job.out" | tail -n 1 | tr -d ,)
  awk -v target="$target" '{ exit !($4 == $7 + $10 + $13 + $16 && $7 == target) }' <<<"$account" ||
    give_up "$account, want a balance with trained = $target"
  echo "resumed at $from; $account; return $mean"
}

job_has_ended() {
  case $(squeue --noheader --states=all --jobs="$job" --format=%T | sort -u) in
    *PENDING* | *RUNNING* | *COMPLETING* | *CONFIGURING* | *REQUEUE*) return 1 ;;
  esac
}
