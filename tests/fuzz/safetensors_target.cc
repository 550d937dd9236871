// SPDX-License-Identifier: Apache-2.0
#include "policy/safetensors.h"
#include "tests/fuzz/targets.h"

namespace skein::fuzz {

bool FuzzSafetensors(absl::string_view input) {
  std::map<std::string, std::string> metadata;
  const auto tensors = DecodeSafetensors(input, &metadata);
  if (!tensors.ok()) {
    Check(absl::IsDataLoss(tensors.status()), "a bad file is DataLoss");
    return false;
  }
  const std::string bytes = EncodeSafetensors(*tensors, metadata);
  const auto again = DecodeSafetensors(bytes);
  Check(again.ok() && EncodeSafetensors(*again, metadata) == bytes, "what is written is read back");
  return true;
}

}  // namespace skein::fuzz
