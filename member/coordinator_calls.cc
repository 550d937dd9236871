// SPDX-License-Identifier: Apache-2.0
#include "member/coordinator_calls.h"

#include <utility>

namespace skein {

CoordinatorCalls::CoordinatorCalls(std::vector<std::string> addresses)
    : addresses_(std::move(addresses)), connection_(Connect(0)) {}

void CoordinatorCalls::Cancel() {
  absl::MutexLock lock(&mu_);
  cancelled_ = true;
  for (grpc::ClientContext* context : calls_) context->TryCancel();
}

void CoordinatorCalls::Resume() {
  absl::MutexLock lock(&mu_);
  cancelled_ = false;
}

std::shared_ptr<CoordinatorCalls::Connection> CoordinatorCalls::Connect(size_t address) const {
  auto connection = std::make_shared<Connection>();
  connection->address = address;
  connection->stub = v1::Coordinator::NewStub(OpenChannel(addresses_[address]));
  return connection;
}

std::shared_ptr<CoordinatorCalls::Connection> CoordinatorCalls::CurrentConnection() const {
  absl::MutexLock lock(&mu_);
  return connection_;
}

void CoordinatorCalls::TryAnother(const std::shared_ptr<Connection>& tried) {
  std::shared_ptr<Connection> next = Connect((tried->address + 1) % addresses_.size());
  absl::MutexLock lock(&mu_);
  if (connection_ == tried) connection_ = std::move(next);
}

}  // namespace skein
