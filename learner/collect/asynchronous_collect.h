// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "learner/collect/collect_mode.h"
#include "learner/collect/ticket_office.h"

namespace skein {

// Mode async: an iteration consists of the next fragments that arrive, a fixed number, from any env groups. Tickets
// stay open as long as the staging pool has room for their fragments. A fragment whose policy lag at training would
// exceed `max_policy_lag` versions is stale.
class AsynchronousCollect : public CollectMode {
 public:
  // Both must outlive this.
  AsynchronousCollect(uint64_t max_policy_lag, TicketOffice* office, StagingPool* pool)
      : max_policy_lag_(max_policy_lag), office_(office), pool_(pool) {}

  void TakeShare(uint32_t iteration_fragments) override;
  void OpenIteration(uint64_t policy_version, const WorkSettings& settings) override;
  void Published(uint64_t policy_version) override { newest_version_ = trains_next_ = policy_version; }
  void BeforeWait() override {}
  bool MayAnswer(uint64_t policy_version, const std::optional<Piece>& piece) const override;
  absl::StatusOr<Place> Assign(const Piece& piece, uint64_t policy_version) override;
  void TakeBack(const Place& place) override;
  void OpenTickets() override;
  Front TakeFront() override;
  void Stop() override;

 private:
  const uint64_t max_policy_lag_;
  TicketOffice* const office_;
  StagingPool* const pool_;
  bool stopped_ = false;
  uint32_t fragments_ = 1;       // Of one iteration.
  uint64_t newest_version_ = 0;  // The newest published version.
  uint64_t trains_next_ = 0;     // The learner's version when the front will be trained on.
};

}  // namespace skein
