// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace skein {

// The jobs of a Slurm array that run the same sweep. One of them leads: it has the journal. Each lends its tasks, as
// locked files in a folder that all nodes see, until its process ends, however it ends; the leader starts trainings
// there by srun --jobid.   <sweep>/places/<job>-<task>
// Not thread-safe.
class ArrayPlaces {
 public:
  // Lends `tasks` places of the job `job`. `folder` is made if it is not there. Unavailable: another process lends
  // them. Other codes: the folder cannot be written.
  static absl::StatusOr<std::unique_ptr<ArrayPlaces>> Lend(const std::string& folder, const std::string& job,
                                                           unsigned tasks);
  ~ArrayPlaces();
  ArrayPlaces(const ArrayPlaces&) = delete;
  ArrayPlaces& operator=(const ArrayPlaces&) = delete;

  // The places that are lent now, this job's included; read anew at most once a second. Removes what ended jobs have
  // left.
  const std::vector<std::string>& List();
  static std::string JobOf(const std::string& place) { return place.substr(0, place.rfind('-')); }
  // Whether Slurm still has the job running; a job that is not lends nothing from then on. Where Slurm does not answer
  // it is taken to run. To be asked when a training there has ended early.
  bool StillRuns(const std::string& place);

 private:
  explicit ArrayPlaces(std::string folder) : folder_(std::move(folder)) {}

  const std::string folder_;
  std::vector<int> locks_;           // Of this job's files.
  std::vector<std::string> own_;     // Their paths.
  std::vector<std::string> places_;  // As of the last look.
  std::set<std::string> ended_;      // Jobs.
  absl::Duration next_look_;
};

}  // namespace skein
