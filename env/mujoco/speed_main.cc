// SPDX-License-Identifier: Apache-2.0
// mujoco-speed: the bare physics of one environment on some threads, for scripts/compare_mujoco_builds.py.
// Prints the MuJoCo version, the env-steps per second, summed over the threads, with the model as it is stepped or as
// it was published, and a digest of 40,000 random steps of the environment: the same where physics are the same to the
// bit.
#include <bit>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/time/clock.h"
#include "env/mujoco/bare_loop.h"
#include "env/registry.h"
#include "env/vector_env.h"

namespace skein {
namespace {

constexpr int64_t kRows = 1024;        // Of random actions, used again and again.
constexpr int64_t kStepsAtATime = 64;  // About 2 ms.

absl::StatusOr<double> Measure(const std::string& env_id, BareLoop::Form form, int threads, absl::Duration duration) {
  std::vector<std::unique_ptr<BareLoop>> loops;
  for (int i = 0; i < threads; ++i) {
    auto loop = BareLoop::Make(env_id, 1, i, 0, 0, form);
    if (!loop.ok()) return loop.status();
    loops.push_back(*std::move(loop));
  }
  const auto env = MakeEnv(env_id);
  if (!env.ok()) return env.status();
  std::vector<float> actions(kRows * (*env)->spec().action_size);
  RandomStream random(1, RandomPurpose::kAction, 0, 0);
  for (float& action : actions) action = static_cast<float>(random.Uniform(-1, 1));

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

// FNV-1a over every state of 8 environments for 5,000 steps with random actions.
absl::StatusOr<uint64_t> DigestOfStates(const std::string& env_id) {
  const auto env = VectorEnv::Make({.env_id = env_id, .num_envs = 8, .seed = 7});
  if (!env.ok()) return env.status();
  std::vector<float> action(8 * (*env)->spec().action_size);
  std::vector<double> state(8 * (*env)->state_size());
  RandomStream random(7, RandomPurpose::kAction, 0, 0);
  uint64_t digest = 0xcbf29ce484222325;
  (*env)->ResetAll(0);
  for (int t = 0; t < 5000; ++t) {
    for (float& a : action) a = static_cast<float>(random.Uniform(-1, 1));
    (*env)->Step(action.data());
    (*env)->SaveState(state.data());
    for (const double number : state) digest = (digest ^ std::bit_cast<uint64_t>(number)) * 0x100000001b3;
  }
  return digest;
}

}  // namespace
}  // namespace skein

int main(int argc, char** argv) {
  const int threads = argc == 5 ? std::atoi(argv[3]) : 0;
  const double seconds = argc == 5 ? std::atof(argv[4]) : 0;
  const std::string form = argc == 5 ? argv[2] : "";
  if (threads < 1 || !(seconds > 0) || (form != "stepped" && form != "published")) {
    std::fprintf(stderr, "usage: mujoco-speed ENV stepped|published THREADS SECONDS\n");
    return 64;
  }
  using Form = skein::BareLoop::Form;
  const auto rate =
      skein::Measure(argv[1], form == "stepped" ? Form::kStepped : Form::kPublished, threads, absl::Seconds(seconds));
  const auto digest = skein::DigestOfStates(argv[1]);
  if (!rate.ok() || !digest.ok()) {
    std::fprintf(stderr, "mujoco-speed: %s\n", (rate.ok() ? digest.status() : rate.status()).ToString().c_str());
    return 64;
  }
  std::printf("%s %.0f %016" PRIx64 "\n", skein::MujocoVersion().c_str(), *rate, *digest);
  return 0;
}
