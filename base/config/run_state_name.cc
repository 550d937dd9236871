// SPDX-License-Identifier: Apache-2.0
#include "base/config/run_state_name.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace skein {

std::string RunStateName(v1::RunState state) {
  const std::string& name = v1::RunState_Name(state);
  if (name.empty()) return absl::StrCat(static_cast<int>(state));
  return absl::AsciiStrToLower(absl::StripPrefix(name, "RUN_STATE_"));
}

}  // namespace skein
