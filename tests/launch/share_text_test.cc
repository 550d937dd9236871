// SPDX-License-Identifier: Apache-2.0
#include "launch/share_text.h"

#include "gtest/gtest.h"

namespace skein {
namespace {

constexpr uint64_t kMiB = 1 << 20;

TEST(SlurmFlags, RoundsUpToWhatSlurmCounts) {
  EXPECT_EQ(SlurmFlags({}), "");
  EXPECT_EQ(SlurmFlags({.cpus = 0.5, .gpus = 0.25, .memory_bytes = 2048 * kMiB}),
            "--cpus-per-task=1 --mem=2048M --gres=gpu:1");
  EXPECT_EQ(SlurmFlags({.cpus = 0.1 + 0.2, .gpus = 0, .memory_bytes = 64 * kMiB + 1}), "--cpus-per-task=1 --mem=65M");
  EXPECT_EQ(SlurmFlags(Times({.cpus = 0.1}, 30)), "--cpus-per-task=3");  // 30 x 0.1 is a little more than 3.
}

TEST(HelmValues, AreRequestsAndLimits) {
  EXPECT_EQ(HelmValues("actor", {}), "");
  EXPECT_EQ(HelmValues("actor", {.cpus = 0.5, .gpus = 0.25, .memory_bytes = 2048 * kMiB}),
            "actor:\n"
            "  resources:\n"
            "    requests: {cpu: 500m, memory: 2048Mi, nvidia.com/gpu: 1}\n"
            "    limits: {cpu: 500m, memory: 2048Mi, nvidia.com/gpu: 1}\n");
  EXPECT_EQ(HelmValues("learner", {.cpus = 2, .gpus = 1}),
            "learner:\n"
            "  gpus: 1\n"
            "  resources:\n"
            "    requests: {cpu: 2000m}\n"
            "    limits: {cpu: 2000m}\n");
}

TEST(LargerOf, TakesEachResourceByItself) {
  const ResourceShare larger = LargerOf({.cpus = 2, .memory_bytes = 100 * kMiB}, {.cpus = 1, .gpus = 0.5});
  EXPECT_EQ(larger.cpus, 2);
  EXPECT_EQ(larger.gpus, 0.5);
  EXPECT_EQ(larger.memory_bytes, 100 * kMiB);
}

}  // namespace
}  // namespace skein
