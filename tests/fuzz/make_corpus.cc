// SPDX-License-Identifier: Apache-2.0
// fuzz-make-corpus FOLDER: writes the seeds of all fuzz targets to FOLDER/TARGET/NAME. Files of other names stay.
#include <cstdio>
#include <filesystem>
#include <string>

#include "base/process/file.h"
#include "tests/fuzz/seeds.h"

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: fuzz-make-corpus tests/fuzz/corpus\n");
    return 64;
  }
  for (const auto& seeds : {skein::fuzz::WireSeeds(), skein::fuzz::ConfigSeeds(), skein::fuzz::FileSeeds(),
                            skein::fuzz::StateLogSeeds(), skein::fuzz::WorldSeeds()}) {
    for (const skein::fuzz::Seed& seed : seeds) {
      const std::filesystem::path folder = std::filesystem::path(argv[1]) / seed.target;
      std::filesystem::create_directories(folder);
      const absl::Status written = skein::WriteFileSynced(folder / seed.name, seed.bytes);
      if (!written.ok()) {
        std::fprintf(stderr, "fuzz-make-corpus: %s\n", written.ToString().c_str());
        return 74;
      }
    }
  }
  return 0;
}
