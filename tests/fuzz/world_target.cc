// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/number/number_bounds.h"
#include "env/external/external_batch.h"
#include "env/external/plugin_spec.h"
#include "env/external/welcome.h"
#include "env/external/world_spec.h"
#include "spdlog/spdlog.h"
#include "tests/fuzz/hostile_world.h"
#include "tests/fuzz/targets.h"

namespace skein::fuzz {
namespace {

constexpr char kId[] = "exec:fuzz";
constexpr size_t kEnvs = 3;

// A team with everything that a world may have. It is small, so that bytes of the right sizes are found.
EnvSpec SampleWorld() {
  EnvSpec spec;
  spec.id = kId;
  spec.num_agents = 2;
  spec.obs_size = 2;
  spec.action_size = 1;
  spec.action_low = {-1};
  spec.action_high = {1};
  spec.global_state_size = 1;
  spec.relocatable = false;
  spec.episode_metrics = {"left"};
  return spec;
}

// Whether it was read. What was read is within the limits and can be written and read again.
bool CheckSpec(const absl::StatusOr<EnvSpec>& spec) {
  if (!spec.ok()) {
    Check(absl::IsFailedPrecondition(spec.status()), "a bad spec is FailedPrecondition");
    Check(absl::StartsWith(spec.status().message(), absl::StrCat(kId, ": its spec is refused: ")),
          "a refusal of a spec names the environment");
    return false;
  }
  const auto agents = static_cast<uint64_t>(spec->num_agents);
  Check(agents >= 1 && agents <= kMostAgents, "a spec has a number of agents");
  Check(agents * static_cast<uint64_t>(spec->obs_size) <= kMostNumbers, "a spec has few numbers of observation");
  Check(agents * static_cast<uint64_t>(spec->action_size) <= kMostNumbers, "a spec has few numbers of actions");
  const auto bounds = static_cast<size_t>(spec->discrete ? 0 : spec->action_size);
  Check(spec->action_low.size() == bounds && spec->action_high.size() == bounds, "each real action has its bounds");
  const auto again = ParseSpecText(SpecText(*spec), spec->id);
  Check(again.ok() && CheckSameSpec(*again, *spec).ok(), "a spec that was read can be written and read again");
  return true;
}

bool IsOneLine(absl::string_view text) {
  for (const char c : text) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) return false;
  }
  return true;
}

bool ReadsWelcome(absl::string_view input) {
  env::v1::ServerMessage message;
  if (!message.ParseFromArray(input.data(), static_cast<int>(input.size()))) return false;
  const auto welcomed = TakeWelcome(message, kId);
  if (welcomed.ok()) {
    Check(IsOneLine(welcomed->server), "a server's name is one line");
    Check(!welcomed->spec.relocatable, "a server cannot save states");
    return CheckSpec(welcomed->spec);
  }
  const absl::Status& status = welcomed.status();
  Check(absl::IsFailedPrecondition(status) || absl::IsUnavailable(status) || absl::IsDataLoss(status),
        "a bad welcome is FailedPrecondition, Unavailable or DataLoss");
  Check(IsOneLine(status.message()), "a refusal is one line");
  return false;
}

// Takes numbers off the front of `input`; zeros once that is used up.
template <typename Number>
Number Take(absl::string_view* input) {
  Number number = 0;
  std::memcpy(&number, input->data(), std::min(sizeof(number), input->size()));
  input->remove_prefix(std::min(sizeof(number), input->size()));
  return number;
}

