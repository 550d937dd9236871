// SPDX-License-Identifier: Apache-2.0
#include "eval/env_check.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/number/philox.h"
#include "base/process/clock.h"
#include "base/process/message_text.h"

namespace skein {
namespace {

constexpr uint64_t kSeed = 1, kOtherSeed = 2;
constexpr int64_t kLeastSteps = 200, kMostSteps = 100000;
constexpr int kPassEnvs = 2;

int64_t ActionRow(const EnvSpec& spec) { return int64_t{spec.num_agents} * (spec.discrete ? 1 : spec.action_size); }

// The action of each step: random within the bounds, each eighth at one of them. The same for the same step.
void WriteActions(const EnvSpec& spec, int64_t step, int envs, std::vector<float>* actions) {
  RandomStream random(kSeed, RandomPurpose::kAction, 0, static_cast<uint64_t>(step));
  const int64_t width = ActionRow(spec);
  actions->resize(static_cast<size_t>(envs * width));
  for (int64_t i = 0; i < envs * width; ++i) {
    float* const action = actions->data() + i;
    if (spec.discrete) {
      *action = static_cast<float>(random.Below(static_cast<uint32_t>(spec.action_size)));
      continue;
    }
    const auto d = static_cast<size_t>(i % spec.action_size);
    const float low = spec.action_low[d], high = spec.action_high[d];
    const uint32_t eighth = random.Below(8);
    *action = eighth == 0 ? (random.Below(2) == 0 ? low : high) : static_cast<float>(random.Uniform(low, high));
  }
}

// What a pass with random actions saw. Of environments 0 .. size - 1 of the VectorEnv.
struct Pass {
  absl::Status failure;  // Of VectorEnv.
  std::string said;      // By the log.
  int64_t steps = 0;
  int64_t diverged = 0;                                          // Steps that failed.
  int64_t terminated = 0, truncated = 0, terminated_at_end = 0;  // Episodes; the last: terminated in their last step.
  int64_t limit_reached = 0;                                     // Episodes as long as the limit.
  int64_t same_final = 0;                    // Episodes whose final observation is the next one's first.
  std::vector<std::vector<float>> observed;  // Of environment 0: the first observation, then of each step.
  std::vector<std::vector<float>> final;     // Of environment 0: of each episode.
  std::vector<float> rewards;                // Of environment 0: of each step.

  int64_t episodes() const { return terminated + truncated; }
};

// The rows of environment 0 in one pass and another: the first step at which they differ, or nullopt.
std::optional<size_t> FirstDifference(const Pass& one, const Pass& other) {
  const size_t steps = std::min(one.observed.size(), other.observed.size());
  for (size_t i = 0; i < steps; ++i) {
    const bool reward = i == 0 || std::memcmp(&one.rewards[i - 1], &other.rewards[i - 1], sizeof(float)) == 0;
    if (!reward || one.observed[i] != other.observed[i]) return i;
  }
  for (size_t i = 0; i < std::min(one.final.size(), other.final.size()); ++i) {
    if (one.final[i] != other.final[i]) return steps;
  }
  return std::nullopt;
}

class Check {
 public:
  explicit Check(const EnvCheckOptions& options) : options_(options) { result_.env_id = options.env_id; }

  absl::StatusOr<EnvCheck> Run() {
    const absl::Status looked = Look();
    if (Stopping()) return absl::CancelledError("stopped on request");
    if (!looked.ok()) return looked;
    return result_;
  }

 private:
  bool Stopping() const { return options_.stopping && options_.stopping(); }

  absl::Status Look() {
    const absl::Duration begin = MonotonicNow();
    auto made = options_.make(kPassEnvs, kSeed);
    if (absl::IsInvalidArgument(made.status()) || absl::IsUnavailable(made.status()) ||
        absl::IsUnauthenticated(made.status())) {
      return made.status();
    }
    if (!made.ok()) {
      Fail("made", std::string(made.status().message()), "see what it says; nothing else can be looked at");
      return absl::OkStatus();
    }
    spec_ = (*made)->spec();
    Good("made",
         absl::StrFormat("%d environments in %.2f s", kPassEnvs, absl::ToDoubleSeconds(MonotonicNow() - begin)));
    LookAtSpec();
    const Pass first = Play(**made, Steps());
    made->reset();
    const std::string closing = options_.take_log ? options_.take_log() : "";
    LookAtNumbers(first);
    LookAtDtypes(first);
    if (!first.failure.ok()) return absl::OkStatus();
    LookAtClosing(closing);
    LookAtSeeds(first);
    LookAtEnds(first);
    LookAtFinal(first);
    LookAtState();
    Measure(first);
    return absl::OkStatus();
  }

