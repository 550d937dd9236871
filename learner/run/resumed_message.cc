// SPDX-License-Identifier: Apache-2.0
#include "learner/run/resumed_message.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "learner/ranks/collective.h"
#include "skein/v1/rank.pb.h"

namespace skein {
namespace {

// Absent = no bytes.
std::string ToBytes(const std::optional<v1::Tensor>& tensor) { return tensor ? tensor->SerializeAsString() : ""; }
bool FromBytes(const std::string& bytes, std::optional<v1::Tensor>* tensor) {
  return bytes.empty() || tensor->emplace().ParseFromString(bytes);
}

std::string ToBytes(const EpisodeWindow& window) {
  v1::RankIteration message;
  message.mutable_episode_return()->Add(window.returns.begin(), window.returns.end());
  message.mutable_episode_length()->Add(window.lengths.begin(), window.lengths.end());
  message.mutable_episode_metrics()->Add(window.metrics.begin(), window.metrics.end());
  return message.SerializeAsString();
}
bool FromBytes(const std::string& bytes, EpisodeWindow* window) {
  v1::RankIteration message;
  if (!message.ParseFromString(bytes)) return false;
  window->returns.assign(message.episode_return().begin(), message.episode_return().end());
  window->lengths.assign(message.episode_length().begin(), message.episode_length().end());
  window->metrics.assign(message.episode_metrics().begin(), message.episode_metrics().end());
  return true;
}

}  // namespace

absl::StatusOr<Trainer::Resumed> TellResumed(Collective* collective, absl::StatusOr<Trainer::Resumed> mine) {
  Trainer::Resumed resumed = mine.ok() ? *mine : Trainer::Resumed{};
  RunRecord& record = resumed.record;
  std::vector<std::string> parts = {std::to_string(static_cast<int>(mine.status().code())),
                                    std::string(mine.status().message()),
                                    std::to_string(record.env_steps),
                                    std::to_string(record.iteration),
                                    std::to_string(record.episodes),
                                    record.account.SerializeAsString(),
                                    ToBytes(record.state.env_state),
                                    ToBytes(record.state.policy_state),
                                    resumed.checkpoint.path,
                                    resumed.checkpoint.digest,
                                    ToBytes(record.last_episodes),
                                    record.changes};
  for (std::string& part : parts) {
    auto all = collective->GatherBytes(collective->rank() == 0 ? part : "");
    if (!all.ok()) return all.status();
    part = std::move(all->front());
  }
  int code = 0;
  bool read = absl::SimpleAtoi(parts[0], &code);
  if (code != 0) return absl::Status(static_cast<absl::StatusCode>(code), parts[1]);
  read = read && absl::SimpleAtoi(parts[2], &record.env_steps) && absl::SimpleAtoi(parts[3], &record.iteration) &&
         absl::SimpleAtoi(parts[4], &record.episodes) && record.account.ParseFromString(parts[5]);
  read = read && FromBytes(parts[6], &record.state.env_state) && FromBytes(parts[7], &record.state.policy_state) &&
         FromBytes(parts[10], &record.last_episodes);
  resumed.checkpoint = {parts[8], parts[9]};
  record.changes = parts[11];
  if (!read) return absl::DataLossError("what rank 0 says of the checkpoint cannot be read");
  return resumed;
}

}  // namespace skein
