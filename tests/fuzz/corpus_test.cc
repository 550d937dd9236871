// SPDX-License-Identifier: Apache-2.0
// The corpora of the fuzz targets as ordinary tests, so that neither can rot, and a modest number of mutations of them.
#include <algorithm>
#include <filesystem>

#include "absl/strings/match.h"
#include "base/process/file.h"
#include "gtest/gtest.h"
#include "tests/fuzz/allocation_watch.h"
#include "tests/fuzz/mutation.h"
#include "tests/fuzz/targets.h"
#include "tests/testing/fault_choice.h"

namespace skein::fuzz {
namespace {

namespace fs = std::filesystem;

// Paths of a target's seeds in order.
std::vector<std::string> Seeds(const Target& target) {
  std::vector<std::string> paths;
  for (const auto& entry : fs::directory_iterator(std::string("tests/fuzz/corpus/") + target.name)) {
    paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

std::string Read(const std::string& path) {
  const auto bytes = ReadFile(path);
  EXPECT_TRUE(bytes.ok()) << bytes.status();
  return bytes.value_or("");
}

class FaultRow22 : public testing::Test {
 protected:
  FaultRow22() { SilenceProtobuf(); }
};

// Seeds named good_... are what we make ourselves; the others must be refused. A good one that is refused: the format
// has changed, and the corpus is to be made again (build/release/fuzz-make-corpus).
TEST_F(FaultRow22, EveryDecoderAcceptsWhatWeMakeAndRefusesWhatWasFound) {
  for (const Target& target : kTargets) {
    int good = 0, bad = 0;
    for (const std::string& path : Seeds(target)) {
      const bool is_good = absl::StartsWith(fs::path(path).filename().string(), "good_");
      ++(is_good ? good : bad);
      EXPECT_EQ(target.run(Read(path)), is_good) << path;
    }
    EXPECT_GT(good, 0) << target.name;
    EXPECT_GT(bad, 0) << target.name;
  }
}

// A decoder that allocated what a message declares, without having that much of it, would be seen.
TEST_F(FaultRow22, NoMutationOfAFragmentAllocatesMoreThanItsMessage) {
  // What is not the fragment itself: small headers, read into protobuf's own form, and texts of errors.
  constexpr size_t kHeaders = 64 << 10;
  std::mt19937 random = FaultRandom(22);
  int refused = 0, runs = 0;
  for (const std::string& path : Seeds(kTargets[0])) {
    const std::string seed = Read(path);
    kTargets[0].run(seed);  // Buffers that are made once.
    for (int i = 0; i < 500; ++i, ++runs) {
      const std::string input = Mutate(seed, &random);
      const AllocationWatch watch;
      refused += !kTargets[0].run(input);
      ASSERT_LE(watch.largest(), input.size() + kHeaders) << path << ", mutation " << i;
    }
  }
  EXPECT_GT(refused, runs / 2);
}

TEST_F(FaultRow22, MutationsOfEverythingElseAreDecidedInBoundedMemory) {
  constexpr size_t kMost = 4 << 20;  // Of seeds of a few kilobytes.
  for (const Target& target : kTargets) {
    std::mt19937 random = FaultRandom(23);
    for (const std::string& path : Seeds(target)) {
      const std::string seed = Read(path);
      target.run(seed);
      for (int i = 0; i < 40; ++i) {
        const std::string input = Mutate(seed, &random);
        const AllocationWatch watch;
        target.run(input);
        ASSERT_LE(watch.largest(), kMost) << path << ", mutation " << i;
      }
    }
  }
}

}  // namespace
}  // namespace skein::fuzz