  void Add(CheckedPoint point) {
    result_.points.push_back(std::move(point));
    if (options_.on_point) options_.on_point(result_.points.back());
  }
  void Good(const std::string& name, const std::string& found) {
    Add({.name = name, .verdict = Verdict::kOk, .found = found});
  }
  void Skip(const std::string& name, const std::string& why) {
    Add({.name = name, .verdict = Verdict::kNotApplicable, .found = why});
  }
  void Fail(const std::string& name, const std::string& found, const std::string& remedy) {
    Add({.name = name, .verdict = Verdict::kFails, .found = OneLine(found), .remedy = remedy});
  }

  int64_t Steps() const {
    if (options_.steps > 0) return options_.steps;
    return std::min(kMostSteps, std::max<int64_t>(kLeastSteps, spec_.max_episode_steps + 10));
  }

  // Steps with random actions from the first episodes on.
  Pass Play(VectorEnv& envs, int64_t steps) const {
    if (options_.take_log) options_.take_log();
    Pass pass;
    const auto size = static_cast<size_t>(envs.size());
    const size_t row = static_cast<size_t>(spec_.num_agents) * static_cast<size_t>(spec_.obs_size);
    std::vector<float> observed(size * row), actions;
    const auto begins = [&observed, row] {
      return std::vector<float>(observed.begin(), observed.begin() + static_cast<std::ptrdiff_t>(row));
    };
    envs.ResetAll(0);
    envs.Observe(observed.data());
    pass.observed.push_back(begins());
    const absl::Duration end = MonotonicNow() + options_.seconds;
    while (envs.failure().ok() && pass.steps < steps && MonotonicNow() < end && !Stopping()) {
      WriteActions(spec_, pass.steps, static_cast<int>(size), &actions);
      const VectorEnv::StepResult result = envs.Step(actions.data());
      ++pass.steps;
      envs.Observe(observed.data());
      pass.observed.push_back(begins());
      pass.rewards.push_back(result.reward[0]);
      for (size_t e = 0; e < size; ++e) {
        pass.diverged += result.diverged[e];
        if (!result.terminated[e] && !result.truncated[e]) continue;
        if (result.diverged[e]) continue;
        pass.terminated += result.terminated[e];
        pass.truncated += result.truncated[e];
        const bool at_limit = spec_.max_episode_steps > 0 && result.episode_length[e] >= spec_.max_episode_steps;
        pass.limit_reached += at_limit;
        pass.terminated_at_end += at_limit && result.terminated[e];
        pass.same_final +=
            std::equal(observed.begin() + static_cast<std::ptrdiff_t>(e * row),
                       observed.begin() + static_cast<std::ptrdiff_t>((e + 1) * row), result.final_obs + e * row);
        if (e == 0) pass.final.emplace_back(result.final_obs, result.final_obs + row);
      }
    }
    pass.failure = envs.failure();
    if (options_.take_log) pass.said = options_.take_log();
    return pass;
  }

  absl::StatusOr<Pass> PlayAnew(int size, uint64_t seed, int64_t steps) const {
    auto made = options_.make(size, seed);
    if (!made.ok()) return made.status();
    return Play(**made, steps);
  }

  void LookAtSpec() {
    const std::string agents = spec_.num_agents == 1 ? "1 agent" : absl::StrCat(spec_.num_agents, " agents");
    const std::string actions = absl::StrCat(spec_.action_size, spec_.discrete ? " choices" : " reals");
    const std::string limit = spec_.max_episode_steps == 0
                                  ? "no limit of steps that Skein knows"
                                  : absl::StrCat("at most ", spec_.max_episode_steps, " steps");
    const std::string found =
        absl::StrCat(agents, ", observations of ", spec_.obs_size, " numbers, ", actions, ", ", limit);
    for (size_t d = 0; d < spec_.action_low.size(); ++d) {
      if (spec_.action_low[d] < spec_.action_high[d]) continue;
      return Fail("spec", absl::StrCat("action ", d, " is from ", spec_.action_low[d], " to ", spec_.action_high[d]),
                  "give each real action a lower and a higher bound");
    }
    Good("spec", found);
  }

  void LookAtNumbers(const Pass& pass) {
    const std::string steps = absl::StrCat(pass.steps * kPassEnvs, " steps");
    const std::string said = pass.said.empty() ? "" : absl::StrCat(": ", pass.said);
    if (!pass.failure.ok()) {
      // The log has the cause alone, for an environment in a server of its own.
      const bool told = absl::StartsWith(pass.said, options_.env_id);
      return Fail("numbers", told ? pass.said : absl::StrCat(std::string(pass.failure.message()), said),
                  "each observation and reward has the size that the spec says, is finite and within 1e6, and nothing "
                  "is thrown");
    }
    if (pass.diverged > 0) {
      return Fail("numbers", absl::StrCat(pass.diverged, " of ", steps, " failed", said),
                  "each failure costs an episode: mend what it names, also for actions at their bounds");
    }
    Good("numbers", absl::StrCat(steps, " with random actions, all numbers finite and within their bounds"));
  }

