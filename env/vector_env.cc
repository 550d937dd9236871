// SPDX-License-Identifier: Apache-2.0
#include "env/vector_env.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <exception>
#include <limits>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "base/number/number_bounds.h"
#include "env/clip_action.h"
#include "env/hopeless_env.h"
#include "env/registry.h"
#include "env/shared_steps.h"
#include "env/written_row.h"

namespace skein {
namespace {

constexpr int kBookkeeping = 3;  // Episode, step, return so far.
constexpr uint64_t kStreams = uint64_t{1} << 32;

bool AllWithin(const float* values, size_t size, float bound) { return FindBeyond(values, size, bound) == size; }
bool AllFinite(const float* values, size_t size) { return AllWithin(values, size, std::numeric_limits<float>::max()); }

bool SameSizes(const EnvSpec& one, const EnvSpec& other) {
  return one.num_agents == other.num_agents && one.obs_size == other.obs_size && one.discrete == other.discrete &&
         one.action_size == other.action_size && one.global_state_size == other.global_state_size &&
         one.state_size == other.state_size && one.relocatable == other.relocatable &&
         one.episode_metrics.size() == other.episode_metrics.size();
}

// Whether `value` is a whole number in [0, bound).
bool IsIndex(double value, double bound) { return value >= 0 && value < bound && value == std::floor(value); }

// What a thread needs to step an environment of a VectorEnv.
struct Workspace {
  Workspace() = default;
  Workspace(const EnvSpec& spec, size_t action_row, size_t obs_row, EnvActivity* who)
      : action(action_row), next_obs(obs_row), next_reward(spec.num_agents), activity(who) {}

  std::vector<float> action;         // One row, while an environment steps.
  WrittenRow next_obs, next_reward;  // The same.
  EnvActivity* activity = nullptr;

  void Leave() {
    if (activity != nullptr) activity->Leave();
  }
};

// What a batch is stepped with.
struct Together {
  EnvBatch* batch = nullptr;        // Null: each environment is stepped by itself.
  std::vector<float> action;        // [E, A, D] or [E, A, 1], clipped.
  std::vector<uint32_t> next_seed;  // [E]
};

// Behind VectorEnv::StepResult.
struct Results {
  std::vector<float> reward, final_obs;
  std::vector<uint8_t> terminated, truncated, diverged;
  std::vector<double> episode_return;
  std::vector<int64_t> episode_length;
  std::vector<uint8_t> active, agent_terminated;
  std::vector<float> final_state, episode_metrics;
};

}  // namespace

struct VectorEnv::Impl {
  // Constant after construction.
  Options options;
  EnvSpec spec;
  std::vector<std::unique_ptr<Env>> envs;
  size_t obs_row = 0, action_row = 0;          // Floats for one environment, all agents.
  std::vector<float> action_low, action_high;  // [A, D] or [A, 1]
  Together together;                           // If something steps all environments together.

  uint64_t first_env = 0;
  std::vector<uint64_t> episode;      // [E]
  std::vector<uint32_t> step;         // [E]
  std::vector<double> return_so_far;  // [E]
  std::vector<float> obs;             // [E, A, O], the current ones
  Workspace own;                      // Of the thread that calls Step.

  absl::Mutex failure_mu;
  absl::Status failure;  // Written under the mutex, read by the thread that calls Step.
  std::atomic<bool> failed{false};

  const float* wanted = nullptr;  // What the Step under way was called with.
  std::optional<SharedSteps> steps;

  Results results;

  float* ObsRow(size_t e) { return obs.data() + e * obs_row; }

  void Enter(size_t e, Workspace* work) {
    // A batch has a limit of its own, and may start servers meanwhile.
    if (work->activity != nullptr && together.batch == nullptr)
      work->activity->Enter(first_env + e, episode[e], step[e]);
  }

  void Fail(size_t e, const std::string& why, absl::StatusCode code = absl::StatusCode::kInternal) {
    absl::MutexLock lock(&failure_mu);
    if (failed.exchange(true)) return;
    failure = absl::Status(code, absl::StrCat("environment ", first_env + e, " of ", spec.id, ", episode ", episode[e],
                                              ", step ", step[e], ": ", why));
  }