// SkeinEnvSpec's numbers in their order, then bounds, then names that end with 0. Arrays are as long as the bytes
// reach, at most 64 numbers: a spec of more has null pointers if its sizes are within the limits, else ones to nothing.
bool ReadsPluginSpec(absl::string_view input) {
  constexpr uint32_t kMost = 64;
  SkeinEnvSpec spec = {};
  spec.num_agents = Take<uint32_t>(&input);
  spec.obs_size = Take<uint32_t>(&input);
  spec.discrete = Take<uint32_t>(&input);
  spec.action_size = Take<uint32_t>(&input);
  spec.global_state_size = Take<uint32_t>(&input);
  spec.max_episode_steps = Take<uint32_t>(&input);
  spec.reward_threshold = Take<double>(&input);
  spec.num_metrics = Take<uint32_t>(&input);
  spec.state_size = Take<uint32_t>(&input);
  std::vector<float> low, high;
  for (uint32_t i = 0; i < std::min(spec.action_size, kMost); ++i) low.push_back(Take<float>(&input));
  for (uint32_t i = 0; i < std::min(spec.action_size, kMost); ++i) high.push_back(Take<float>(&input));
  if (spec.action_size <= kMost || spec.action_size > kMostNumbers) {
    spec.action_low = low.data();
    spec.action_high = high.data();
  }
  std::vector<std::string> names;
  while (!input.empty() && names.size() < kMostMetrics) {
    names.emplace_back(input.substr(0, input.find('\0')));
    input.remove_prefix(std::min(input.size(), names.back().size() + 1));
  }
  std::vector<const char*> pointers;
  for (const std::string& name : names) pointers.push_back(name.c_str());
  if (spec.num_metrics <= kMostMetrics) pointers.resize(spec.num_metrics, nullptr);
  spec.metric_names = pointers.data();
  return CheckSpec(ReadPluginSpec(spec, kId));
}

// What TakeReply writes: rows of the environments that were asked, and nothing around them.
bool TakesReply(const env::v1::Reply& reply, WorldRequest request, uint8_t mask) {
  const EnvSpec spec = SampleWorld();
  const WorldRow row(spec);
  const HostileAnswer none;
  HostileWorld world(spec, kEnvs, &none);
  std::fill(world.memory().begin(), world.memory().end(), '\x5a');
  const WorldColumns& columns = world.columns();
  for (size_t e = 0; e < kEnvs; ++e) columns.mask[e] = static_cast<uint8_t>(mask >> e & 1);
  const std::vector<char> before = world.memory();
  const absl::Status status = TakeReply(reply, spec, kEnvs, request, columns);
  if (!status.ok()) {
    Check(absl::IsDataLoss(status), "a bad reply is DataLoss");
    Check(absl::StrContains(status.message(), "its server's ") && absl::StrContains(status.message(), " bytes, want "),
          "a refusal of a reply names the field and the sizes");
    Check(world.memory() == before, "a reply that is refused changes nothing");
    return false;
  }
  const auto put_back = [&](const std::string& sent, void* column, size_t row_bytes) {
    Check(sent.size() == kEnvs * row_bytes, "a reply that is taken has the spec's sizes");
    for (size_t e = 0; e < kEnvs; ++e) {
      if (request == WorldRequest::kReset && columns.mask[e] == 0) continue;
      char* const at = static_cast<char*>(column) + e * row_bytes;
      Check(std::memcmp(at, sent.data() + e * row_bytes, row_bytes) == 0, "a row is as it was sent");
      std::memcpy(at, before.data() + (at - world.memory().data()), row_bytes);
    }
  };
  put_back(reply.observation(), columns.observation, 4 * row.observation);
  put_back(reply.reward(), columns.reward, 4 * row.agents);
  put_back(reply.terminated(), columns.terminated, 1);
  put_back(reply.truncated(), columns.truncated, 1);
  put_back(reply.failed(), columns.failed, 1);
  put_back(reply.active(), columns.active, row.agents);
  put_back(reply.final_observation(), columns.final_observation, 4 * row.observation);
  put_back(reply.global_state(), columns.global_state, 4 * row.global_state);
  put_back(reply.final_global_state(), columns.final_global_state, 4 * row.global_state);
  put_back(reply.episode_metrics(), columns.episode_metrics, 4 * row.metrics);
  Check(world.memory() == before, "nothing is written beside the rows");
  return true;
}