  void LookAtDtypes(const Pass& first) {
    if (first.diverged > 0 || !first.failure.ok()) return Skip("dtypes", "steps fail");
    if (!options_.look_at_dtypes) return Skip("dtypes", "its numbers are float32 by its interface");
    CheckedPoint point = options_.look_at_dtypes();
    point.name = "dtypes";
    Add(std::move(point));
  }

  void LookAtClosing(const std::string& said) {
    if (said.empty()) return Good("closes", "nothing was thrown as its environments were closed");
    Fail("closes", said, "close() throws nothing; also for an environment that has not been reset, or has failed");
  }

  void LookAtSeeds(const Pass& first) {
    if (first.diverged > 0) return Skip("seeds", "steps fail");
    const int64_t steps = std::min<int64_t>(first.steps, kLeastSteps);
    const auto again = PlayAnew(kPassEnvs, kSeed, steps), alone = PlayAnew(1, kSeed, steps),
               other = PlayAnew(kPassEnvs, kOtherSeed, steps);
    for (const auto* pass : {&again, &alone, &other}) {
      if (pass->ok() && (*pass)->failure.ok()) continue;
      const absl::Status why = pass->ok() ? (*pass)->failure : pass->status();
      return Fail("seeds", absl::StrCat("made once more it fails: ", std::string(why.message())),
                  "an environment can be made several times on one machine, also at the same time");
    }
    if (const auto at = FirstDifference(first, *again)) {
      return Fail("seeds",
                  absl::StrCat("two with the same seed and the same actions differ ",
                               *at == 0 ? "in their first observation" : absl::StrCat("from step ", *at, " on")),
                  "take every random number from the generator that reset(seed=...) seeds, and nothing from clocks");
    }
    if (const auto at = FirstDifference(first, *alone)) {
      return Fail("seeds", absl::StrCat("it differs from step ", *at, " on where another one is stepped beside it"),
                  "environments of one process share nothing: no global generator, no global state");
    }
    if (!FirstDifference(first, *other)) {
      return Good("seeds", "the same seed gives the same episode; another seed gives the same one, too");
    }
    Good("seeds", "the same seed gives the same episode, another one gives another");
  }

  void LookAtEnds(const Pass& pass) {
    if (pass.episodes() == 0) {
      const std::string found = absl::StrCat("no episode of ", pass.steps, " steps ended");
      if (spec_.max_episode_steps > pass.steps) return Skip("ends", absl::StrCat(found, ", which its limit allows"));
      if (spec_.max_episode_steps == 0) {
        return Fail("ends", found, "let episodes end, or set env.max_episode_steps, or a time_limit in env.transforms");
      }
      return Skip("ends", found);
    }
    const std::string counts =
        absl::StrCat(pass.terminated, " episodes terminated, ", pass.truncated, " were truncated");
    if (pass.limit_reached > 0 && pass.terminated_at_end == pass.limit_reached && pass.truncated == 0) {
      return Fail("ends",
                  absl::StrCat(counts, "; ", pass.terminated_at_end, " terminated in their last allowed step, the ",
                               spec_.max_episode_steps, "th"),
                  "a time limit truncates: return truncated=True and terminated=False there, or leave it to Skein");
    }
    Good("ends", counts);
  }

  void LookAtFinal(const Pass& pass) {
    if (pass.episodes() == 0) return Skip("final observation", "no episode ended");
    const bool varies = std::any_of(pass.observed.begin(), pass.observed.end(),
                                    [&pass](const auto& row) { return row != pass.observed.front(); });
    if (varies && pass.same_final == pass.episodes() && pass.episodes() > 1) {
      return Fail("final observation",
                  absl::StrCat("after each of ", pass.episodes(), " episodes it is the first one of the next episode"),
                  "the observation of the last step is the world's as that step left it: reset it later");
    }
    Good("final observation", absl::StrCat("that of the last step, in ", pass.episodes() - pass.same_final, " of ",
                                           pass.episodes(), " episodes unlike the next one's first"));
  }

