// SPDX-License-Identifier: Apache-2.0
#include "coordinator/state_writer.h"

#include <iterator>
#include <unordered_map>
#include <utility>

#include "base/process/steady_wait.h"

namespace skein {
namespace {

// Of several changes of a key only the newest, in the place of the first.
void Merge(std::vector<StateChange> newer, std::vector<StateChange>* changes) {
  std::unordered_map<std::string, size_t> places;
  for (size_t i = 0; i < changes->size(); ++i) places[(*changes)[i].key] = i;
  for (StateChange& change : newer) {
    const auto [found, is_new] = places.emplace(change.key, changes->size());
    if (is_new) {
      changes->push_back(std::move(change));
    } else {
      change.durable = change.durable || (*changes)[found->second].durable;
      (*changes)[found->second] = std::move(change);
    }
  }
}

}  // namespace

StateWriter::StateWriter(StateStore* store, std::function<void(const absl::Status&)> on_result,
                         absl::Duration try_again)
    : store_(store), on_result_(std::move(on_result)), try_again_(try_again) {
  thread_ = std::thread([this] { Run(); });
}

void StateWriter::Add(std::vector<StateChange> changes, Done done) {
  {
    absl::MutexLock lock(&mu_);
    if (!stop_) {
      added_.insert(added_.end(), std::make_move_iterator(changes.begin()), std::make_move_iterator(changes.end()));
      dones_.push_back(std::move(done));
      return;
    }
  }
  done(absl::UnavailableError("nothing is written any more"));
}

void StateWriter::Run() {
  std::vector<StateChange> changes;  // Not written yet.
  std::vector<Done> waiting;         // For them.
  while (true) {
    bool stop = false;
    {
      absl::MutexLock lock(&mu_);
      AwaitFor(&mu_, absl::Condition(this, &StateWriter::HasWork),
               changes.empty() ? absl::InfiniteDuration() : try_again_);
      stop = stop_;
      Merge(std::exchange(added_, {}), &changes);
      waiting.insert(waiting.end(), std::make_move_iterator(dones_.begin()), std::make_move_iterator(dones_.end()));
      dones_.clear();
    }
    absl::Status status;
    if (!changes.empty()) {
      status = store_->Write(changes);
      if (on_result_) on_result_(status);
      if (status.ok()) changes.clear();
    }
    if (!absl::IsUnavailable(status) || stop) {
      for (const Done& done : std::exchange(waiting, {})) done(status);
    }
    if (stop) return;
  }
}

void StateWriter::Stop() {
  {
    absl::MutexLock lock(&mu_);
    stop_ = true;
  }
  if (thread_.joinable()) thread_.join();
}

}  // namespace skein