// What TakeRequest writes: the request's columns, whose numbers an environment can rely on.
bool TakesRequest(absl::string_view input) {
  env::v1::ClientMessage message;
  if (!message.ParseFromArray(input.data(), static_cast<int>(input.size()))) return false;
  const EnvSpec spec = SampleWorld();
  const HostileAnswer none;
  HostileWorld world(spec, kEnvs, &none);
  std::fill(world.memory().begin(), world.memory().end(), '\x5a');
  const std::vector<char> before = world.memory();
  const WorldColumns& columns = world.columns();
  const auto kind = TakeRequest(message, spec, kEnvs, columns);
  const size_t actions = kEnvs * WorldRow(spec).action;
  if (kind.ok()) {
    Check(*kind == WorldRequest::kStep || *kind == WorldRequest::kReset, "a request is a step or a reset");
    for (size_t i = 0; *kind == WorldRequest::kStep && i < actions; ++i) {
      Check(columns.action[i] >= -1 && columns.action[i] <= 1, "an action is within its bounds");
    }
    for (size_t e = 0; e < kEnvs; ++e) {
      Check(columns.seed[e] < 1u << 31, "a seed is under 2^31");
      Check(*kind == WorldRequest::kStep || columns.mask[e] <= 1, "a mask is 0 or 1");
    }
  } else {
    Check(absl::IsInvalidArgument(kind.status()), "a bad request is InvalidArgument");
    Check(IsOneLine(kind.status().message()), "a refusal is one line");
  }
  const auto put_back = [&](void* column, size_t bytes) {
    std::memcpy(column, before.data() + (static_cast<char*>(column) - world.memory().data()), bytes);
  };
  put_back(columns.action, actions * sizeof(float));
  put_back(columns.seed, kEnvs * sizeof(uint32_t));
  put_back(columns.mask, kEnvs);
  Check(world.memory() == before, "a request writes nothing beside its own columns");
  return kind.ok();
}

void CheckWithin(const std::vector<float>& numbers, float bound, const char* what) {
  Check(FindBeyond(numbers.data(), numbers.size(), bound) == numbers.size(), what);
}

// A step of a group that is answered so. Whether no environment was lost. What the others observe is within the bounds.
bool Steps(HostileAnswer answer) {
  const EnvSpec spec = SampleWorld();
  const WorldRow row(spec);
  answer.answers_steps = false;
  ExternalBatch batch({.id = kId}, std::make_unique<HostileWorld>(spec, kEnvs, &answer),
                      [] { return absl::UnavailableError("there is no other"); });
  for (uint32_t e = 0; e < kEnvs; ++e) batch.Reset(e, 2 * e);
  answer.answers_steps = true;
  const std::vector<float> action(kEnvs * row.action);
  const uint32_t seeds[kEnvs] = {};
  batch.Step(action.data(), seeds);
  bool whole = true;
  for (size_t e = 0; e < kEnvs; ++e) {
    std::vector<float> reward(row.agents), obs(row.observation), state(row.global_state), metrics(row.metrics);
    std::vector<uint8_t> active(row.agents);
    const bool terminated = batch.TakeStep(e, nullptr, reward.data());
    batch.Observe(e, obs.data());
    batch.GlobalState(e, state.data());
    batch.EpisodeMetrics(e, metrics.data());
    batch.Active(e, active.data());
    CheckWithin(obs, kNumberBound, "an observation is within its bound");
    CheckWithin(state, kNumberBound, "a global state is within its bound");
    CheckWithin(metrics, kEpisodeBound, "metrics are within their bound");
    Check(!terminated || !batch.truncated(e), "an episode has one end");
    for (const uint8_t one : active) Check(one <= 1, "active is 0 or 1");
    if (std::isnan(reward[0])) {
      whole = false;
      Check(!terminated, "a lost episode does not terminate");
    } else {
      CheckWithin(reward, kNumberBound, "a reward is within its bound");
    }
  }
  return whole;
}

}  // namespace

bool FuzzWorld(absl::string_view input) {
  static const bool silent = [] {
    spdlog::set_level(spdlog::level::off);  // Each loss is a line of the log.
    return true;
  }();
  if (!silent || input.empty()) return false;
  const auto first = static_cast<unsigned char>(input[0]);
  input.remove_prefix(1);
  switch (first & 7) {
    case 0:
      return CheckSpec(ParseSpecText(std::string(input), kId));
    case 1:
      return ReadsWelcome(input);
    case 2:
      return ReadsPluginSpec(input);
    case 3:
      return Steps({.columns = input.empty() ? absl::string_view("\0", 1) : input});
    case 6:
      return TakesRequest(input);
    default:
      break;
  }
  env::v1::ServerMessage message;
  if (!message.ParseFromArray(input.data(), static_cast<int>(input.size())) || !message.has_reply()) return false;
  if ((first & 7) == 4) return TakesReply(message.reply(), WorldRequest::kReset, first >> 3);
  return TakesReply(message.reply(), WorldRequest::kStep, 0) && Steps({.reply = message.reply()});
}

}  // namespace skein::fuzz
