// SPDX-License-Identifier: Apache-2.0
#include "sweep/lent_slots.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "base/process/clock.h"
#include "sweep/place_file.h"
#include "sweep/slot_messages.h"

namespace skein {
namespace {

namespace fs = std::filesystem;

constexpr absl::Duration kLookAtSlots = absl::Seconds(1);

}  // namespace

const std::vector<std::string>& LentSlots::List() const {
  const absl::Duration now = MonotonicNow();
  if (now < next_look_) return slots_;
  next_look_ = now + kLookAtSlots;
  slots_ = LentIn(WorkersFolder(folder_));
  std::error_code error;
  for (fs::directory_iterator it(OrdersFolder(folder_), error), end; !error && it != end; it.increment(error)) {
    std::error_code ignored;
    const std::string slot = it->path().filename().string();
    if (!std::binary_search(slots_.begin(), slots_.end(), slot)) fs::remove(it->path(), ignored);
  }
  return slots_;
}

}  // namespace skein
