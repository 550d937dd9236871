// SPDX-License-Identifier: Apache-2.0
#include "base/config/algorithm_rules.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"

namespace skein {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

constexpr char kMinibatchSize[] = "minibatch_size";

const FieldDescriptor* Section(const v1::RunConfig& config) {
  const auto* const choice = v1::RunConfig::descriptor()->FindOneofByName("algorithm");
  return config.GetReflection()->GetOneofFieldDescriptor(config, choice);
}

const v1::AlgorithmFacts& FactsOf(const v1::RunConfig& config) {
  return Section(config)->message_type()->options().GetExtension(v1::algorithm_facts);
}

// A setting of the algorithm; 0 where it has none of that name.
uint32_t SettingOf(const v1::RunConfig& config, const std::string& name) {
  const FieldDescriptor* const section = Section(config);
  const FieldDescriptor* const field = section->message_type()->FindFieldByName(name);
  const Message& settings = config.GetReflection()->GetMessage(config, section);
  return field == nullptr ? 0 : settings.GetReflection()->GetUInt32(settings, field);
}

std::string ModeName(int mode) {
  const std::string name = v1::SyncMode_Name(static_cast<v1::SyncMode>(mode));
  return absl::AsciiStrToLower(absl::StripPrefix(name, "SYNC_MODE_"));
}

}  // namespace

absl::Status CheckAlgorithm(const v1::RunConfig& config) {
  const v1::AlgorithmFacts& facts = FactsOf(config);
  const auto& modes = facts.sync_modes();
  if (std::find(modes.begin(), modes.end(), config.sync().mode()) == modes.end()) {
    const std::string allowed =
        absl::StrJoin(modes, " or ", [](std::string* out, int mode) { out->append(ModeName(mode)); });
    return absl::InvalidArgumentError(absl::StrCat("sync.mode must be ", allowed, " with ", AlgorithmName(config),
                                                   ", which ", facts.no_other_mode()));
  }
  const v1::ModelConfig& model = config.model();
  const bool remembers = model.memory() == v1::MEMORY_GRU || model.memory() == v1::MEMORY_LSTM;
  if (remembers && !facts.trains_memory()) {
    return absl::InvalidArgumentError(
        absl::StrCat("model.memory must be none with ", AlgorithmName(config), ", which does not train one"));
  }
  if (remembers && model.shared_trunk() && model.critic_memory() == v1::CRITIC_MEMORY_SEPARATE) {
    return absl::InvalidArgumentError(
        "model.critic_memory must be shared with model.shared_trunk, which has one memory for policy and value");
  }
  const uint32_t steps = config.rollout().steps_per_iteration();
  if (MinibatchSize(config) <= steps) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(AlgorithmName(config), ".minibatch_size (", MinibatchSize(config),
                                                 ") must not exceed rollout.steps_per_iteration (", steps, ")"));
}

absl::Status CheckAlgorithmChanges(const v1::RunConfig& config, const v1::RunConfig& set, const std::string& path) {
  const FieldDescriptor* const section = Section(set);
  if (section == nullptr) return absl::OkStatus();
  if (section != Section(config)) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": it sets another algorithm than the run's"));
  }
  const FieldDescriptor* const lr = section->message_type()->FindFieldByName("lr");
  const FieldDescriptor* const schedule = section->message_type()->FindFieldByName("lr_schedule");
  if (lr == nullptr || schedule == nullptr || schedule->enum_type() != v1::LearningRateSchedule_descriptor()) {
    return absl::OkStatus();
  }
  const Message& changed = set.GetReflection()->GetMessage(set, section);
  const Message& settings = config.GetReflection()->GetMessage(config, section);
  if (!changed.GetReflection()->HasField(changed, lr) ||
      settings.GetReflection()->GetEnumValue(settings, schedule) != v1::LEARNING_RATE_SCHEDULE_KL_ADAPTIVE) {
    return absl::OkStatus();
  }
  const std::string& name = section->name();
  return absl::InvalidArgumentError(
      absl::StrCat(path, ".", name, ".lr: with ", name,
                   ".lr_schedule kl_adaptive the learning rate follows the KL divergence; "
                   "set ",
                   name, ".kl_target, or another lr_schedule"));
}

std::vector<std::string> AlgorithmNames() {
  const auto* const choice = v1::RunConfig::descriptor()->FindOneofByName("algorithm");
  std::vector<std::string> names;
  for (int i = 0; i < choice->field_count(); ++i) names.push_back(choice->field(i)->name());
  return names;
}

std::string AlgorithmName(const v1::RunConfig& config) { return Section(config)->name(); }

std::vector<std::string> AlgorithmFields(const v1::RunConfig& config) {
  const auto& fields = FactsOf(config).fields();
  return {fields.begin(), fields.end()};
}

bool SearchesDirections(const v1::RunConfig& config) { return FactsOf(config).work() == v1::WORK_KIND_DIRECTIONS; }

uint32_t TopDirections(const v1::RunConfig& config) { return SettingOf(config, "top_dirs"); }

uint32_t MinibatchSize(const v1::RunConfig& config) {
  const uint32_t size = SettingOf(config, kMinibatchSize);
  return size > 0 ? size : config.rollout().steps_per_iteration();
}

void SetMinibatchSize(uint32_t samples, v1::RunConfig* config) {
  const FieldDescriptor* const section = Section(*config);
  const FieldDescriptor* const field = section->message_type()->FindFieldByName(kMinibatchSize);
  if (field == nullptr) return;
  Message* const settings = config->GetReflection()->MutableMessage(config, section);
  settings->GetReflection()->SetUInt32(settings, field, samples);
}

bool HasAlgorithmSetting(const v1::RunConfig& config, const std::string& name) {
  return Section(config)->message_type()->FindFieldByName(name) != nullptr;
}

}  // namespace skein
