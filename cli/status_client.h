// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "skein/v1/coordinator_service.grpc.pb.h"

namespace skein {

// Asks a coordinator how its run is doing. Thread-safe.
class StatusClient {
 public:
  explicit StatusClient(const std::string& address);

  // Unavailable: nobody answered within `deadline`; other codes as GetStatus.
  absl::StatusOr<v1::StatusResponse> Get(absl::Duration deadline) const;

 private:
  const std::string address_;
  const std::unique_ptr<v1::Coordinator::Stub> stub_;
};

}  // namespace skein
