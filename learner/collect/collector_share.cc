// SPDX-License-Identifier: Apache-2.0
// What changes when learner ranks come or go.
#include <utility>

#include "learner/collect/collector.h"

namespace skein {

void Collector::TakeShare(const Share& share) {
  absl::MutexLock lock(&mu_);
  mu_.Await(absl::Condition(this, &Collector::NothingIsCopied));
  office_.TakeShare(share.first_env, share.num_envs);
  if (share.env_state) office_.Restore({.env_state = share.env_state});
  if (async_) async_->fragments = share.async_fragments;
  ledger_.DropAdmitted();
  queued_batches_ = 0;
  owed_since_.reset();
  queue_.clear();
  free_.clear();
  stagings_.clear();
  training_ = nullptr;
  MakeStagings();
  ExportAccount();
}

bool Collector::NothingIsCopied() const {
  for (const auto& staging : stagings_) {
    if (staging->placing > 0) return false;
  }
  return true;
}

void Collector::MakeStagings() {
  const int64_t slots = async_ ? async_->fragments : office_.groups().all().size();
  // One is trained on and one is filled, or both are filled; asynchronously there is room for what every block may
  // bring besides.
  const int64_t stagings = async_ ? 2 + (office_.groups().all().size() + slots - 1) / slots : 2;
  const int64_t segments = async_ ? 1 : fragments_per_block_;
  room_ = static_cast<uint64_t>(stagings * slots * segments);
  for (int64_t i = 0; i < stagings; ++i) {
    free_.push_back(stagings_.emplace_back(std::make_unique<Staging>(schema_, slots, segments)).get());
  }
}

}  // namespace skein
