// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "learner/collect/collect_mode.h"
#include "learner/collect/ticket_office.h"

namespace skein {

// Modes on_policy and overlapped: an iteration consists of `fragments` fragments of every env group, in env-index
// order, all made with its policy version. Two may be open: the front, and one behind it that a group starts when it
// has finished the front. There are two stagings: while one is trained on and one is filled, no iteration behind can
// be open.
class SynchronousCollect : public CollectMode {
 public:
  // Both must outlive this.
  SynchronousCollect(uint32_t fragments, TicketOffice* office, StagingPool* pool)
      : fragments_(fragments), office_(office), pool_(pool) {}

  void TakeShare(uint32_t iteration_fragments) override;
  void OpenIteration(uint64_t policy_version, const WorkSettings& settings) override;
  void Published(uint64_t policy_version) override { (void)policy_version; }
  void BeforeWait() override { pool_->ReleaseTraining(); }
  bool MayAnswer(uint64_t policy_version, const std::optional<Piece>& piece) const override;
  absl::StatusOr<Place> Assign(const Piece& piece, uint64_t policy_version) override;
  void TakeBack(const Place& place) override { pool_->TakeBack(place); }
  void OpenTickets() override {}
  Front TakeFront() override;
  void Stop() override { office_->CloseIteration(); }

 private:
  const uint32_t fragments_;
  TicketOffice* const office_;
  StagingPool* const pool_;
};

}  // namespace skein
