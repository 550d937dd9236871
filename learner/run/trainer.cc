// SPDX-License-Identifier: Apache-2.0
#include "learner/run/trainer.h"

#include <torch/types.h>
#include <torch/utils.h>

#include "absl/strings/str_cat.h"
#include "base/config/algorithm_rules.h"
#include "base/config/config.h"
#include "base/config/resource_rules.h"
#include "env/env_config.h"
#include "env/registry.h"
#include "env/transform/transform_json.h"
#include "learner/algorithm/registry.h"
#include "learner/network/tensor_codec.h"
#include "learner/optimize/device_share.h"
#include "learner/optimize/memory_limit.h"
#include "learner/ranks/training_device.h"
#include "learner/run/checkpoint.h"
#include "learner/run/device_rollout.h"
#include "learner/run/direction_rollout.h"
#include "learner/run/init_rules.h"
#include "learner/run/resumed_message.h"
#include "learner/run/staged_tensors.h"

namespace skein {
namespace {

constexpr char kEnvState[] = "env_state", kPolicyState[] = "policy_state";

void Append(const std::string& name, const std::optional<v1::Tensor>& tensor, std::vector<v1::Tensor>* tensors) {
  if (!tensor) return;
  tensors->push_back(*tensor);
  tensors->back().set_name(name);
}

absl::Status TorchError(const std::string& doing, const std::exception& error) {
  std::string what = error.what();
  what.resize(std::min(what.find('\n'), what.size()));  // The rest is a stack trace.
  return absl::InternalError(absl::StrCat("Torch failed while ", doing, ": ", what));
}

absl::Status InitError(const absl::Status& why) {
  return absl::Status(why.code(), absl::StrCat("learner.init_from: ", std::string(why.message())));
}

absl::StatusOr<v1::RunConfig> ConfigOf(const Checkpoint& checkpoint) {
  v1::RunConfig config;
  if (absl::Status s = MergeYaml(checkpoint.config_yaml, "the checkpoint's config.yaml", &config); !s.ok()) return s;
  ApplyDefaults(&config);
  return config;
}

// The algorithm in the checkpoint's configuration; configurations from before there was a choice mean ppo.
absl::StatusOr<std::string> AlgorithmOf(const Checkpoint& checkpoint) {
  const auto config = ConfigOf(checkpoint);
  if (!config.ok()) return config.status();
  return AlgorithmName(*config);
}

}  // namespace

struct Trainer::Impl {
  v1::RunConfig config;
  EnvSpec spec;  // With transforms.
  ActorCriticOptions network;
  Collective* collective;
  torch::Device device;
  std::unique_ptr<Algorithm> algorithm;
  // Mode on_device: one of the two.
  std::unique_ptr<DeviceRollout> rollout;
  std::unique_ptr<DirectionRollout> directions;
  int64_t out_of_memory = 0;  // Of directions, already reported.
  Batch collected;