  // Calls environment `e`. False: it has failed.
  template <typename Call>
  bool Guard(size_t e, Call call) {
    try {
      call();
    } catch (const HopelessEnv& error) {
      Fail(e, error.what(), error.code());
    } catch (const std::exception& error) {
      Fail(e, absl::StrCat("threw: ", error.what()));
    } catch (...) {
      Fail(e, "threw something that is no std::exception");
    }
    return !failed;
  }

  // What environment `e` observes, into next_obs. False: it has failed; the row is as it was.
  bool ReadObs(size_t e, Workspace* work) {
    envs[e]->Observe(work->next_obs.Prepare());
    if (const char* wrong = work->next_obs.WrongSize(); wrong != nullptr) Fail(e, absl::StrCat("observed ", wrong));
    return !failed;
  }

  // That into its row, unless a number is beyond its bound.
  bool TakeObs(size_t e, const Workspace& work) {
    if (!AllWithin(work.next_obs.data(), obs_row, kNumberBound)) return false;
    std::copy_n(work.next_obs.data(), obs_row, ObsRow(e));
    return true;
  }

  void BeginEpisode(size_t e, uint64_t number, Workspace* work) {
    episode[e] = number;
    step[e] = 0;
    return_so_far[e] = 0;
    Enter(e, work);
    RandomStream random(options.seed, options.reset_purpose, first_env + e, number);
    envs[e]->Reset(random);
    if (!ReadObs(e, work) || TakeObs(e, *work)) return;
    Fail(e, AllFinite(work->next_obs.data(), obs_row) ? absl::StrCat("observed a number larger than ", kNumberBound)
                                                      : "observed a number that is not finite");
  }

  // A step of an environment that has failed: nothing happens, and the episode is over.
  void StepNothing(size_t e) {
    const size_t agents = e * spec.num_agents;
    std::fill_n(results.reward.data() + agents, spec.num_agents, 0.0f);
    std::fill_n(results.active.data() + agents, spec.num_agents, uint8_t{0});
    std::fill_n(results.agent_terminated.data() + agents, spec.num_agents, uint8_t{0});
    results.terminated[e] = false;
    results.truncated[e] = true;
    results.diverged[e] = false;
    std::copy_n(ObsRow(e), obs_row, results.final_obs.data() + e * obs_row);
    std::fill_n(results.final_state.data() + e * spec.global_state_size, spec.global_state_size, 0.0f);
    std::fill_n(results.episode_metrics.data() + e * spec.episode_metrics.size(), spec.episode_metrics.size(), 0.0f);
    CountEpisode(e);
  }

  void CountEpisode(size_t e) {
    results.episode_return[e] = std::clamp(return_so_far[e], -double{kEpisodeBound}, double{kEpisodeBound});
    results.episode_length[e] = step[e];
  }

  // What environment `e` is stepped with.
  void Clip(size_t e, float* clipped) const {
    const float* const row = wanted + e * action_row;
    for (size_t i = 0; i < action_row; ++i) clipped[i] = ClipAction(row[i], action_low[i], action_high[i]);
  }

  void StepBatch() {
    for (size_t e = 0; e < envs.size(); ++e) {
      Clip(e, together.action.data() + e * action_row);
      together.next_seed[e] =
          RandomStream(options.seed, options.reset_purpose, first_env + e, episode[e] + 1).NextUint32();
    }
    together.batch->Step(together.action.data(), together.next_seed.data());
  }

