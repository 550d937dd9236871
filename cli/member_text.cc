// SPDX-License-Identifier: Apache-2.0
#include "cli/member_text.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/telemetry/format_count.h"
#include "base/telemetry/printable.h"
#include "cli/progress_text.h"

namespace skein {
namespace {

constexpr double kSilentSeconds = 3;
constexpr double kStarvingSeconds = 1;  // Shorter waits are normal in an iteration.
constexpr double kLeastShare = 0.01;
constexpr char kRow[] = "%-12s %-10s %-16s %-10s %12s %6s %5s %5s %9s %7s  %s";

const v1::MemberReport* ReportBefore(const v1::StatusResponse* before, const v1::MemberStatus& member) {
  if (before == nullptr) return nullptr;
  for (const v1::MemberStatus& other : before->members()) {
    if (other.member_id() == member.member_id() && other.generation() == member.generation()) return &other.report();
  }
  return nullptr;
}

// `text` for a column of `width` characters; "~" stands for the rest of a longer one.
std::string Cell(const std::string& text, size_t width) {
  const std::string line = Printable(text);
  return line.size() <= width ? line : absl::StrCat(line.substr(0, width - 1), "~");
}

// A member's numbers as text.
struct Figures {
  std::string place, rate, limit, lag, cpu, memory, silent;
};

Figures FiguresOf(const v1::StatusResponse& status, const v1::MemberStatus& member) {
  const v1::MemberReport& report = member.report();
  const double limit = report.limit_env_steps_per_second();
  const double rate = std::isfinite(report.env_steps_per_second()) ? std::max(report.env_steps_per_second(), 0.0) : 0;
  const std::optional<double> lag = MemberLag(status, member);
  return {.place = member.role() == "learner" ? absl::StrCat("rank ", member.rank()) : member.learner_id(),
          .rate = FormatCount(std::llround(rate)),
          .limit = limit > 0 ? absl::StrFormat("%.0f%%", 100 * rate / limit) : "-",
          .lag = lag ? absl::StrFormat("%.1f", *lag) : "-",
          .cpu = absl::StrFormat("%.0f%%", 100 * report.cpu_ratio()),
          .memory = absl::StrCat(report.resident_bytes() >> 20, " MiB"),
          .silent = absl::StrFormat("%.1fs", member.seconds_since_heartbeat())};
}

std::string Row(const v1::StatusResponse& status, const v1::MemberStatus& member, const v1::MemberReport* before) {
  const Figures figures = FiguresOf(status, member);
  return absl::StrFormat(kRow, Cell(member.member_id(), 12), Cell(figures.place, 10), Cell(member.host(), 16),
                         MemberState(member), figures.rate, figures.limit, figures.lag, figures.cpu, figures.memory,
                         figures.silent, FormatStages(member.report(), before));
}

}  // namespace

std::string MemberState(const v1::MemberStatus& member) {
  if (member.draining()) return "draining";
  if (member.seconds_since_heartbeat() >= kSilentSeconds) return "silent";
  if (member.role() == "actor" && member.learner_id().empty()) return "no learner";
  if (member.degraded()) return "degraded";
  if (member.report().starving_seconds() >= kStarvingSeconds) return "starving";
  return "up";
}

std::optional<double> MemberLag(const v1::StatusResponse& status, const v1::MemberStatus& member) {
  if (member.role() != "actor" || member.report().policy_version() == 0) return std::nullopt;
  const double lag = status.progress().mean_policy_lag();
  return std::isfinite(lag) ? std::optional(lag) : std::nullopt;
}

std::string FormatStages(const v1::MemberReport& report, const v1::MemberReport* before) {
  std::vector<std::pair<double, std::string>> stages;
  double sum = 0;
  for (const auto& [stage, seconds] : report.stage_seconds()) {
    double spent = seconds;
    if (before != nullptr) {
      const auto found = before->stage_seconds().find(stage);
      if (found != before->stage_seconds().end()) spent -= found->second;
    }
    if (!(spent > 0)) continue;
    stages.emplace_back(spent, stage);
    sum += spent;
  }
  std::sort(stages.rbegin(), stages.rend());
  std::string text;
  for (const auto& [seconds, stage] : stages) {
    if (seconds < kLeastShare * sum) break;
    absl::StrAppendFormat(&text, "%s%s %.0f%%", text.empty() ? "" : "  ", stage, 100 * seconds / sum);
  }
  return text.empty() ? "-" : text;
}

std::string FormatMembers(const v1::StatusResponse& status) {
  constexpr char kWideRow[] = "%-12s %-10s %-24s %8s %16s %7s %-10s %12s %6s %7s %5s %5s %9s %7s  %-22s  %s\n";
  std::string text =
      absl::StrFormat(kWideRow, "MEMBER", "FEEDS", "HOST", "PID", "GEN", "RUNNERS", "STATE", "ENV-STEPS/S", "LIMIT",
                      "POLICY", "LAG", "CPU", "MEMORY", "SILENT", "METRICS", "TIME BY STAGE");
  std::string errors;
  for (const v1::MemberStatus& member : status.members()) {
    const Figures figures = FiguresOf(status, member);
    const v1::MemberReport& report = member.report();
    absl::StrAppendFormat(&text, kWideRow, Cell(member.member_id(), 12), Cell(figures.place, 10),
                          Cell(member.host(), 24), absl::StrCat(member.pid()), absl::StrCat(member.generation()),
                          absl::StrCat(member.runners()), MemberState(member), figures.rate, figures.limit,
                          absl::StrCat(report.policy_version()), figures.lag, figures.cpu, figures.memory,
                          figures.silent, Printable(member.metrics_address()),
                          Printable(FormatStages(report, nullptr)));
    if (!report.last_error().empty()) {
      absl::StrAppend(&errors, Printable(absl::StrCat(member.member_id(), ": ", report.last_error())), "\n");
    }
  }
  return errors.empty() ? text : absl::StrCat(text, "\nerrors\n", errors);
}

std::vector<std::string> FormatTop(const v1::StatusResponse& status, const v1::StatusResponse* before, int width,
                                   int height) {
  std::vector<std::string> lines = FormatProgressBlock(status, {}, width);
  lines.push_back(absl::StrCat("steps  ", FormatStepAccount(status.progress().account())));
  lines.push_back("");
  lines.push_back(absl::StrFormat(kRow, "MEMBER", "FEEDS", "HOST", "STATE", "ENV-STEPS/S", "LIMIT", "LAG", "CPU",
                                  "MEMORY", "SILENT", "TIME BY STAGE"));
  std::vector<std::string> members;
  for (const v1::MemberStatus& member : status.members()) {
    members.push_back(Row(status, member, ReportBefore(before, member)));
    const std::string& error = member.report().last_error();
    if (!error.empty()) members.push_back(absl::StrCat("  error: ", error));
  }
  const size_t room = static_cast<size_t>(std::max<int>(height - static_cast<int>(lines.size()), 1));
  if (members.size() > room) {
    const size_t hidden = members.size() - (room - 1);
    members.resize(room - 1);
    members.push_back(absl::StrCat("... and ", hidden, " more lines; `skein status` shows all"));
  }
  lines.insert(lines.end(), members.begin(), members.end());
  for (std::string& line : lines) {
    line = Printable(std::move(line));
    line.resize(std::min(line.size(), static_cast<size_t>(std::max(width, 1))));
  }
  return lines;
}

}  // namespace skein
