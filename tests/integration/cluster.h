// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "skein/v1/coordinator_service.grpc.pb.h"
#include "tests/testing/history_check.h"
#include "tests/testing/program.h"

namespace skein {

// A run of configs/cartpole_ppo.yaml, or another file, whose processes the test starts, kills and asks one by one.
// Members are expelled after two seconds of silence. 8 environments in groups of 4: two runners can work at once. All
// processes record their history, and the destructor fails the test where that breaks an invariant.
class Cluster {
 public:
  explicit Cluster(const std::vector<std::string>& overrides,
                   const std::string& config_path = "configs/cartpole_ppo.yaml");
  ~Cluster();

  // The first start takes free ports, later ones the same again.
  void StartCoordinator(const std::vector<std::string>& arguments = {},
                        const std::vector<std::string>& environment = {});
  void StartLearner(const std::vector<std::string>& environment = {}, const std::vector<std::string>& arguments = {});
  // One of several ranks, told so as torchrun does.
  std::unique_ptr<Running> StartRank(int rank, int ranks, const std::vector<std::string>& environment = {}) const;
  // With one runner. `coordinator`: the address to join at; empty = the coordinator's own.
  std::unique_ptr<Running> StartActor(const std::string& coordinator = "",
                                      const std::vector<std::string>& environment = {}, int runners = 1) const;

  Running& coordinator() { return *coordinator_; }
  Running& learner() { return *learner_; }
  const std::string& run_folder() const { return folder_.path(); }
  const std::string& config_path() const { return config_path_; }
  const std::string& address() const { return address_; }  // Of the coordinator.
  int http_port() const;                                   // Of the coordinator.
  std::string learner_address() const;
  // What all processes of the run have recorded so far.
  std::vector<HistoryEvent> History() const { return ReadHistory(history_.path()); }
  // SKEIN_HISTORY=FOLDER, for processes that a test starts itself.
  std::string history_variable() const { return "SKEIN_HISTORY=" + history_.path(); }

  // Unavailable: the coordinator is away.
  absl::StatusOr<v1::StatusResponse> Status() const;
  // Asks until `condition(status)` holds. Each answer's step account must balance.
  template <typename Condition>
  bool WaitForStatus(Condition condition, absl::Duration limit = absl::Minutes(1)) const;

 private:
  static void ExpectBalanced(const v1::StatusResponse& status);
  static bool Wait(const std::function<bool()>& condition, absl::Duration limit);

  const ScratchFolder folder_;
  const ScratchFolder history_;
  std::string config_path_;
  std::string address_ = "127.0.0.1:0", http_address_ = "127.0.0.1:0";
  std::unique_ptr<v1::Coordinator::Stub> stub_;
  std::unique_ptr<Running> coordinator_, learner_;
};

// The total that an actor wrote when it left.
uint64_t StepsAtTheEnd(const Running& actor);

template <typename Condition>
bool Cluster::WaitForStatus(Condition condition, absl::Duration limit) const {
  return Wait(
      [&] {
        const auto status = Status();
        if (!status.ok()) return false;
        ExpectBalanced(*status);
        return static_cast<bool>(condition(*status));
      },
      limit);
}

}  // namespace skein
