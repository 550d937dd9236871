// SPDX-License-Identifier: Apache-2.0
#include "launch/node_bookings.h"

#include <sys/stat.h>
#include <unistd.h>

#include "base/config/config.h"
#include "base/process/exit_code.h"
#include "gmock/gmock.h"
#include "tests/cli/scratch_folder.h"

namespace skein {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

constexpr NodeResources kHere = {.cpus = 2, .gpus = 1, .memory_bytes = uint64_t{4} << 30};

v1::RunConfig Config(std::vector<std::string> settings) {
  settings.push_back("name=cheetah");
  return *LoadRunConfig("", settings, 1);
}

TEST(AskedFor, AddsUpProcesses) {
  const v1::RunConfig config = Config({"resources.actor.cpus=0.5", "resources.learner.cpus=1",
                                       "resources.learner.gpus=0.25", "resources.actor.memory=1GiB"});
  const NodeResources asked = AskedFor(config, 2, 3);
  EXPECT_EQ(asked.cpus, 2 * 1 + 3 * 0.5);
  EXPECT_EQ(asked.gpus, 0.5);
  EXPECT_EQ(asked.memory_bytes, uint64_t{3} << 30);
}

TEST(NodeBooking, ARunWithoutSharesBooksNothing) {
  const ScratchFolder folder;
  const auto booking = NodeBooking::Take(folder.path() + "/books", RequestOf(Config({}), 1, 1), kHere);
  ASSERT_TRUE(booking.ok());
  EXPECT_EQ(*booking, nullptr);
  EXPECT_THAT(NodeBooking::List(folder.path() + "/books"), IsEmpty());
}

TEST(NodeBooking, MoreThanIsHereIsRefused) {
  const ScratchFolder folder;
  const auto refused = [&](const std::string& setting) {
    const auto booking = NodeBooking::Take(folder.path() + "/books", RequestOf(Config({setting}), 1, 3), kHere);
    EXPECT_EQ(ExitCodeOf(booking.status()), kExitUsage);
    return std::string(booking.status().message());
  };
  EXPECT_EQ(refused("resources.actor.cpus=0.7"),  // 3 x 0.7
            "resources.actor.cpus and resources.learner.cpus: the processes of this run ask for 2.1 of CPUs, "
            "and 2 of 2 is left on this machine; ask for less, or start fewer --actors");
  EXPECT_THAT(refused("resources.actor.memory=1.5GiB"),
              HasSubstr("ask for 4608 MiB of memory, and 4 GiB of 4 GiB is left on this machine"));
  EXPECT_THAT(refused("resources.actor.gpus=0.5"), HasSubstr("ask for 1.5 of GPUs, and 1 of 1 is left"));
}

TEST(NodeBooking, WhatOthersHaveIsNotLeft) {
  const ScratchFolder folder;
  const std::string books = folder.path() + "/books";
  auto first = NodeBooking::Take(books, RequestOf(Config({"resources.learner.cpus=1.5"}), 1, 1), kHere);
  ASSERT_TRUE(first.ok()) << first.status();
  const auto second = NodeBooking::Take(books, RequestOf(Config({"resources.learner.cpus=1"}), 1, 1), kHere);
  EXPECT_TRUE(absl::IsUnavailable(second.status()));  // Later it may be there.
  EXPECT_THAT(std::string(second.status().message()),
              HasSubstr("ask for 1 of CPUs, and 0.5 of 2 is left on this machine: run cheetah (process " +
                        std::to_string(getpid()) + ") has 1.5; ask for less"));
  // Exactly what is left.
  ASSERT_TRUE(NodeBooking::Take(books, RequestOf(Config({"resources.learner.cpus=0.5"}), 1, 1), kHere).ok());
  first->reset();
  EXPECT_THAT(NodeBooking::List(books), IsEmpty());
  EXPECT_TRUE(NodeBooking::Take(books, RequestOf(Config({"resources.learner.cpus=2"}), 1, 1), kHere).ok());
}

TEST(NodeBooking, OfProcessesThatHaveEndedDoesNotCount) {
  const ScratchFolder folder;
  const std::string path = folder.Write("1-1.json", R"({"run": "dead", "pid": 1, "cpus": 2})");
  ASSERT_EQ(chmod(folder.path().c_str(), 0700), 0);
  EXPECT_THAT(NodeBooking::List(folder.path()), IsEmpty());
  EXPECT_NE(access(path.c_str(), F_OK), 0);
}

TEST(NodeBooking, AFolderThatOthersMayWriteIsRefused) {
  const ScratchFolder folder;
  ASSERT_EQ(chmod(folder.path().c_str(), 0777), 0);
  const auto booking = NodeBooking::Take(folder.path(), RequestOf(Config({"resources.learner.cpus=1"}), 1, 1), kHere);
  EXPECT_TRUE(absl::IsPermissionDenied(booking.status())) << booking.status();
}

TEST(WhatIsHere, IsWhatThisProcessMayUse) {
  const NodeResources here = WhatIsHere(3);
  EXPECT_GT(here.cpus, 0);
  EXPECT_LE(here.cpus, sysconf(_SC_NPROCESSORS_CONF));
  EXPECT_EQ(here.gpus, 3);
  EXPECT_GT(here.memory_bytes, uint64_t{64} << 20);
}

}  // namespace
}  // namespace skein
