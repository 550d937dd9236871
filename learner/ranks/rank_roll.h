// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "skein/v1/coordinator_service.grpc.pb.h"

namespace skein {

// Asks the coordinator which learner ranks are live. Not thread-safe.
class RankRoll {
 public:
  // `coordinator`: its address, or several separated by commas, of which one answers.
  explicit RankRoll(const std::string& coordinator);
  // Takes about `deadline` at most. Unavailable, DeadlineExceeded: no address answers.
  absl::StatusOr<std::set<uint32_t>> Call(absl::Duration deadline);

 private:
  std::vector<std::unique_ptr<v1::Coordinator::Stub>> stubs_;
  size_t answering_ = 0;  // Index of the address that answered last.
};

}  // namespace skein