  void StepOne(size_t e, Workspace* work) {
    Clip(e, work->action.data());
    const size_t agents = e * spec.num_agents;
    float* const rewards = results.reward.data() + agents;
    uint8_t* const took_part = results.active.data() + agents;
    uint8_t* const agent_ended = results.agent_terminated.data() + agents;
    ++step[e];
    Enter(e, work);
    envs[e]->Active(took_part);
    const bool ended = envs[e]->Step(work->action.data(), work->next_reward.Prepare());
    if (const char* wrong = work->next_reward.WrongSize(); wrong != nullptr) Fail(e, absl::StrCat("rewarded ", wrong));
    if (!ReadObs(e, work)) return;
    std::copy_n(work->next_reward.data(), spec.num_agents, rewards);
    results.terminated[e] = ended;
    const bool late = spec.max_episode_steps > 0 && step[e] >= static_cast<uint32_t>(spec.max_episode_steps);
    results.truncated[e] = !ended && (late || envs[e]->truncated());
    results.diverged[e] = false;
    const bool good_rewards = AllWithin(rewards, spec.num_agents, kNumberBound);
    if (!good_rewards || !TakeObs(e, *work)) {
      if (good_rewards && !options.obs_may_diverge && !AllFinite(work->next_obs.data(), obs_row))
        return Fail(e, "observed a number that is not finite");
      // Diverged: ObsRow still has the observation from before.
      std::fill_n(rewards, spec.num_agents, 0.0f);
      results.terminated[e] = false;
      results.truncated[e] = results.diverged[e] = true;
    }
    for (int a = 0; a < spec.num_agents; ++a) return_so_far[e] += double{rewards[a]};
    envs[e]->Active(agent_ended);
    for (int a = 0; a < spec.num_agents; ++a)
      agent_ended[a] = took_part[a] && (results.terminated[e] || !agent_ended[a]);
    if (results.terminated[e] || results.truncated[e]) {
      std::copy_n(ObsRow(e), obs_row, results.final_obs.data() + e * obs_row);
      envs[e]->GlobalState(results.final_state.data() + e * spec.global_state_size);
      envs[e]->EpisodeMetrics(results.episode_metrics.data() + e * spec.episode_metrics.size());
      CountEpisode(e);
      const size_t G = spec.global_state_size, P = spec.episode_metrics.size();
      float* const state = results.final_state.data() + e * G;
      float* const metrics = results.episode_metrics.data() + e * P;
      const bool good_state = AllWithin(state, G, kNumberBound), good_metrics = AllWithin(metrics, P, kEpisodeBound);
      if ((!good_state && (!results.diverged[e] || !options.obs_may_diverge)) ||
          (!good_metrics && !results.diverged[e])) {
        return Fail(e, absl::StrCat("has a global state beyond ", kNumberBound, " or a metric beyond ", kEpisodeBound));
      }
      if (!good_state) std::fill_n(state, G, 0.0f);
      if (!good_metrics) std::fill_n(metrics, P, 0.0f);  // Of an episode that is in no mean.
      BeginEpisode(e, episode[e] + 1, work);
    }
  }

  // Steps environment `e`, whatever comes of it.
  void StepGuarded(size_t e, Workspace* work) {
    if (failed || !Guard(e, [this, e, work] { StepOne(e, work); })) StepNothing(e);
  }

