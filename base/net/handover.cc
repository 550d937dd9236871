// SPDX-License-Identifier: Apache-2.0
#include "base/net/handover.h"

#include <unistd.h>

#include <utility>

namespace skein {

Handover::Handover(Give give) : give_(std::move(give)), thread_([this] { GiveAll(); }) {}

void Handover::Add(const AcceptedConnection& connection) {
  absl::MutexLock lock(&mu_);
  if (stopping_) {
    close(connection.socket);
  } else {
    waiting_.push_back(connection);
  }
}

void Handover::Stop() {
  {
    absl::MutexLock lock(&mu_);
    stopping_ = true;
  }
  if (thread_.joinable()) thread_.join();
  absl::MutexLock lock(&mu_);
  for (const AcceptedConnection& one : waiting_) close(one.socket);
  waiting_.clear();
}

void Handover::GiveAll() {
  while (true) {
    AcceptedConnection next;
    {
      absl::MutexLock lock(&mu_);
      mu_.Await(absl::Condition(this, &Handover::HasWork));
      if (stopping_) return;
      next = waiting_.front();
      waiting_.pop_front();
    }
    if (!give_(next)) close(next.socket);
  }
}

}  // namespace skein
