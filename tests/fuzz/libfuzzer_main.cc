// SPDX-License-Identifier: Apache-2.0
// What libFuzzer calls; SKEIN_FUZZ_TARGET is one of the functions in targets.h.
#include <cstddef>
#include <cstdint>

#include "tests/fuzz/targets.h"

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  skein::fuzz::SilenceProtobuf();
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  skein::fuzz::SKEIN_FUZZ_TARGET({reinterpret_cast<const char*>(data), size});
  return 0;
}
