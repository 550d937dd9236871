// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <thread>

#include "cli/history_check.h"
#include "gtest/gtest.h"
#include "tests/learner/collector_fixture.h"

namespace skein {
namespace {

constexpr uint64_t kHistoryIterations = 2000;

// Made in a process that is to record.
class RecordedCollector : public CollectorTest {
 public:
  void TestBody() override {}
  // One thread takes iterations as soon as they are whole, and another one delivers their fragments.
  void TrainAndServe() {
    Open(kAda, 2);
    std::thread trains([this] {
      for (uint64_t i = 1; i <= kHistoryIterations; ++i) {
        collector_.OpenIteration(i);
        while (!collector_.WaitForIteration(absl::Seconds(1))) continue;
        collector_.Trained(2 * kFragmentSteps);
      }
    });
    for (uint64_t served = 0; served < 2 * kHistoryIterations;) {
      for (const auto& [actor, ticket] : collector_.TakeGrants()) {
        Deliver(actor, Serve(actor, ticket));
        ++served;
      }
    }
    trains.join();
  }
};

// Whoever reads the history counts the fragments of an iteration so.
TEST(CollectorHistoryDeathTest, HasAnIterationsFragmentsBeforeItsUpdate) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";  // SKEIN_HISTORY is read once in each process.
  const std::string folder = testing::TempDir() + "/skein_collector_history_test";
  const auto record = [&folder] {
    setenv("SKEIN_HISTORY", folder.c_str(), 1);
    RecordedCollector().TrainAndServe();
    _exit(HasFailure() ? 1 : 0);
  };
  std::filesystem::remove_all(folder);
  std::filesystem::create_directory(folder);
  EXPECT_EXIT(record(), testing::ExitedWithCode(0), "");
  uint64_t fragments = 0, iterations = 0;
  const absl::Status read = ReadHistory(folder, [&](const HistoryEvent& event) {
    fragments += event.event == "batch" ? 1 : 0;
    if (event.event != "trained") return;
    ++iterations;
    EXPECT_EQ(fragments, 2 * iterations);
  });
  EXPECT_TRUE(read.ok()) << read;
  EXPECT_EQ(iterations, kHistoryIterations);
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace skein
