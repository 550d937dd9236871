// SPDX-License-Identifier: Apache-2.0
#include "coordinator/message_bounds.h"

#include <cmath>
#include <initializer_list>
#include <iterator>
#include <limits>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/telemetry/printable.h"
#include "base/telemetry/stage_names.h"

namespace skein {
namespace {

using Numbers = google::protobuf::Map<std::string, double>;

struct Text {
  const char* field;
  const std::string& text;
  size_t most;
};

absl::Status CheckTexts(std::initializer_list<Text> texts) {
  for (const auto& [field, text, most] : texts) {
    if (text.size() <= most) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(field, " has ", text.size(), " bytes, and may have ", most, ": give a shorter one"));
  }
  return absl::OkStatus();
}

absl::Status CheckNumber(const char* field, uint32_t number, uint32_t most) {
  if (number <= most) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(field, " is ", number, ", and may be ", most, " at most"));
}

// Never cuts within a UTF-8 character: such a message could not be parsed.
void Cut(size_t most, std::string* text) {
  static constexpr char kMore[] = "...";
  if (text->size() <= most) return;
  size_t end = most - (sizeof(kMore) - 1);
  while (end > 0 && (static_cast<unsigned char>((*text)[end]) & 0xc0) == 0x80) --end;
  text->resize(end);
  text->append(kMore);
}

double SaneOr(double otherwise, double number) { return IsSaneNumber(number) ? number : otherwise; }

template <typename Names>
Numbers Stages(const Names& names, const Numbers& reported) {
  Numbers stages;
  for (const char* name : names) {
    const auto found = reported.find(name);
    if (found != reported.end() && IsSaneNumber(found->second)) stages[name] = found->second;
  }
  return stages;
}

// In order of name, so that always the same entries are left out.
Numbers Bounded(const Numbers& reported) {
  std::map<std::string, double> sane;
  for (const auto& [name, number] : reported) {
    if (!std::isfinite(number) || name.size() > kMostNumberNameBytes || Printable(name) != name) continue;
    sane.emplace(name, number);
    if (sane.size() > kMostNumbers) sane.erase(std::prev(sane.end()));
  }
  return Numbers(sane.begin(), sane.end());
}

}  // namespace

absl::Status CheckBounds(const v1::JoinRequest& request) {
  if (absl::Status status = CheckTexts({{"run_id", request.run_id(), kMostIdBytes},
                                        {"host", request.host(), kMostHostBytes},
                                        {"data_address", request.data_address(), kMostAddressBytes},
                                        {"metrics_address", request.metrics_address(), kMostAddressBytes}});
      !status.ok()) {
    return status;
  }
  if (absl::Status status = CheckNumber("runners", request.runners(), kMostRunners); !status.ok()) return status;
  return CheckNumber("ranks", request.ranks(), kMostRanks);
}

absl::Status CheckBounds(const v1::HeartbeatRequest& request) {
  return CheckTexts({{"member_id", request.member_id(), kMostIdBytes}});
}

absl::Status CheckBounds(const v1::LeaveRequest& request) {
  return CheckTexts({{"member_id", request.member_id(), kMostIdBytes}});
}

absl::Status CheckBounds(const v1::BarrierRequest& request) {
  return CheckTexts({{"member_id", request.member_id(), kMostIdBytes}});
}

absl::Status CheckBounds(const v1::DrainRequest& request) {
  return CheckTexts({{"member_id", request.member_id(), kMostIdBytes}});
}

absl::Status CheckBounds(const v1::GetStatusRequest&) { return absl::OkStatus(); }

bool IsSaneNumber(double number) { return number >= 0 && number <= kMostReported; }

v1::MemberReport Bounded(const v1::MemberReport& report, v1::Role role) {
  v1::MemberReport kept = report;
  kept.DiscardUnknownFields();
  kept.set_env_steps_per_second(SaneOr(0, report.env_steps_per_second()));
  kept.set_cpu_ratio(SaneOr(0, report.cpu_ratio()));
  kept.set_starving_seconds(SaneOr(0, report.starving_seconds()));
  kept.set_limit_env_steps_per_second(SaneOr(0, report.limit_env_steps_per_second()));
  kept.set_undelivered_seconds(SaneOr(0, report.undelivered_seconds()));
  *kept.mutable_stage_seconds() = role == v1::ROLE_LEARNER ? Stages(kLearnerStages, report.stage_seconds())
                                                           : Stages(kActorStages, report.stage_seconds());
  Cut(kMostErrorBytes, kept.mutable_last_error());
  return kept;
}

v1::RunProgress Bounded(const v1::RunProgress& progress) {
  static constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();
  v1::RunProgress kept = progress;
  kept.DiscardUnknownFields();
  if (!v1::RunState_IsValid(progress.state())) kept.set_state(v1::RUN_STATE_UNSPECIFIED);
  kept.set_env_steps_per_second_10s(SaneOr(0, progress.env_steps_per_second_10s()));
  kept.set_env_steps_per_second_60s(SaneOr(0, progress.env_steps_per_second_60s()));
  kept.set_env_steps_per_second_300s(SaneOr(0, progress.env_steps_per_second_300s()));
  if (!std::isfinite(progress.mean_episode_return())) kept.set_mean_episode_return(kUnknown);
  kept.set_mean_episode_length(SaneOr(kUnknown, progress.mean_episode_length()));
  kept.set_mean_policy_lag(SaneOr(0, progress.mean_policy_lag()));
  kept.set_eta_seconds(SaneOr(-1, progress.eta_seconds()));
  *kept.mutable_stage_seconds() = Stages(kLearnerStages, progress.stage_seconds());
  *kept.mutable_losses() = Bounded(progress.losses());
  *kept.mutable_episode_metrics() = Bounded(progress.episode_metrics());
  *kept.mutable_callback_metrics() = Bounded(progress.callback_metrics());
  Cut(kMostErrorBytes, kept.mutable_last_error());
  if (kept.warnings_size() > kMostWarnings) {
    kept.mutable_warnings()->DeleteSubrange(kMostWarnings, kept.warnings_size() - kMostWarnings);
  }
  for (std::string& warning : *kept.mutable_warnings()) Cut(kMostErrorBytes, &warning);
  Cut(kMostPathBytes, kept.mutable_checkpoint());
  Cut(kMostIdBytes, kept.mutable_checkpoint_digest());
  return kept;
}

}  // namespace skein
