// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace skein {

class Collective;

// One of several ranks on this machine that are measured.
struct RankPlace {
  int rank = 0;
  int ranks = 1;
  int store_port = 0;                     // Of rank 0, on this machine; unused on rank 0.
  std::function<void(int port)> serving;  // Rank 0: called with its port before it waits for the others.
};

// What ranks do.
enum class RankMode {
  kAlone,    // Each trains as a single one, at the same time.
  kSumming,  // All train together, on a batch `ranks` times as large.
};

// Waits for the other ranks, which must have the same `device` ("auto", "cpu", "cuda:N"). Errors as
// ParseTrainingDevice, TcpStore and Collective::Connect.
absl::StatusOr<std::unique_ptr<Collective>> ConnectRanks(const RankPlace& place, const std::string& device,
                                                         absl::Duration timeout);

}  // namespace skein
