// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "grpcpp/server.h"
#include "skein/v1/coordinator_service.grpc.pb.h"

namespace skein {

// A coordinator that passes members' calls on to the real one, but tells actors that their learner is somewhere else:
// at a FaultProxy. The data plane of one actor can thereby be made bad while its heartbeats pass. Serves Join,
// Heartbeat, Leave and ArriveAtBarrier at a free port of 127.0.0.1 until it is destroyed. Thread-safe.
class CoordinatorRelay {
 public:
  // The process ends if there is no port.
  CoordinatorRelay(const std::string& coordinator, const std::string& learner_address);
  ~CoordinatorRelay();

  const std::string& address() const { return address_; }

 private:
  class Service;
  const std::unique_ptr<Service> service_;
  std::unique_ptr<grpc::Server> server_;
  std::string address_;
};

}  // namespace skein
