// SPDX-License-Identifier: Apache-2.0
#include "tests/faults/faulty_training.h"

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/integration/run_files.h"

namespace skein {
namespace {

constexpr uint32_t kIterationSteps = 1024;

}  // namespace

FaultyTraining::FaultyTraining(const std::vector<std::string>& settings, uint32_t iterations, bool evaluates)
    : settings_(settings), iterations_(iterations), evaluates_(evaluates) {}

std::unique_ptr<Running> FaultyTraining::Start(const std::string& faults, const std::vector<std::string>& arguments,
                                               std::vector<std::string> variables) const {
  std::vector<std::string> all = {
      "train",      "--config",   "configs/cartpole_ppo.yaml",
      "--runs-dir", runs_.path(), "--name",
      "run",        "--steps",    absl::StrCat(iterations_ * kIterationSteps),
      "--actors",   "1",          "--runners",
      "2",          "--set",      absl::StrCat("checkpoint.interval_steps=", kIterationSteps)};
  if (!evaluates_) all.push_back("--no-eval");
  for (const std::string& setting : settings_) {
    all.push_back("--set");
    all.push_back(setting);
  }
  all.insert(all.end(), arguments.begin(), arguments.end());
  if (!faults.empty()) variables.push_back("SKEIN_FAULTS=" + faults);
  return std::make_unique<Running>("skein", all, variables);
}

Ended FaultyTraining::Train(const std::string& faults, const std::vector<std::string>& arguments) const {
  const auto session = Start(faults, arguments);
  Ended ended;
  ended.code = session->WaitForEnd(absl::Minutes(2));
  ended.out = session->Output();
  return ended;
}

std::string FaultyTraining::Log(const std::string& name) const {
  return runs_.Read(absl::StrCat("run/log/", name, ".log"));
}

std::string FaultyTraining::FinishedDigest() const {
  const v1::StepAccount account = Account(run());
  EXPECT_TRUE(Balances(account)) << account.ShortDebugString();
  EXPECT_EQ(account.trained(), iterations_ * kIterationSteps);
  EXPECT_EQ(account.pending(), 0u);
  EXPECT_EQ(account.rejected(), 0u);
  return Digest(run());
}

const std::string& FaultyTraining::Undisturbed() {
  static const std::string* const digest = [] {
    const FaultyTraining training;
    EXPECT_EQ(training.Train("").code, 0);
    return new std::string(training.FinishedDigest());
  }();
  return *digest;
}

int Count(const std::string& text, const std::string& part) {
  int count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

}  // namespace skein
