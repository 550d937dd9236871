// SPDX-License-Identifier: Apache-2.0
// mujoco-speed: what scripts/compare_mujoco_builds.py measures of one build of MuJoCo.
//   mujoco-speed ENV stepped|published THREADS SECONDS   MuJoCo's version, and env-steps/s of the bare physics, summed
//                                                        over the threads
//   mujoco-speed ENV physics                             what one decision makes of each of 1,000 states: positions and
//                                                        velocities in hexadecimal, a line for each
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/time/clock.h"
#include "env/mujoco/bare_loop.h"
#include "env/mujoco/mujoco_env.h"
#include "env/registry.h"

namespace skein {
namespace {

constexpr int64_t kRows = 10'000;      // Of random actions, and the episodes that they lead to, used again and again.
constexpr int64_t kStepsAtATime = 64;  // About 2 ms.

// Adds an action within its bounds.
void RandomAction(const EnvSpec& spec, RandomStream& random, std::vector<float>* actions) {
  for (int i = 0; i < spec.action_size; ++i) {
    actions->push_back(static_cast<float>(random.Uniform(spec.action_low[i], spec.action_high[i])));
  }
}

absl::StatusOr<double> Measure(const std::string& env_id, BareLoop::Form form, int threads, absl::Duration duration) {
  const auto env = MakeEnv(env_id);
  if (!env.ok()) return env.status();
  const EnvSpec& spec = (*env)->spec();
  std::vector<float> actions;
  RandomStream random(1, RandomPurpose::kAction, 0, 0);
  for (int64_t row = 0; row < kRows; ++row) RandomAction(spec, random, &actions);
  std::vector<std::unique_ptr<BareLoop>> loops;
  for (int i = 0; i < threads; ++i) {
    BareLoop::Options options{.env_index = static_cast<uint64_t>(i), .form = form};
    options.episode_steps =
        EpisodeSteps(**env, options.seed, options.env_index, spec.max_episode_steps, actions.data(), kRows);
    auto loop = BareLoop::Make(env_id, options);
    if (!loop.ok()) return loop.status();
    loops.push_back(*std::move(loop));
  }

  std::vector<double> rates(threads);
  std::vector<std::thread> running;
  for (int i = 0; i < threads; ++i) {
    running.emplace_back([&, i] {
      const absl::Time begin = absl::Now();
      absl::Duration passed;
      for (int64_t steps = kStepsAtATime; passed < duration; steps += kStepsAtATime) {
        loops[i]->Run(actions.data(), kRows, kStepsAtATime);
        passed = absl::Now() - begin;
        rates[i] = static_cast<double>(steps) / absl::ToDoubleSeconds(passed);
      }
    });
  }
  double sum = 0;
  for (int i = 0; i < threads; ++i) {
    running[i].join();
    sum += rates[i];
  }
  return sum;
}

// The states are thrown: those at the beginning of an episode, moved by up to 1 (m, rad) and 2 (m/s, rad/s).
absl::Status PrintPhysics(const std::string& env_id) {
  const auto task = FindMujocoTask(env_id);
  if (!task.ok()) return task.status();
  const auto env = MakeEnv(env_id);
  if (!env.ok()) return env.status();
  const EnvSpec& spec = (*env)->spec();
  const int positions = (*task)->facts().positions, velocities = (*task)->facts().velocities;
  std::vector<double> state(spec.state_size);
  std::vector<float> action;
  for (int i = 0; i < 1000; ++i) {
    RandomStream reset(7, RandomPurpose::kEnvReset, 0, i), random(7, RandomPurpose::kAction, 0, i);
    (*env)->Reset(reset);
    (*env)->SaveState(state.data());
    for (int k = 0; k < positions; ++k) state[1 + k] += random.Uniform(-1, 1);
    for (int k = 0; k < velocities; ++k) state[1 + positions + k] += random.Uniform(-2, 2);
    std::fill_n(state.begin() + 1 + positions + velocities, velocities, 0.0);  // The contact solver's start.
    action.clear();
    RandomAction(spec, random, &action);
    (*env)->LoadState(state.data());
    float reward = 0;
    (*env)->Step(action.data(), &reward);
    (*env)->SaveState(state.data());
    for (int k = 0; k < positions + velocities; ++k) std::printf("%a ", state[1 + k]);
    std::printf("\n");
  }
  return absl::OkStatus();
}

absl::Status Run(int argc, char** argv) {
  const std::string form = argc >= 3 ? argv[2] : "";
  if (argc == 3 && form == "physics") return PrintPhysics(argv[1]);
  const int threads = argc == 5 ? std::atoi(argv[3]) : 0;
  const double seconds = argc == 5 ? std::atof(argv[4]) : 0;
  if (threads < 1 || !(seconds > 0) || (form != "stepped" && form != "published")) {
    return absl::InvalidArgumentError(
        "usage: mujoco-speed ENV stepped|published THREADS SECONDS, or mujoco-speed ENV physics");
  }
  using Form = BareLoop::Form;
  const auto rate =
      Measure(argv[1], form == "stepped" ? Form::kStepped : Form::kPublished, threads, absl::Seconds(seconds));
  if (!rate.ok()) return rate.status();
  std::printf("%s %.0f\n", MujocoVersion().c_str(), *rate);
  return absl::OkStatus();
}

}  // namespace
}  // namespace skein

int main(int argc, char** argv) {
  const absl::Status status = skein::Run(argc, argv);
  if (status.ok()) return 0;
  std::fprintf(stderr, "mujoco-speed: %s\n", std::string(status.message()).c_str());
  return 64;
}
