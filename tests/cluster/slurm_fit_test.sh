#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# skein fit as two tasks of a step on a real Slurm, on a node each: they find each other by Slurm's variables, and train
# the same bits as one process.
. "$(dirname "${BASH_SOURCE[0]}")/slurm_cluster.sh"

begin_test
threes=(3 '3 3' '3 3 3' '3 3 3 3')
for ((i = 0; i < 400; ++i)); do echo "1 2 ${threes[i * 7 % 4]} 4"; done >"$folder/normal.txt"
fit=("$bin/skein" fit --data "$folder/normal.txt" --name same --set model.hidden=16 --set model.embedding=16
  --set train.epochs=5 --set train.batch_size=64 --port -1)
digest() { sed -nE 's/.*, digest ([0-9a-f]{16}).*/\1/p' "$folder/$1.out" | tail -n 1; }

"${fit[@]}" --run-dir "$folder/runs/one" >"$folder/one.out" || give_up "one process failed: $(<"$folder/one.out")"
# Ranks meet at the first node, by its name, which only Slurm knows on this machine.
{ cat /etc/hosts && printf '127.0.0.1 n%d\n' 1 2 3 4 5 6; } >"$folder/hosts"
srun --nodes=2 --ntasks=2 --cpus-per-task=2 \
  unshare --mount bash -c 'mount --bind "$0" /etc/hosts && exec "$@"' "$folder/hosts" \
  "${fit[@]}" --run-dir "$folder/runs/two" >"$folder/two.out" 2>&1 || give_up "two tasks failed: $(<"$folder/two.out")"
grep -q '2 ranks' "$folder/two.out" || give_up "there are not two ranks: $(<"$folder/two.out")"
[[ -n $(digest one) && $(digest two) == "$(digest one)" ]] ||
  give_up "one process has digest '$(digest one)', two tasks '$(digest two)'"
echo "digest $(digest two)"
