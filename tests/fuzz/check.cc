// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <cstdlib>

#include "google/protobuf/stubs/logging.h"
#include "tests/fuzz/targets.h"

namespace skein::fuzz {

void Check(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "does not hold: %s\n", what);
  std::abort();
}

void SilenceProtobuf() { google::protobuf::SetLogHandler(nullptr); }

}  // namespace skein::fuzz
