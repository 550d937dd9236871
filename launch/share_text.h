// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "absl/strings/string_view.h"
#include "base/process/resource_share.h"

// Shares of a machine in the words of those that schedule processes.
namespace skein {

// Flags of sbatch and srun for a task with `share`, e.g. "--cpus-per-task=2 --mem=2048M --gres=gpu:1". Slurm counts
// whole CPUs, mebibytes and GPUs: rounded up. Empty: nothing is limited.
std::string SlurmFlags(const ResourceShare& share);

// Values for the Helm chart of a part of the run, "actor" or "learner", as YAML; requests are equal to limits.
// Kubernetes counts whole GPUs: rounded up. Empty: nothing is limited.
std::string HelmValues(absl::string_view part, const ResourceShare& share);

// The larger of both in each resource: for nodes that are all alike.
ResourceShare LargerOf(const ResourceShare& one, const ResourceShare& other);
// Of `count` such processes together.
ResourceShare Times(const ResourceShare& share, unsigned count);

}  // namespace skein