  absl::Status CheckRow(size_t e, const double* row) const {
    for (int i = 0; i < kBookkeeping + spec.state_size; ++i) {
      if (!std::isfinite(row[i])) {
        return absl::InvalidArgumentError(
            absl::StrCat("environment ", e, " of the state: number ", i, " is ", row[i], ", want a finite one"));
      }
    }
    const double steps = spec.max_episode_steps > 0 ? spec.max_episode_steps : static_cast<double>(kStreams);
    if (!IsIndex(row[0], static_cast<double>(kStreams)) || !IsIndex(row[1], steps)) {
      return absl::InvalidArgumentError(absl::StrCat("environment ", e, " of the state: episode ", row[0], ", step ",
                                                     row[1], "; want whole numbers under ", kStreams, " and ", steps));
    }
    return absl::OkStatus();
  }
};

VectorEnv::VectorEnv() : impl_(std::make_unique<Impl>()) {}
VectorEnv::~VectorEnv() = default;

absl::StatusOr<std::unique_ptr<VectorEnv>> VectorEnv::Make(const Options& options) {
  if (options.size < 1) {
    return absl::InvalidArgumentError(absl::StrCat("size: got ", options.size, ", want at least 1"));
  }
  auto envs = MakeEnvs(options.env_id, options.size, options.env);
  if (!envs.ok()) return envs.status();
  return Wrap(*std::move(envs), options);
}

absl::StatusOr<std::unique_ptr<VectorEnv>> VectorEnv::Wrap(std::vector<std::unique_ptr<Env>> envs,
                                                           const Options& options) {
  if (envs.empty()) return absl::InvalidArgumentError("no environments to wrap, want at least 1");
  if (options.max_episode_steps < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("max_episode_steps: got ", options.max_episode_steps, ", want 0 (the environment's own) or more"));
  }
  std::unique_ptr<VectorEnv> vector_env(new VectorEnv);
  Impl& impl = *vector_env->impl_;
  impl.options = options;
  impl.spec = envs[0]->spec();
  for (size_t e = 1; e < envs.size(); ++e) {
    if (SameSizes(envs[e]->spec(), impl.spec)) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("environment ", e, " of the group, ", envs[e]->spec().id, ", has other sizes than the first one"));
  }
  impl.envs = std::move(envs);
  impl.together.batch = impl.envs[0]->batch();
  for (const std::unique_ptr<Env>& env : impl.envs) {
    if (env->batch() == impl.together.batch) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("the environments of a group of ", impl.spec.id, " step together, but were not made together"));
  }
  impl.steps.emplace(static_cast<uint32_t>(impl.envs.size()));
  EnvSpec& spec = impl.spec;
  if (options.max_episode_steps > 0) spec.max_episode_steps = options.max_episode_steps;
  for (int a = 0; a < spec.num_agents; ++a) {
    if (spec.discrete) {
      impl.action_low.push_back(0);
      impl.action_high.push_back(static_cast<float>(spec.action_size - 1));
    } else if (!spec.clip_actions) {
      impl.action_low.insert(impl.action_low.end(), spec.action_size, -std::numeric_limits<float>::max());
      impl.action_high.insert(impl.action_high.end(), spec.action_size, std::numeric_limits<float>::max());
    } else {
      impl.action_low.insert(impl.action_low.end(), spec.action_low.begin(), spec.action_low.end());
      impl.action_high.insert(impl.action_high.end(), spec.action_high.begin(), spec.action_high.end());
    }
  }
  impl.action_row = impl.action_low.size();
  impl.obs_row = static_cast<size_t>(spec.num_agents) * spec.obs_size;

  const size_t count = impl.envs.size();
  impl.together.action.resize(impl.together.batch == nullptr ? 0 : count * impl.action_row);
  impl.together.next_seed.resize(count);
  impl.episode.resize(count);
  impl.step.resize(count);
  impl.return_so_far.resize(count);
  impl.obs.resize(count * impl.obs_row);
  impl.own = Workspace(spec, impl.action_row, impl.obs_row, nullptr);
  impl.results.reward.resize(count * spec.num_agents);
  impl.results.final_obs.resize(count * impl.obs_row);
  impl.results.terminated.resize(count);
  impl.results.truncated.resize(count);
  impl.results.diverged.resize(count);
  impl.results.episode_return.resize(count);
  impl.results.episode_length.resize(count);
  impl.results.active.resize(count * spec.num_agents);
  impl.results.agent_terminated.resize(count * spec.num_agents);
  impl.results.final_state.resize(count * spec.global_state_size);
  impl.results.episode_metrics.resize(count * spec.episode_metrics.size());
  return vector_env;
}

const EnvSpec& VectorEnv::spec() const { return impl_->spec; }
int VectorEnv::size() const { return static_cast<int>(impl_->envs.size()); }
int VectorEnv::shareable() const { return impl_->together.batch == nullptr ? size() : 0; }
int VectorEnv::StateSize(const EnvSpec& spec) { return spec.relocatable ? kBookkeeping + spec.state_size : 0; }
int VectorEnv::state_size() const { return StateSize(impl_->spec); }

const absl::Status& VectorEnv::failure() const { return impl_->failure; }
void VectorEnv::SetActivity(EnvActivity* activity) { impl_->own.activity = activity; }

void VectorEnv::ResetAll(uint64_t first_env, uint64_t first_episode) {
  Impl& impl = *impl_;
  impl.first_env = first_env;
  for (size_t e = 0; e < impl.envs.size(); ++e) {
    const bool good = impl.Guard(e, [&impl, first_env, first_episode, e] {
      impl.envs[e]->SetEnvIndex(first_env + e);
      impl.BeginEpisode(e, first_episode, &impl.own);
    });
    if (!good) break;
  }
  impl.own.Leave();
}

