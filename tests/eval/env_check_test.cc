// SPDX-License-Identifier: Apache-2.0
#include "eval/env_check.h"

#include <limits>

#include "gmock/gmock.h"
#include "nlohmann/json.hpp"

namespace skein {
namespace {

using testing::AllOf;
using testing::HasSubstr;

// What is wrong with a Walk.
struct Fault {
  bool clock = false;          // Its numbers depend on when it was made.
  bool shared = false;         // They depend on others of the process.
  bool throws = false;         // In the 50th step of each episode.
  bool nan = false;            // Observes one in the 50th step.
  bool terminates = false;     // At its time limit.
  bool endless = false;        // No end at all.
  bool early_reset = false;    // The last observation is the next episode's first.
  bool forgets = false;        // Saves too little.
  bool short_row = false;      // Observes one number too few.
  bool late = false;           // Comes apart in its 300th step.
  bool has_no_bounds = false;  // A lower bound above the upper one.
};

int made = 0;
double common = 0;

// A random walk that is truncated after 60 steps and terminates far from where it began.
class Walk final : public Env {
 public:
  explicit Walk(const Fault& fault) : fault_(fault), number_(++made) {
    spec_.id = "Walk";
    spec_.obs_size = 2;
    spec_.action_size = 1;
    spec_.action_low = {fault.has_no_bounds ? 2.0f : -1.0f};
    spec_.action_high = {1};
    spec_.state_size = 3;
    spec_.max_episode_steps = fault.endless ? 0 : 60;
  }

  const EnvSpec& spec() const override { return spec_; }
  void Reset(RandomStream& random) override {
    at_ = first_ = random.Uniform(-1, 1);
    steps_ = 0;
  }
  bool Step(const float* action, float* reward) override {
    ++steps_;
    ++taken_;
    at_ += 0.01 * double{action[0]} + (fault_.clock ? 0.001 * number_ : 0);
    if (fault_.shared) at_ += 0.001 * (common += 1);
    if (fault_.throws && steps_ == 50) throw std::runtime_error("no way on");
    *reward = static_cast<float>(at_ - first_);
    if (fault_.late && taken_ == 300) *reward = std::numeric_limits<float>::infinity();
    return fault_.terminates && steps_ == 60;
  }
  void Observe(float* obs) const override {
    const bool over = fault_.early_reset && steps_ == 60;
    obs[0] = static_cast<float>(over || fault_.early_reset ? (steps_ % 60) : at_);
    if (fault_.nan && steps_ == 50) obs[0] = std::numeric_limits<float>::quiet_NaN();
    if (!fault_.short_row) obs[1] = fault_.early_reset ? 0.0f : static_cast<float>(steps_);
  }
  void SaveState(double* state) const override {
    state[0] = at_;
    state[1] = first_;
    state[2] = fault_.forgets ? 0 : steps_;
  }
  void LoadState(const double* state) override {
    at_ = state[0];
    first_ = state[1];
    steps_ = static_cast<int>(state[2]);
  }

