// SPDX-License-Identifier: Apache-2.0
#include "serve/session_table.h"

#include "absl/strings/str_cat.h"

namespace skein {
namespace {

constexpr size_t kMostNameBytes = 200;
// A full table is searched for idle sessions no more often than this.
constexpr absl::Duration kSweepPause = absl::Seconds(1);

}  // namespace

absl::StatusOr<Session*> SessionTable::Take(const std::string& name, absl::Duration now) {
  if (name.size() > kMostNameBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("session: a name of ", name.size(), " bytes, at most ", kMostNameBytes));
  }
  absl::MutexLock lock(&mu_);
  auto found = sessions_.find(name);
  if (found == sessions_.end()) {
    if (sessions_.size() >= most_) MakeRoom(now);
    if (sessions_.size() >= most_) {
      return absl::ResourceExhaustedError(
          absl::StrCat("there are ", most_, " sessions (--max-sessions); end some, or try again later"));
    }
    found = sessions_.try_emplace(name).first;
  }
  if (found->second.taken) return absl::AbortedError("another request of this session is under way");
  found->second.taken = true;
  return found->second.session.get();
}

void SessionTable::Return(const std::string& name, absl::Duration now) {
  absl::MutexLock lock(&mu_);
  const auto found = sessions_.find(name);
  if (found->second.session->rows == 0) {  // Its first request was refused.
    sessions_.erase(found);
    return;
  }
  found->second.taken = false;
  found->second.last_used = now;
}

absl::Status SessionTable::End(const std::string& name) {
  absl::MutexLock lock(&mu_);
  const auto found = sessions_.find(name);
  if (found == sessions_.end()) return absl::OkStatus();
  if (found->second.taken) return absl::AbortedError("a request of this session is under way");
  sessions_.erase(found);
  return absl::OkStatus();
}

size_t SessionTable::size() const {
  absl::MutexLock lock(&mu_);
  return sessions_.size();
}

void SessionTable::MakeRoom(absl::Duration now) {
  if (now < next_sweep_) return;
  next_sweep_ = now + kSweepPause;
  for (auto it = sessions_.begin(); it != sessions_.end();) {
    const bool old = !it->second.taken && now - it->second.last_used > idle_;
    if (old) {
      sessions_.erase(it++);
    } else {
      ++it;
    }
  }
}

}  // namespace skein
