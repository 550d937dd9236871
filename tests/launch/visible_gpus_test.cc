// SPDX-License-Identifier: Apache-2.0
#include "launch/visible_gpus.h"

#include "gmock/gmock.h"

namespace skein {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(VisibleGpus, AreAllThatAreInstalledUnlessTheVariableIsSet) {
  EXPECT_THAT(VisibleGpus(std::nullopt, 4), ElementsAre("0", "1", "2", "3"));
  EXPECT_THAT(VisibleGpus(std::nullopt, 0), IsEmpty());
}

TEST(VisibleGpus, AreThoseThatTheVariableNames) {
  EXPECT_THAT(VisibleGpus("0", 4), ElementsAre("0"));
  EXPECT_THAT(VisibleGpus("2, 3", 4), ElementsAre("2", "3"));
  // Parts of one GPU count each.
  EXPECT_THAT(VisibleGpus("GPU-8932f937,MIG-1c5f", 1), ElementsAre("GPU-8932f937", "MIG-1c5f"));
  EXPECT_THAT(VisibleGpus("0,1", 0), ElementsAre("0", "1"));  // The driver cannot be asked: believed.
}

TEST(VisibleGpus, EndAtTheFirstEntryThatIsNoGpu) {
  EXPECT_THAT(VisibleGpus("", 4), IsEmpty());
  EXPECT_THAT(VisibleGpus("-1", 4), IsEmpty());
  EXPECT_THAT(VisibleGpus("NoDevFiles", 4), IsEmpty());
  EXPECT_THAT(VisibleGpus("0,-1,1", 4), ElementsAre("0"));
  EXPECT_THAT(VisibleGpus("1,4,2", 4), ElementsAre("1"));  // There is no number 4.
}

TEST(VisibleGpuMemory, IsKnownWhereAllGpusAreAlike) {
  EXPECT_THAT(VisibleGpuMemory(std::nullopt, {80, 80, 80}), ElementsAre(80u, 80u, 80u));
  EXPECT_THAT(VisibleGpuMemory("GPU-8932f937", {80, 80, 80}), ElementsAre(80u));
  EXPECT_THAT(VisibleGpuMemory("", {80}), IsEmpty());
  // CUDA may number them in another order than the driver.
  EXPECT_THAT(VisibleGpuMemory("1", {80, 40}), IsEmpty());
  EXPECT_THAT(VisibleGpuMemory("0,1", {80, std::nullopt}), IsEmpty());
  // An instance has a part of its GPU's memory.
  EXPECT_THAT(VisibleGpuMemory("MIG-1c5f", {80}), IsEmpty());
  EXPECT_THAT(VisibleGpuMemory(std::nullopt, std::vector<std::optional<uint64_t>>{}), IsEmpty());
}

}  // namespace
}  // namespace skein
