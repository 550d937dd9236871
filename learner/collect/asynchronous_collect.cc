// SPDX-License-Identifier: Apache-2.0
#include "learner/collect/asynchronous_collect.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace skein {

void AsynchronousCollect::TakeShare(uint32_t iteration_fragments) {
  fragments_ = iteration_fragments;
  // One is trained on, one is filled, and the others have room for one more fragment of every env group.
  const auto groups = static_cast<int64_t>(office_->groups().all().size()), slots = static_cast<int64_t>(fragments_);
  pool_->Make(2 + (groups + slots - 1) / slots, slots, 1);
}

void AsynchronousCollect::OpenIteration(uint64_t policy_version, const WorkSettings& settings) {
  office_->SetEnvPhase(settings.env_phase);
  newest_version_ = trains_next_ = policy_version;
  pool_->ReleaseTraining();
  OpenTickets();
}

bool AsynchronousCollect::MayAnswer(uint64_t policy_version, const std::optional<Piece>&) const {
  return policy_version <= newest_version_;
}

absl::StatusOr<Place> AsynchronousCollect::Assign(const Piece& piece, uint64_t policy_version) {
  const auto& queue = pool_->queue();
  // The first vacated slot, else the next slot of the last staging, else the first slot of a new staging.
  size_t at = 0;
  while (at < queue.size() && queue[at]->vacated.empty()) ++at;
  const bool vacated = at < queue.size();
  if (!vacated && at > 0 && queue[at - 1]->assigned < queue[at - 1]->columns.fragments()) --at;
  // Each iteration ahead of it adds one version before it is trained on.
  const uint64_t lag = trains_next_ + at - policy_version;
  if (lag > max_policy_lag_) {
    return absl::OutOfRangeError(
        absl::StrCat("its policy would be ", lag, " versions old, sync.max_policy_lag is ", max_policy_lag_));
  }
  Place place;
  // No staging may be free: an iteration that ended early took room that was reserved for open tickets.
  place.staging = at < queue.size() ? queue[at] : pool_->Begin(newest_version_);
  place.group = piece.group;
  if (vacated) {
    place.slot = place.staging->vacated.back();
    place.staging->vacated.pop_back();
  } else {
    place.slot = place.staging->assigned++;
  }
  place.staging->policy_version = std::min(place.staging->policy_version, policy_version);
  pool_->Assign(place);
  return place;
}

void AsynchronousCollect::TakeBack(const Place& place) {
  pool_->TakeBack(place);
  place.staging->vacated.push_back(static_cast<uint32_t>(place.slot));
}

void AsynchronousCollect::OpenTickets() {
  if (stopped_) return;
  const auto& queue = pool_->queue();
  int64_t room = static_cast<int64_t>(pool_->free()) * fragments_ - office_->groups().open_tickets();
  if (!queue.empty()) room += queue.back()->columns.fragments() - queue.back()->assigned;
  for (const Staging* staging : queue) room += static_cast<int64_t>(staging->vacated.size());
  if (room > 0) office_->OpenTickets(static_cast<uint32_t>(room));
}

CollectMode::Front AsynchronousCollect::TakeFront() {
  if (pool_->queue().empty()) pool_->Begin(newest_version_);  // No fragment has arrived.
  Front front;
  front.staging = pool_->TakeFront();
  front.slots = front.staging->PlacedSlots();
  trains_next_ = newest_version_ + 1;
  return front;
}

void AsynchronousCollect::Stop() {
  stopped_ = true;
  office_->CloseIteration();
}

}  // namespace skein
