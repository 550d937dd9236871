// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdexcept>
#include <string>

#include "absl/status/status.h"

namespace skein {

// Thrown by an environment that would not be helped by being built anew: VectorEnv::failure() then has this code.
class HopelessEnv : public std::runtime_error {
 public:
  HopelessEnv(absl::StatusCode code, const std::string& why) : std::runtime_error(why), code_(code) {}
  absl::StatusCode code() const { return code_; }

 private:
  absl::StatusCode code_;
};

}  // namespace skein