 private:
  const Fault fault_;
  const int number_;
  EnvSpec spec_;
  double at_ = 0, first_ = 0;
  int steps_ = 0, taken_ = 0;
};

EnvCheck CheckWalk(const Fault& fault, EnvCheckOptions options = {}) {
  options.env_id = "Walk";
  options.num_envs = 4;
  options.measure = fault.late ? absl::Seconds(2) : absl::Milliseconds(5);
  options.make = [&fault](int size, uint64_t seed) {
    std::vector<std::unique_ptr<Env>> envs;
    for (int e = 0; e < size; ++e) envs.push_back(std::make_unique<Walk>(fault));
    return VectorEnv::Wrap(std::move(envs), {.seed = seed});
  };
  return CheckEnv(options).value();
}

// The points that fail, by name, and what was found.
std::string Failing(const EnvCheck& check) {
  std::string failing;
  for (const CheckedPoint& point : check.points) {
    if (point.verdict != Verdict::kFails) continue;
    absl::StrAppend(&failing, point.name, ": ", point.found, "\n");
    EXPECT_NE(point.remedy, "") << point.name;
  }
  EXPECT_EQ(check.ok(), failing.empty());
  return failing;
}

TEST(EnvCheck, FindsNothingWrongWithAGoodEnvironment) {
  std::vector<std::string> told;  // As soon as each is known.
  EnvCheckOptions options;
  options.on_point = [&told](const CheckedPoint& point) { told.push_back(point.name); };
  const EnvCheck check = CheckWalk({}, options);
  EXPECT_EQ(Failing(check), "");
  std::vector<std::string> names;
  for (const CheckedPoint& point : check.points) {
    names.push_back(point.name);
    EXPECT_EQ(point.verdict, point.name == "dtypes" ? Verdict::kNotApplicable : Verdict::kOk) << point.name;
  }
  EXPECT_THAT(names, testing::ElementsAre("made", "spec", "numbers", "dtypes", "closes", "seeds", "ends",
                                          "final observation", "state", "speed"));
  EXPECT_EQ(told, names);
  EXPECT_GT(check.alone, 0);
  EXPECT_GT(check.together, 0);
}

TEST(EnvCheck, FindsEachFault) {
  EXPECT_THAT(Failing(CheckWalk({.clock = true})), HasSubstr("seeds: two with the same seed"));
  EXPECT_THAT(Failing(CheckWalk({.shared = true})), HasSubstr("seeds: "));
  EXPECT_THAT(Failing(CheckWalk({.throws = true})), AllOf(HasSubstr("numbers: "), HasSubstr("threw: no way on")));
  EXPECT_THAT(Failing(CheckWalk({.nan = true})), AllOf(HasSubstr("numbers: "), HasSubstr("not finite")));
  EXPECT_THAT(Failing(CheckWalk({.late = true})), AllOf(HasSubstr("speed: "), HasSubstr(" more steps failed")));
  EXPECT_THAT(Failing(CheckWalk({.terminates = true})), HasSubstr("terminated in their last allowed step"));
  EXPECT_THAT(Failing(CheckWalk({.endless = true})), HasSubstr("ends: no episode of 200 steps ended"));
  EXPECT_THAT(Failing(CheckWalk({.early_reset = true})), HasSubstr("final observation: "));
  EXPECT_THAT(Failing(CheckWalk({.forgets = true})), HasSubstr("state: "));
  EXPECT_THAT(Failing(CheckWalk({.short_row = true})), HasSubstr("numbers: "));
  EXPECT_THAT(Failing(CheckWalk({.has_no_bounds = true})), HasSubstr("spec: action 0 is from 2 to 1"));
}

TEST(EnvCheck, HasWhatIsSaidOfTypesAndMeasuredInAnActor) {
  EnvCheckOptions options;
  options.look_at_dtypes = [] { return CheckedPoint{"", Verdict::kFails, "a reward is an array", "give a number"}; };
  options.measure_actor = [] { return 123.0; };
  const EnvCheck check = CheckWalk({}, options);
  EXPECT_EQ(Failing(check), "dtypes: a reward is an array\n");
  EXPECT_EQ(check.in_actor, 123);
  EXPECT_THAT(check.points.back().found, HasSubstr("in an actor 123 steps/s"));

  options.look_at_dtypes = nullptr;
  options.measure_actor = [] { return absl::NotFoundError("no skein-bench beside skein"); };
  const EnvCheck without = CheckWalk({}, options);
  EXPECT_EQ(Failing(without), "");
  EXPECT_THAT(without.points.back().found, HasSubstr("not measured: no skein-bench"));

  options.measure_actor = [] { return absl::DeadlineExceededError("skein bench rollout took more than 1m"); };
  const EnvCheck slow = CheckWalk({}, options);
  EXPECT_EQ(Failing(slow), "");
  EXPECT_THAT(slow.points.back().found, HasSubstr("in an actor not measured: skein bench rollout took"));
  EXPECT_EQ(slow.in_actor, 0);

  options.measure_actor = [] { return absl::UnavailableError("it ended with code 70"); };
  EXPECT_THAT(Failing(CheckWalk({}, options)), HasSubstr("speed: an actor cannot step it: it ended with code 70"));
}

TEST(EnvCheck, SaysWhyAnEnvironmentCannotBeMade) {
  EnvCheckOptions options;
  options.env_id = "python:no:make";
  absl::Status why = absl::FailedPreconditionError("no module 'no'");
  options.make = [&why](int, uint64_t) -> absl::StatusOr<std::unique_ptr<VectorEnv>> { return why; };
  EXPECT_THAT(Failing(CheckEnv(options).value()), HasSubstr("made: no module 'no'"));
  why = absl::UnavailableError("nobody answers");
  EXPECT_EQ(CheckEnv(options).status(), why);
}

// In the middle of a pass, and before anything else is measured.
TEST(EnvCheck, EndsEarlyWhereItIsTold) {
  int asked = 0;
  bool measured = false;
  EnvCheckOptions options;
  options.env_id = "Walk";
  options.stopping = [&asked] { return ++asked > 30; };
  options.measure_actor = [&measured] {
    measured = true;
    return 1.0;
  };
  options.make = [](int size, uint64_t seed) {
    std::vector<std::unique_ptr<Env>> envs;
    for (int e = 0; e < size; ++e) envs.push_back(std::make_unique<Walk>(Fault{}));
    return VectorEnv::Wrap(std::move(envs), {.seed = seed});
  };
  EXPECT_EQ(CheckEnv(options).status(), absl::CancelledError("stopped on request"));
  EXPECT_FALSE(measured);
}

TEST(EnvCheck, IsWrittenAsLinesAndAsJson) {
  EnvCheck check;
  check.env_id = "Walk";
  check.points = {{"made", Verdict::kOk, "in 0.1 s", ""},
                  {"state", Verdict::kNotApplicable, "it cannot be saved", ""},
                  {"seeds", Verdict::kFails, "they differ", "mend them"}};
  check.alone = 10;
  EXPECT_EQ(FormatCheckedPoint(check.points[0]), "  ok    made               in 0.1 s\n");
  EXPECT_THAT(FormatCheckedPoint(check.points[1]), HasSubstr("-     state"));
  EXPECT_THAT(FormatCheckedPoint(check.points[2]), AllOf(HasSubstr("fails seeds"), HasSubstr("do: mend them")));
  EXPECT_THAT(FormatVerdict(check), HasSubstr("does not keep"));
  const auto json = nlohmann::json::parse(EnvCheckJson(check));
  EXPECT_FALSE(json["ok"].get<bool>());
  EXPECT_EQ(json["points"][1]["verdict"], "not_applicable");
  EXPECT_EQ(json["points"][2]["remedy"], "mend them");
  EXPECT_EQ(json["env_steps_per_second"]["alone"], 10);
}

}  // namespace
}  // namespace skein
