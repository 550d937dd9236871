// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/process/resource_share.h"
#include "base/process/share_enforcer.h"
#include "launch/child.h"
#include "sweep/slot_messages.h"

namespace skein {

// The slots that this process lends a sweep which another process leads, until it ends, however it ends.
//   orders/<slot> -> `skein train` -> workers/<slot>
// A training ends, with a checkpoint, when its order is taken back or the process that gave it is no more.
// Not thread-safe.
class SlotLender {
 public:
  struct Options {
    std::string folder;          // Of the sweep, as it is reached here.
    std::string program_folder;  // Has skein.
    std::string name;            // Slots are <name>-0, <name>-1, ... No other process may have it.
    uint32_t slots = 1;
    std::vector<std::string> gpus;  // CUDA_VISIBLE_DEVICES of each slot; empty = inherited.
    ResourceShare share;            // Of each training, to which it is held.
  };
  // Unavailable: another process has the name. Others: the folder cannot be written.
  static absl::StatusOr<std::unique_ptr<SlotLender>> Lend(Options options);
  ~SlotLender();
  SlotLender(const SlotLender&) = delete;
  SlotLender& operator=(const SlotLender&) = delete;

  // Does what has been ordered; to be called some times a second. FailedPrecondition: this machine cannot do it, as it
  // sees other folders. Others: a program is missing, a file cannot be written.
  absl::Status Step();
  // Takes no more orders, and asks what runs to end with a checkpoint. It is not answered for: it goes on elsewhere.
  void Leave();
  uint32_t busy() const;
  // What has happened since the last call, as lines for people.
  std::vector<std::string> TakeNews() { return std::exchange(news_, {}); }

 private:
  struct Slot {
    std::string name;
    int fd = -1;                   // Of its file, locked.
    std::unique_ptr<Child> child;  // Null: nothing runs.
    std::string id;                // Of the last order that was begun.
    bool asked = false;            // The child, to end.
  };
  explicit SlotLender(Options options) : options_(std::move(options)) {}
  absl::Status StepSlot(size_t number);
  absl::Status Start(size_t number, const SlotOrder& order);
  absl::Status Answer(const Slot& slot, int code);

  const Options options_;
  ShareEnforcer enforcer_;
  std::vector<Slot> slots_;
  std::vector<std::string> news_;
  bool leaving_ = false;
};

}  // namespace skein
