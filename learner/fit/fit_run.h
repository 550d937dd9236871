// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "base/config/resume_mode.h"
#include "base/process/shutdown.h"
#include "skein/v1/fit.pb.h"

namespace skein {

// Options of one process of `skein fit`.
struct FitOptions {
  v1::FitConfig config;
  std::string run_directory;  // Where checkpoints, metrics and the data as numbers are.
  ResumeMode resume = ResumeMode::kAuto;
  bool claimed = false;                 // By the process that started this one: the folder is its own to use.
  std::string metrics = "127.0.0.1:0";  // Address of /metrics; each further rank of a machine takes a free port.
  // Of a coordinator to report to, host:port. Empty: rank 0 starts one of its own on these ports (or on free ones, if
  // they are in use), unless they are negative.
  std::string coordinator;
  int port = 7070, http_port = 7071;
  absl::Duration timeout = absl::Seconds(30);  // To reach it.
  std::string log_json;                        // Of the ranks that RunFitGroup starts; they append to one file.
};

// Runs one rank of a training from its data to its last checkpoint.
//   SequenceStore -> BatchStream -> FitTrainer.Step ... -> held-out loss -> checkpoint, next epoch
// Says on standard output (rank 0) what it does. OK also after a request to stop: the checkpoint is where it stopped.
// Aborted: another rank is lost. Others: as SequenceStore::Open, FitTrainer and LoadNewestCheckpoint.
absl::Status RunFit(const FitOptions& options, ShutdownSignal* shutdown);

}  // namespace skein
