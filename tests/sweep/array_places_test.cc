// SPDX-License-Identifier: Apache-2.0
#include "sweep/array_places.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/file.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/process/no_links.h"
#include "gmock/gmock.h"
#include "tests/cli/scratch_folder.h"

namespace skein {
namespace {

using testing::ElementsAre;

TEST(ArrayPlaces, AreThoseOfProcessesThatLive) {
  const ScratchFolder folder;
  const std::string places = folder.path() + "/places";
  auto leader = ArrayPlaces::Lend(places, "12", 2), other = ArrayPlaces::Lend(places, "13", 1);
  ASSERT_TRUE(leader.ok() && other.ok()) << leader.status() << other.status();
  folder.Write("places/9-0", "");  // Of a process that was killed.
  EXPECT_THAT((*leader)->List(), ElementsAre("12-0", "12-1", "13-0"));
  EXPECT_FALSE(std::filesystem::exists(places + "/9-0"));
  EXPECT_EQ(ArrayPlaces::JobOf("13-0"), "13");
  EXPECT_TRUE(absl::IsUnavailable(ArrayPlaces::Lend(places, "13", 1).status()));
  other->reset();
  absl::SleepFor(absl::Milliseconds(1100));  // A look each second.
  EXPECT_THAT((*leader)->List(), ElementsAre("12-0", "12-1"));
}

// As a leader looks: it locks what nobody lends for a moment, and removes it.
TEST(ArrayPlaces, AreLentAlthoughALeaderLooks) {
  const ScratchFolder folder;
  const std::string places = folder.path() + "/places", path = places + "/12-0";
  std::atomic<bool> over{false};
  std::thread leader([&] {  // Far more often than a real one.
    while (!over) {
      sched_yield();
      const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
      if (fd < 0) continue;
      if (flock(fd, LOCK_SH | LOCK_NB) == 0 && IsFileAt(fd, path)) unlink(path.c_str());
      close(fd);
    }
  });
  for (int i = 0; i < 3000; ++i) {
    const auto lent = ArrayPlaces::Lend(places, "12", 1);
    EXPECT_TRUE(lent.ok()) << lent.status();
    EXPECT_TRUE(std::filesystem::exists(path)) << i;
  }
  over = true;
  leader.join();
}

// With a stand-in for squeue.
TEST(ArrayPlaces, WhatSlurmEndsLendsNothing) {
  const ScratchFolder folder;
  const std::string path = std::getenv("PATH");
  folder.WriteScript("squeue", "exit 1");  // No answer.
  setenv("PATH", absl::StrCat(folder.path(), ":", path).c_str(), 1);
  auto leader = ArrayPlaces::Lend(folder.path() + "/places", "12", 1);
  auto other = ArrayPlaces::Lend(folder.path() + "/places", "13", 1);
  ASSERT_TRUE(leader.ok() && other.ok());
  EXPECT_THAT((*leader)->List(), ElementsAre("12-0", "13-0"));
  EXPECT_TRUE((*leader)->StillRuns("13-0"));
  folder.WriteScript("squeue", "echo 12; echo 113");
  EXPECT_TRUE((*leader)->StillRuns("12-0"));
  EXPECT_FALSE((*leader)->StillRuns("13-0"));
  EXPECT_THAT((*leader)->List(), ElementsAre("12-0"));  // At once.
  setenv("PATH", path.c_str(), 1);
}

}  // namespace
}  // namespace skein
