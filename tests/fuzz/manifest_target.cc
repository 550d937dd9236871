// SPDX-License-Identifier: Apache-2.0
#include <xxhash.h>

#include <fstream>

#include "absl/strings/str_format.h"
#include "tests/fuzz/samples.h"
#include "tests/fuzz/scratch.h"
#include "tests/fuzz/targets.h"

namespace skein::fuzz {
namespace {

void Write(const std::string& path, absl::string_view text) {
  std::ofstream(path, std::ios::binary).write(text.data(), static_cast<std::streamsize>(text.size()));
}

}  // namespace

bool FuzzManifest(absl::string_view input) {
  static const Scratch folder("manifest");
  static const auto* const checkpoint = new std::string(SaveCheckpoint(folder.path(), SampleCheckpoint(), 1).value());
  Write(*checkpoint + "/manifest.json", input);
  Write(*checkpoint + "/DONE", absl::StrFormat("%016x\n", XXH3_64bits(input.data(), input.size())));
  const auto loaded = LoadCheckpoint(*checkpoint);
  if (loaded.ok()) return true;
  Check(absl::IsDataLoss(loaded.status()) || absl::IsFailedPrecondition(loaded.status()),
        "a bad manifest is DataLoss, one of another format FailedPrecondition");
  Check(std::string(loaded.status().message()).find(*checkpoint) != std::string::npos, "it says which file");
  return false;
}

}  // namespace skein::fuzz
