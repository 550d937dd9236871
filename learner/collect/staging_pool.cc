// SPDX-License-Identifier: Apache-2.0
#include "learner/collect/staging_pool.h"

#include <algorithm>

namespace skein {

std::vector<int64_t> Staging::PlacedSlots() const {
  std::vector<int64_t> slots;
  for (uint32_t slot = 0; slot < assigned; ++slot) {
    if (std::find(vacated.begin(), vacated.end(), slot) == vacated.end()) slots.push_back(slot);
  }
  return slots;
}

void StagingPool::Make(int64_t stagings, int64_t slots, int64_t segments) {
  slots_ = slots;
  segments_ = segments;
  queue_.clear();
  free_.clear();
  all_.clear();
  training_ = nullptr;
  admitted_ = 0;
  room_ = static_cast<uint64_t>(stagings * slots * segments);
  for (int64_t i = 0; i < stagings; ++i) {
    free_.push_back(all_.emplace_back(std::make_unique<Staging>(schema_, slots, segments)).get());
  }
}

bool StagingPool::NothingIsCopied() const {
  return std::all_of(all_.begin(), all_.end(), [](const auto& staging) { return staging->placing == 0; });
}

Staging* StagingPool::Begin(uint64_t policy_version) {
  if (free_.empty()) free_.push_back(all_.emplace_back(std::make_unique<Staging>(schema_, slots_, segments_)).get());
  Staging* const staging = free_.back();
  free_.pop_back();
  staging->columns.Reset();
  staging->assigned = staging->placed = 0;
  staging->vacated.clear();
  staging->policy_version = policy_version;
  staging->stage_seconds.Clear();
  staging->failed_episodes = 0;
  queue_.push_back(staging);
  return staging;
}

void StagingPool::Assign(const Place& place) {
  ++place.staging->placing;
  ++admitted_;
}

void StagingPool::Placed(const Place& place) {
  --place.staging->placing;
  ++place.staging->placed;
}

void StagingPool::TakeBack(const Place& place) {
  --place.staging->placing;
  --admitted_;
}

Staging* StagingPool::TakeFront() {
  training_ = queue_.front();
  queue_.pop_front();
  return training_;
}

void StagingPool::ReleaseTraining() {
  if (training_ != nullptr) free_.push_back(training_);
  training_ = nullptr;
}

}  // namespace skein
