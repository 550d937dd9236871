// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "skein/v1/coordinator_service.grpc.pb.h"

namespace skein {

// What people ask of a coordinator: how its run is doing, and that an actor should leave. Of several addresses, with
// commas between, the first that answers counts. Thread-safe.
class StatusClient {
 public:
  explicit StatusClient(const std::string& address);

  // Unavailable: no coordinator answered within `deadline`; other codes as GetStatus.
  absl::StatusOr<v1::StatusResponse> Get(absl::Duration deadline) const;

  // Asks an actor to finish what it has begun and leave; does not wait for that. Unavailable: as above. NotFound: there
  // is no such member; names those there are. FailedPrecondition: it is a learner.
  absl::Status Drain(const std::string& member, absl::Duration deadline) const;

 private:
  // A status that names the addresses without an answer.
  absl::Status Explain(const absl::Status& status) const;
  // The first answer other than that no coordinator is there.
  template <typename Call>
  absl::Status Ask(absl::Duration deadline, Call call) const;

  const std::string address_;
  std::vector<std::unique_ptr<v1::Coordinator::Stub>> stubs_;  // One for each address.
};

}  // namespace skein
