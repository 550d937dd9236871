// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "sweep/slot_messages.h"

namespace skein {

// A training in a slot that a worker lends. The worker starts it, and ends it with a checkpoint once this object is no
// more, however this process ends.   order -> SlotLender -> answer
// Not thread-safe.
class LentTraining {
 public:
  // Unavailable: the slot is lent no more. Others: the order cannot be written.
  static absl::StatusOr<std::unique_ptr<LentTraining>> Begin(const std::string& slot, SlotOrder order);
  ~LentTraining();
  LentTraining(const LentTraining&) = delete;
  LentTraining& operator=(const LentTraining&) = delete;

  // Its exit code; nullopt while it runs, as far as is known. Looks five times a second at most.
  std::optional<int> Poll();
  // Asks it to end with a checkpoint.
  void Stop();
  // Whether it has ended because its worker has: no fault of its own.
  bool lost() const { return lost_; }
  // How it has ended, for people.
  const std::string& why() const { return why_; }

 private:
  LentTraining(std::string slot, SlotOrder order, int fd) : slot_(std::move(slot)), order_(std::move(order)), fd_(fd) {}

  const std::string slot_;
  SlotOrder order_;
  const int fd_;  // Of the order's file, locked.
  std::optional<int> code_;
  std::string why_;
  bool lost_ = false;
  absl::Duration next_look_;
};

}  // namespace skein