  Impl(const v1::RunConfig& run_config, const EnvSpec& env_spec, Collective* ranks, torch::Device where,
       std::unique_ptr<Algorithm> made)
      : config(run_config),
        spec(env_spec),
        network(MakeActorCriticOptions(run_config.model(), spec)),
        collective(ranks),
        device(where),
        algorithm(std::move(made)) {}
};

absl::StatusOr<std::unique_ptr<Trainer>> Trainer::Make(const v1::RunConfig& config, const EnvSpec& spec,
                                                       Collective* collective, int local_rank) {
  try {
    at::set_num_threads(static_cast<int>(config.learner().torch_threads()));
    const auto device = ParseTrainingDevice(config.learner().device(), local_rank);
    if (!device.ok()) return device.status();
    if (const auto gpus = LearnerShare(config).gpus) LimitDeviceMemory(*device, *gpus);
    auto algorithm = MakeAlgorithm(config, spec, collective, *device);
    if (!algorithm.ok()) return algorithm.status();
    auto impl = std::make_unique<Impl>(config, spec, collective, *device, *std::move(algorithm));
    if (absl::Status s = impl->algorithm->Synchronize(); !s.ok()) return s;
    return std::unique_ptr<Trainer>(new Trainer(std::move(impl)));
  } catch (const std::exception& error) {
    if (!IsOutOfMemory(error)) return TorchError("building the networks", error);
    return absl::ResourceExhaustedError(
        "not enough memory for the networks; make model.hidden or model.memory_size smaller");
  }
}

Trainer::Trainer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Trainer::~Trainer() = default;

void Trainer::SetSettings(const v1::RunConfig& config) { impl_->algorithm->SetSettings(config); }

std::vector<WatchRule> Trainer::WatchRules() const { return impl_->algorithm->WatchRules(); }

absl::StatusOr<UpdateStats> Trainer::Update(Columns* batch, double progress, uint64_t iteration, int64_t column_offset,
                                            int64_t total_columns) {
  try {
    Batch columns = MakeBatch(*batch);
    columns.column_offset = column_offset;
    columns.total_columns = total_columns;
    return impl_->algorithm->Update(columns, progress, iteration);
  } catch (const std::exception& error) {
    return TorchError("updating", error);
  }
}

absl::Status Trainer::BeginOnDevice(uint32_t first_env, uint32_t share_envs, const TicketState& from) {
  try {
    if (SearchesDirections(impl_->config)) {
      auto directions = DirectionRollout::Make(impl_->config, impl_->device);
      if (!directions.ok()) return directions.status();
      impl_->directions = *std::move(directions);
      return absl::OkStatus();
    }
    auto rollout = DeviceRollout::Make(impl_->config, first_env, share_envs, impl_->device);
    if (!rollout.ok()) return rollout.status();
    impl_->rollout = *std::move(rollout);
    if (!from.env_state) {
      impl_->rollout->Begin();
      return absl::OkStatus();
    }
    const auto state = DecodeTensor(*from.env_state, kEnvState);
    if (!state.ok()) return state.status();
    if (!from.policy_state) return impl_->rollout->Begin(*state);
    const auto policy_state = DecodeTensor(*from.policy_state, kPolicyState);
    return policy_state.ok() ? impl_->rollout->Begin(*state, *policy_state) : policy_state.status();
  } catch (const std::exception& error) {
    return TorchError("making the environments", error);
  }
}

absl::StatusOr<Trainer::Collected> Trainer::CollectOnDevice(uint64_t iteration, const DirectionSettings& directions) {
  try {
    const Algorithm::Acting acting = impl_->algorithm->acting();
    if (impl_->directions != nullptr) {
      auto played = impl_->directions->Collect(*acting.network, acting.obs_scale, iteration, directions);
      if (!played.ok()) return played.status();
      impl_->collected = std::move(played->batch);
      Collected collected;
      collected.env_steps = played->env_steps;
      collected.samples = played->samples;
      collected.episode_return = std::move(played->episode_return);
      collected.episode_length = std::move(played->episode_length);
      collected.stage_seconds = std::move(played->stage_seconds);
      return collected;
    }
    DeviceRollout::Iteration rolled =
        impl_->rollout->Collect({acting.network, acting.obs_scale, acting.state_scale}, iteration);
    impl_->collected = rolled.batch;
    Collected collected;
    collected.steps = rolled.batch["reward"].size(0);
    collected.columns = rolled.batch["reward"].size(1);
    collected.share_envs = impl_->rollout->share_envs();
    collected.env_steps = static_cast<uint64_t>(collected.steps * collected.share_envs);
    collected.samples = rolled.samples;
    collected.episode_return = std::move(rolled.episode_return);
    collected.episode_length = std::move(rolled.episode_length);
    collected.episode_metrics = std::move(rolled.episode_metrics);
    collected.stage_seconds = rolled.stage_seconds;
    return collected;
  } catch (const std::exception& error) {
    return TorchError("stepping environments", error);
  }
}

absl::StatusOr<UpdateStats> Trainer::UpdateOnDevice(double progress, uint64_t iteration, int64_t column_offset,
                                                    int64_t total_columns) {
  try {
    impl_->collected.column_offset = column_offset;
    impl_->collected.total_columns = total_columns;
    auto stats = impl_->algorithm->Update(impl_->collected, progress, iteration);
    if (stats.ok() && impl_->directions != nullptr) {
      const int64_t before = std::exchange(impl_->out_of_memory, impl_->directions->out_of_memory());
      stats->Add(UpdateStats::kOutOfMemory, static_cast<double>(impl_->out_of_memory - before));
    }
    return stats;
  } catch (const std::exception& error) {
    return TorchError("updating", error);
  }
}

absl::StatusOr<TicketState> Trainer::StateOnDevice() const {
  try {
    TicketState state;
    if (impl_->rollout == nullptr) return state;
    EncodeTensor(kEnvState, impl_->rollout->SaveState(), &state.env_state.emplace());
    if (const torch::Tensor policy_state = impl_->rollout->SavePolicyState(); policy_state.defined()) {
      EncodeTensor(kPolicyState, policy_state, &state.policy_state.emplace());
    }
    return state;
  } catch (const std::exception& error) {
    return TorchError("reading the environments' state", error);
  }
}

absl::StatusOr<UpdateSamples> Trainer::LastSamples(Columns* staged) const {
  try {
    const torch::NoGradGuard no_grad;
    const Batch batch = staged != nullptr ? MakeBatch(*staged) : impl_->collected;
    UpdateSamples samples;
    if (!batch.has("reward")) return samples;  // The work was not steps.
    const int64_t rows = batch["reward"].numel();
    samples.discrete = impl_->network.discrete;
    samples.action_size = samples.discrete ? 1 : impl_->network.action_size;
    if (rows == 0) return samples;
    torch::Tensor index = batch["active"].defined() ? batch["active"].reshape({rows}).nonzero().view({-1})
                                                    : torch::arange(rows, batch["reward"].device());
    index = index.slice(0, 0, index.numel(), 1 + (index.numel() - 1) / kMaxSampled);
    const auto floats = [&](const torch::Tensor& all) {
      const torch::Tensor some =
          all.index_select(0, index.to(all.device())).to(torch::kCPU, torch::kFloat32).contiguous();
      return std::vector<float>(some.data_ptr<float>(), some.data_ptr<float>() + some.numel());
    };
    samples.action = floats(batch["action"].reshape({rows, samples.action_size}));
    for (const auto& [name, stat] : impl_->algorithm->SampleStats()) samples.stats.emplace_back(name, floats(stat));
    return samples;
  } catch (const std::exception& error) {
    return TorchError("reading samples", error);
  }
}

uint64_t Trainer::ParametersDigest() const { return impl_->algorithm->ParametersDigest(); }

Trainer::Reduction Trainer::reduction() const {
  const GradientReducer* const reducer = impl_->algorithm->reducer();
  if (reducer == nullptr) return {};
  const GradientReducer::Cost& cost = reducer->cost();
  return {cost.all_reduces, cost.bytes_sent, cost.exposed, cost.all_reducing};
}

absl::StatusOr<std::shared_ptr<const v1::PolicySnapshot>> Trainer::Snapshot(uint64_t version) const {
  try {
    return std::make_shared<const v1::PolicySnapshot>(impl_->algorithm->Snapshot(version));
  } catch (const std::exception& error) {
    return TorchError("publishing", error);
  }
}

absl::StatusOr<Trainer::Saved> Trainer::Save(const std::string& folder, const RunRecord& record) const {
  Checkpoint checkpoint;
  checkpoint.env_steps = record.env_steps;
  checkpoint.iteration = record.iteration;
  checkpoint.episodes = record.episodes;
  checkpoint.last_episodes = record.last_episodes;
  checkpoint.changes_json = record.changes;
  checkpoint.env_id = impl_->config.env().id();
  checkpoint.config_yaml = ToYaml(impl_->config);
  EnvSpec plain = impl_->spec;
  if (const EnvOptions options = MakeEnvOptions(impl_->config.env()); !options.transforms.empty()) {
    const auto transforms = FindTransforms(checkpoint.env_id, options);
    if (!transforms.ok()) return transforms.status();
    checkpoint.transforms_json = TransformsJson(*transforms);
    plain = transforms->front().inner;
  }
  checkpoint.action_low = plain.action_low;
  checkpoint.action_high = plain.action_high;
  try {
    checkpoint.model = EncodeTensors(impl_->algorithm->ModelState());
    checkpoint.optimizer = EncodeTensors(impl_->algorithm->OptimizerState());
  } catch (const std::exception& error) {
    return TorchError("saving", error);
  }
  Append(kEnvState, record.state.env_state, &checkpoint.state);
  Append(kPolicyState, record.state.policy_state, &checkpoint.state);
  const v1::StepAccount& account = record.account;
  checkpoint.counters = {{"collected", account.collected()}, {"trained", account.trained()},
                         {"stale", account.stale()},         {"rejected", account.rejected()},
                         {"lost", account.lost()},           {"pending", account.pending()}};
  auto path = SaveCheckpoint(folder, checkpoint, impl_->config.checkpoint().keep());
  if (!path.ok()) return path.status();
  return Saved{*path, CheckpointDigest(checkpoint)};
}

absl::StatusOr<Trainer::Resumed> Trainer::Resume(const std::string& folder, bool newest_only) {
  Collective* const collective = impl_->collective;
  if (collective == nullptr) return ResumeHere(folder, newest_only);
  absl::StatusOr<Resumed> resumed = Resumed{};
  if (collective->rank() == 0) resumed = ResumeHere(folder, newest_only);
  auto told = TellResumed(collective, std::move(resumed));
  if (!told.ok()) return told.status();
  try {
    if (absl::Status s = impl_->algorithm->Synchronize(); !s.ok()) return s;
  } catch (const std::exception& error) {
    return TorchError("restoring " + told->checkpoint.path, error);
  }
  return told;
}

absl::Status Trainer::InitFrom() {
  Collective* const collective = impl_->collective;
  absl::StatusOr<Resumed> taken = Resumed{};
  try {
    if (collective == nullptr || collective->rank() == 0) taken = InitHere();
    if (collective == nullptr) return taken.status();
    taken = TellResumed(collective, std::move(taken));
    return taken.ok() ? impl_->algorithm->Synchronize() : taken.status();
  } catch (const std::exception& error) {
    return TorchError("taking weights from " + impl_->config.learner().init_from(), error);
  }
}

absl::StatusOr<Trainer::Resumed> Trainer::InitHere() {
  const auto found = FindCheckpoint(impl_->config.learner().init_from());
  if (!found.ok()) return InitError(found.status());
  if (found->checkpoint.env_id == kSequenceModelId) {
    return InitError(absl::FailedPreconditionError(
        absl::StrCat(found->path, " is a model of sequences and no policy; `skein detect` uses it")));
  }
  const std::string &theirs = found->checkpoint.env_id, &ours = impl_->config.env().id();
  const std::string whose = theirs == ours
                                ? found->path
                                : absl::StrCat(found->path, " (a policy of ", theirs, "; this run is of ", ours, ")");
  const auto refused = [&whose](const absl::Status& why) {
    return InitError(absl::FailedPreconditionError(absl::StrCat(whose, ": ", std::string(why.message()))));
  };
  const auto config = ConfigOf(found->checkpoint);
  if (!config.ok()) return InitError(config.status());
  if (absl::Status s = CheckWeightsFit(*config, impl_->config); !s.ok()) return refused(s);
  const auto model = DecodeTensors(found->checkpoint.model);
  if (!model.ok()) return InitError(model.status());
  const absl::StatusOr<StateTensors> optimizer = impl_->config.learner().init_optimizer()
                                                     ? DecodeTensors(found->checkpoint.optimizer)
                                                     : impl_->algorithm->OptimizerState();
  if (!optimizer.ok()) return InitError(optimizer.status());
  const absl::Status s = impl_->algorithm->Restore(*model, *optimizer);
  if (!s.ok()) return refused(s);
  return Resumed{};
}

struct Trainer::State {
  StateTensors model, optimizer;
};

absl::StatusOr<std::shared_ptr<const Trainer::State>> Trainer::Keep() const {
  try {
    return std::make_shared<const State>(State{impl_->algorithm->ModelState(), impl_->algorithm->OptimizerState()});
  } catch (const std::exception& error) {
    return TorchError("keeping the state", error);
  }
}

absl::StatusOr<Trainer::Resumed> Trainer::TakeOver(const State* state, const Resumed& record) {
  Collective* const collective = impl_->collective;
  absl::StatusOr<Resumed> taken = record;
  try {
    if (collective == nullptr || collective->rank() == 0) {
      if (absl::Status s = impl_->algorithm->Restore(state->model, state->optimizer); !s.ok()) {
        taken = absl::FailedPreconditionError(s.message());
      }
    }
    if (collective == nullptr) return taken;
    taken = TellResumed(collective, std::move(taken));
    if (!taken.ok()) return taken;
    if (absl::Status s = impl_->algorithm->Synchronize(); !s.ok()) return s;
  } catch (const std::exception& error) {
    return TorchError("taking over the state", error);
  }
  return taken;
}

absl::StatusOr<Trainer::Resumed> Trainer::ResumeHere(const std::string& folder, bool newest_only) {
  auto found = LoadNewestCheckpoint(folder, newest_only ? Damage::kRefuse : Damage::kSkip);
  if (!found.ok()) return found.status();
  const Checkpoint& checkpoint = found->checkpoint;
  if (checkpoint.env_id != impl_->config.env().id()) {
    return absl::FailedPreconditionError(absl::StrCat(found->path, ": is of environment ", checkpoint.env_id,
                                                      ", this run has ", impl_->config.env().id(),
                                                      "; give the run another --name"));
  }
  const absl::StatusOr<std::string> was = AlgorithmOf(checkpoint);
  if (!was.ok()) {
    return absl::FailedPreconditionError(absl::StrCat(found->path, ": ", std::string(was.status().message())));
  }
  if (const std::string is = AlgorithmName(impl_->config); *was != is) {
    return absl::FailedPreconditionError(
        absl::StrCat(found->path, ": is of algorithm ", *was, ", this run has ", is, "; give the run another --name"));
  }
  Resumed resumed;
  resumed.checkpoint = {found->path, CheckpointDigest(checkpoint)};
  resumed.warnings = found->warnings;
  RunRecord& record = resumed.record;
  record.env_steps = checkpoint.env_steps;
  record.iteration = checkpoint.iteration;
  record.episodes = checkpoint.episodes;
  record.last_episodes = checkpoint.last_episodes;
  record.changes = checkpoint.changes_json;
  for (const auto& [name, value] : checkpoint.counters) {
    if (name == "collected") record.account.set_collected(value);
    if (name == "trained") record.account.set_trained(value);
    if (name == "stale") record.account.set_stale(value);
    if (name == "rejected") record.account.set_rejected(value);
    if (name == "lost") record.account.set_lost(value);
    if (name == "pending") record.account.set_pending(value);
  }
  for (const v1::Tensor& tensor : checkpoint.state) {
    const bool of_policy = tensor.name() == kPolicyState;
    if (tensor.name() != kEnvState && !of_policy) continue;
    const int64_t envs = tensor.shape_size() == (of_policy ? 3 : 2) ? tensor.shape(0) : 0;
    if (envs != impl_->config.rollout().num_envs()) {
      return absl::FailedPreconditionError(absl::StrCat(
          found->path, ": has ", envs, " environments, rollout.num_envs is ", impl_->config.rollout().num_envs()));
    }
    (of_policy ? record.state.policy_state : record.state.env_state) = tensor;
  }
  try {
    const auto model = DecodeTensors(checkpoint.model);
    if (!model.ok()) return model.status();
    const auto optimizer = DecodeTensors(checkpoint.optimizer);
    if (!optimizer.ok()) return optimizer.status();
    if (absl::Status s = impl_->algorithm->Restore(*model, *optimizer); !s.ok()) {
      return absl::FailedPreconditionError(absl::StrCat(found->path, ": ", std::string(s.message())));
    }
  } catch (const std::exception& error) {
    return TorchError("restoring " + found->path, error);
  }
  return resumed;
}

}  // namespace skein
