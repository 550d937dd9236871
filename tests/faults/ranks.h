// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tests/integration/cluster.h"

namespace skein {

// A run whose learner ranks come and go, and the actors that feed them. Leases of 2 s, short time-outs; 1,024 steps an
// iteration.
class ElasticRun {
 public:
  static constexpr uint64_t kIterationSteps = 1024;

  // B, T as the table of faults calls them: of a barrier and of a collective. `interval`: steps between checkpoints.
  ElasticRun(int min_ranks, absl::Duration barrier, absl::Duration collective, uint64_t interval = 100'000'000);

  // Rank 0 and 1 of two, and as many actors.
  void Start(int actors = 2);
  std::unique_ptr<Running> StartRank(int rank, const std::vector<std::string>& environment = {}) const;

  // Until `iterations` more have been finished than now. Returns whether.
  bool WaitForIterations(uint64_t iterations) const;
  bool WaitForState(v1::RunState state) const;
  v1::RunProgress Progress() const;
  // A gauge or counter that a rank shows; -1: it does not.
  static double Metric(const Running& rank, const std::string& name);
  // Of the parameters after the last update: equal ones, equal numbers.
  // As many bits as a double holds; 0: none yet. -1: the rank does not answer.
  static double Digest(const Running& rank);
  // Waits until both ranks show other digests than `before`, stops the actors, so that both come to rest after the same
  // update, and expects both to show the same digest then.
  void ExpectEqualParameters(double before = 0) const;
  // SIGSTOP, SIGCONT. Without data ranks meet once a second and update nothing.
  void SignalActors(int signal_number) const;

  // Asks the ranks to stop and expects a checkpoint whose account is closed and has every step that was trained on.
  void StopAndExpectClosedAccounts(const std::vector<Running*>& ranks) const;
  // Every iteration was logged once and, whatever the number of ranks, is of the configured size.
  void ExpectWholeIterations() const;

  Cluster cluster;
  std::unique_ptr<Running> rank_0, rank_1;
  std::vector<std::unique_ptr<Running>> actors;
};

}  // namespace skein