absl::Status VectorEnv::LoadState(uint64_t first_env, const double* state) {
  Impl& impl = *impl_;
  const size_t count = impl.envs.size();
  if (!impl.spec.relocatable) {
    return absl::FailedPreconditionError(
        absl::StrCat("the state of ", impl.spec.id, " cannot be loaded: it is not relocatable"));
  }
  if (first_env > kStreams - count) {
    return absl::InvalidArgumentError(absl::StrCat("first_env: got ", first_env, ", want at most ", kStreams - count));
  }
  const size_t size = state_size();
  for (size_t e = 0; e < count; ++e) {
    if (absl::Status status = impl.CheckRow(e, state + e * size); !status.ok()) return status;
  }
  impl.first_env = first_env;
  for (size_t e = 0; e < count; ++e) {
    const double* const row = state + e * size;
    impl.episode[e] = static_cast<uint64_t>(row[0]);
    impl.step[e] = static_cast<uint32_t>(row[1]);
    impl.return_so_far[e] = row[2];
    const bool good = impl.Guard(e, [&impl, first_env, e, row] {
      impl.Enter(e, &impl.own);
      impl.envs[e]->SetEnvIndex(first_env + e);
      impl.envs[e]->LoadState(row + kBookkeeping);
      // What no environment of ours has saved.
      if (impl.ReadObs(e, &impl.own) && !impl.TakeObs(e, impl.own)) {
        impl.BeginEpisode(e, impl.episode[e] + 1, &impl.own);
      }
    });
    if (!good) break;
  }
  impl.own.Leave();
  return impl.failure;
}

void VectorEnv::SaveState(double* state) const {
  if (!impl_->spec.relocatable) return;
  for (size_t e = 0; e < impl_->envs.size(); ++e, state += state_size()) {
    state[0] = static_cast<double>(impl_->episode[e]);
    state[1] = impl_->step[e];
    state[2] = impl_->return_so_far[e];
    impl_->Guard(e, [this, e, state] { impl_->envs[e]->SaveState(state + kBookkeeping); });
    const bool finite = std::all_of(state, state + state_size(), [](double value) { return std::isfinite(value); });
    if (!finite) impl_->Fail(e, "saved a number that is not finite");
  }
}

VectorEnv::StepResult VectorEnv::Step(const float* action) {
  Impl& impl = *impl_;
  impl.wanted = action;
  if (impl.together.batch != nullptr) {  // What is left to do is too little to share.
    if (!impl.failed) impl.Guard(0, [&impl] { impl.StepBatch(); });
    for (size_t e = 0; e < impl.envs.size(); ++e) impl.StepGuarded(e, &impl.own);
  } else {
    impl.steps->StepAll([&impl](uint32_t e) { impl.StepGuarded(e, &impl.own); }, [&impl] { impl.own.Leave(); });
  }
  return {impl.results.reward.data(),          impl.results.terminated.data(),       impl.results.truncated.data(),
          impl.results.final_obs.data(),       impl.results.episode_return.data(),   impl.results.episode_length.data(),
          impl.results.active.data(),          impl.results.agent_terminated.data(), impl.results.final_state.data(),
          impl.results.episode_metrics.data(), impl.results.diverged.data()};
}

absl::Duration VectorEnv::Help(EnvActivity* activity, const std::function<bool()>& leave) {
  Impl& impl = *impl_;
  Workspace work(impl.spec, impl.action_row, impl.obs_row, activity);
  return impl.steps->Help([&](uint32_t e) { impl.StepGuarded(e, &work); }, leave, [&work] { work.Leave(); });
}

void VectorEnv::WakeHelpers() { impl_->steps->Wake(); }

absl::Duration VectorEnv::TakeHelped() { return impl_->steps->TakeHelped(); }

void VectorEnv::Observe(float* obs) const { std::copy(impl_->obs.begin(), impl_->obs.end(), obs); }

void VectorEnv::GlobalState(float* state) const {
  const size_t size = impl_->spec.global_state_size;
  for (size_t e = 0; e < impl_->envs.size(); ++e, state += size) {
    impl_->Guard(e, [this, e, state] { impl_->envs[e]->GlobalState(state); });
    if (!AllWithin(state, size, kNumberBound)) impl_->Fail(e, absl::StrCat("has a global state beyond ", kNumberBound));
  }
}

uint64_t VectorEnv::env_index(int e) const { return impl_->first_env + e; }
uint64_t VectorEnv::episode(int e) const { return impl_->episode[e]; }
uint32_t VectorEnv::step(int e) const { return impl_->step[e]; }

}  // namespace skein
