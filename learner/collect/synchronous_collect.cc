// SPDX-License-Identifier: Apache-2.0
#include "learner/collect/synchronous_collect.h"

namespace skein {

void SynchronousCollect::TakeShare(uint32_t) {
  constexpr int64_t kStagings = 2;  // One is trained on and one is filled, or both are filled.
  pool_->Make(kStagings, static_cast<int64_t>(office_->groups().all().size()), fragments_);
}

void SynchronousCollect::OpenIteration(uint64_t policy_version, const WorkSettings& settings) {
  if (pool_->free() == 0) pool_->ReleaseTraining();
  pool_->Begin(policy_version);
  office_->OpenIteration(policy_version, settings.env_phase);
}

bool SynchronousCollect::MayAnswer(uint64_t policy_version, const std::optional<Piece>& piece) const {
  return !piece || policy_version == pool_->queue()[piece->iteration]->policy_version;
}

absl::StatusOr<Place> SynchronousCollect::Assign(const Piece& piece, uint64_t) {
  const Place place{pool_->queue()[piece.iteration], piece.group, piece.group, piece.fragment};
  pool_->Assign(place);
  return place;
}

CollectMode::Front SynchronousCollect::TakeFront() {
  Front front;
  front.staging = pool_->TakeFront();
  for (const uint32_t group : office_->EndIteration()) front.slots.push_back(group);
  front.unusable = front.staging->placed - front.slots.size() * fragments_;
  front.next_is_open = !pool_->queue().empty();
  return front;
}

}  // namespace skein
