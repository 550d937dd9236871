// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "skein/v1/coordinator_service.grpc.pb.h"

namespace skein {

// Asks the coordinator which learner ranks are live, and which processes they are. Not thread-safe.
class RankRoll {
 public:
  // `coordinator`: its address, or several separated by commas, of which one answers.
  explicit RankRoll(const std::string& coordinator);
  struct Answer {
    std::map<uint32_t, std::string> processes;  // By rank: host and process id.
    uint64_t expirations = 0;                   // Members that fell silent so far.
    absl::Duration uptime;                      // Of the coordinator.
  };
  // Takes about `deadline` at most. Unavailable, DeadlineExceeded: no address answers.
  absl::StatusOr<Answer> Call(absl::Duration deadline);

 private:
  std::vector<std::unique_ptr<v1::Coordinator::Stub>> stubs_;
  size_t answering_ = 0;  // Index of the address that answered last.
};

// The rank of `there` whose process has left the run since `then`: it said so, or another process that knew that it was
// dead, or another process has its place. Not one that has only fallen silent: it may come back. nullopt: none, or the
// coordinator is another one, which may not know all members yet.
std::optional<uint32_t> FindLeaver(const RankRoll::Answer& then, const RankRoll::Answer& now,
                                   const std::set<uint32_t>& there);

}  // namespace skein
