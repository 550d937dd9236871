// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdlib>
#include <string>

#include "absl/strings/str_cat.h"

namespace skein {

// The path of an example that the build has made, such as example_cart.so. SKEIN_BIN: another build folder.
inline std::string BuiltExample(const std::string& file) {
  const char* const folder = std::getenv("SKEIN_BIN");
  return absl::StrCat(folder == nullptr ? "build/release" : folder, "/tests/env/external/", file);
}

}  // namespace skein