  void LookAtState() {
    if (!spec_.relocatable) {
      return Skip("state", "it cannot be saved: its env group stays with its actor");
    }
    constexpr int64_t kBefore = 20, kAfter = 50;
    auto one = options_.make(kPassEnvs, kSeed), other = options_.make(kPassEnvs, kSeed);
    if (!one.ok() || !other.ok()) {
      return Fail("state", std::string((one.ok() ? other : one).status().message()), "it can be made several times");
    }
    std::vector<float> actions;
    (*one)->ResetAll(0);
    for (int64_t step = 0; step < kBefore; ++step) {
      WriteActions(spec_, step, kPassEnvs, &actions);
      (*one)->Step(actions.data());
    }
    std::vector<double> state(static_cast<size_t>((*one)->state_size()) * kPassEnvs);
    (*one)->SaveState(state.data());
    const size_t row = static_cast<size_t>(spec_.num_agents) * static_cast<size_t>(spec_.obs_size);
    std::vector<float> seen[2] = {std::vector<float>(kPassEnvs * row), std::vector<float>(kPassEnvs * row)};
    if (absl::Status status = (*other)->LoadState(0, state.data()); !status.ok()) {
      return Fail("state", std::string(status.message()), "load takes what save wrote");
    }
    for (int64_t step = 0; step <= kAfter; ++step) {
      (*one)->Observe(seen[0].data());
      (*other)->Observe(seen[1].data());
      if (seen[0] != seen[1]) {
        return Fail(
            "state",
            absl::StrCat("an environment that loaded another one's state differs from it after ", step, " steps"),
            "save everything that the future depends on: physics, counters, what rewards compare with");
      }
      WriteActions(spec_, kBefore + step, kPassEnvs, &actions);
      (*one)->Step(actions.data());
      (*other)->Step(actions.data());
    }
    Good("state",
         absl::StrCat(spec_.state_size, " numbers bring another one to the same place, for ", kAfter, " steps"));
  }

  struct Stepped {
    absl::Status status;  // Why it cannot be stepped.
    double rate = 0;      // Env-steps a second.
    int64_t steps = 0, failed = 0;
  };
  Stepped StepFor(int size) const {
    Stepped stepped;
    auto made = options_.make(size, kSeed);
    if (!made.ok()) return {made.status()};
    VectorEnv& envs = **made;
    std::vector<float> actions;
    WriteActions(spec_, 0, size, &actions);
    envs.ResetAll(0);
    const absl::Duration begin = MonotonicNow();
    absl::Duration now = begin;
    for (; now - begin < options_.measure && envs.failure().ok() && !Stopping(); now = MonotonicNow()) {
      const VectorEnv::StepResult result = envs.Step(actions.data());
      stepped.steps += size;
      stepped.failed += std::count(result.diverged, result.diverged + size, uint8_t{1});
    }
    stepped.status = envs.failure();
    stepped.rate = static_cast<double>(stepped.steps) / absl::ToDoubleSeconds(now - begin);
    return stepped;
  }

  void Measure(const Pass& first) {
    if (options_.take_log) options_.take_log();
    const Stepped alone = StepFor(1), together = StepFor(options_.num_envs);
    const std::string said = options_.take_log ? options_.take_log() : "";
    for (const auto& [stepped, size] : {std::pair(&alone, 1), std::pair(&together, options_.num_envs)}) {
      if (stepped->status.ok()) continue;
      return Fail("speed",
                  absl::StrCat("a group of ", size, " cannot be stepped: ", std::string(stepped->status.message())),
                  "an env group has rollout.envs_per_runner environments");
    }
    if (const int64_t failed = alone.failed + together.failed; failed > 0 && first.diverged == 0) {
      return Fail("speed",
                  absl::StrCat(failed, " of ", alone.steps + together.steps, " more steps failed",
                               said.empty() ? "" : ": ", said),
                  "each failure costs an episode: mend what it names, also in the long run");
    }
    result_.alone = alone.rate;
    result_.together = together.rate;
    std::string found = absl::StrFormat("one alone %.0f steps/s, %d in a vector environment %.0f steps/s",
                                        result_.alone, options_.num_envs, result_.together);
    if (options_.measure_actor && !Stopping()) {
      const auto in_actor = options_.measure_actor();
      if (in_actor.ok()) {
        result_.in_actor = *in_actor;
        absl::StrAppend(&found, absl::StrFormat(", in an actor %.0f steps/s", *in_actor));
      } else if (absl::IsNotFound(in_actor.status()) || absl::IsDeadlineExceeded(in_actor.status()) ||
                 first.diverged > 0) {  // The fault has been named.
        absl::StrAppend(&found, ", in an actor not measured: ", std::string(in_actor.status().message()));
      } else {
        return Fail("speed", absl::StrCat("an actor cannot step it: ", std::string(in_actor.status().message())),
                    "an actor begins and steps it as often as it likes, beside a policy");
      }
    }
    Good("speed", found);
  }

  const EnvCheckOptions& options_;
  EnvSpec spec_;
  EnvCheck result_;
};

}  // namespace

bool EnvCheck::ok() const {
  return std::all_of(points.begin(), points.end(), [](const auto& point) { return point.verdict != Verdict::kFails; });
}

absl::StatusOr<EnvCheck> CheckEnv(const EnvCheckOptions& options) { return Check(options).Run(); }

}  // namespace skein
