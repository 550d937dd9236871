// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"

namespace skein {

// The slots that workers lend a sweep now (`skein worker --sweep`).   <sweep>/workers/<host>-<pid>-<number>
// Not thread-safe.
class LentSlots {
 public:
  explicit LentSlots(std::string sweep_folder) : folder_(std::move(sweep_folder)) {}

  // In order; read anew at most once a second. Removes what workers that were killed have left.
  const std::vector<std::string>& List() const;

 private:
  const std::string folder_;
  mutable std::vector<std::string> slots_;  // As of the last look.
  mutable absl::Duration next_look_;
};

}  // namespace skein
