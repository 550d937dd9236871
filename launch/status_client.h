// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "skein/v1/coordinator_service.grpc.pb.h"

namespace skein {

// The coordinator address that `skein top`, `skein status` and `skein drain` use by default, and on which `skein head`
// listens by default.
inline constexpr char kDefaultAddress[] = "127.0.0.1:7070";

// Client for user requests to a coordinator: the run's status, and draining an actor. `address` may be several
// addresses separated by commas; the first that answers is used. Thread-safe.
class StatusClient {
 public:
  explicit StatusClient(const std::string& address);

  // Unavailable: no coordinator answered within `deadline`; other codes as GetStatus.
  absl::StatusOr<v1::StatusResponse> Get(absl::Duration deadline) const;

  // Asks an actor to finish its work and leave; does not wait for it. Unavailable: as above. NotFound: no such member
  // (names the existing ones). FailedPrecondition: it is a learner.
  absl::Status Drain(const std::string& member, absl::Duration deadline) const;

  // Takes a member out of the run whose process is known to be dead. OK also if it is no member, or has joined again
  // since. Unavailable: as above. PermissionDenied: this process's certificate is not the member's.
  absl::Status Remove(const std::string& member, uint64_t generation, absl::Duration deadline) const;

 private:
  // Adds the addresses that did not answer to the status, and what is wrong with TLS, if that is why.
  absl::Status Explain(const absl::Status& status) const;
  // Returns the first answer other than that there is no coordinator.
  template <typename Call>
  absl::Status Ask(absl::Duration deadline, Call call) const;

  const std::string address_;
  std::vector<std::unique_ptr<v1::Coordinator::Stub>> stubs_;  // One for each address.
};

}  // namespace skein
