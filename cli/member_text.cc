// SPDX-License-Identifier: Apache-2.0
#include "cli/member_text.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/telemetry/format_count.h"
#include "base/telemetry/printable.h"
#include "cli/progress_text.h"

namespace skein {
namespace {

constexpr double kSilentSeconds = 3;
constexpr double kStarvingSeconds = 1;  // Shorter waits are normal in an iteration.
constexpr double kLeastShare = 0.01;
constexpr int kMostWarnings = 3;  // The newest, in `skein top`.

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

// A member, for the cells of its row.
struct Row {
  const v1::MemberStatus& member;
  Figures figures;
};

enum class Where { kStatus, kTop, kBoth };

struct Column {
  const char* title;
  int width;  // Negative: the text begins at the left.
  Where where;
  int rank;  // Where there is no room for all, columns of low rank are left out first.
  std::string (*text)(const Row& row);
};

const Column kColumns[] = {
    {"MEMBER", -12, Where::kBoth, 99, [](const Row& row) { return row.member.member_id(); }},
    {"FEEDS", -10, Where::kBoth, 7, [](const Row& row) { return row.figures.place; }},
    {"HOST", -24, Where::kStatus, 5, [](const Row& row) { return row.member.host(); }},
    {"HOST", -16, Where::kTop, 5, [](const Row& row) { return row.member.host(); }},
    {"PID", 8, Where::kStatus, 2, [](const Row& row) { return absl::StrCat(row.member.pid()); }},
    {"GEN", 16, Where::kStatus, 0, [](const Row& row) { return absl::StrCat(row.member.generation()); }},
    {"RUNNERS", 7, Where::kStatus, 2, [](const Row& row) { return absl::StrCat(row.member.runners()); }},
    {"STATE", -10, Where::kBoth, 11, [](const Row& row) { return MemberState(row.member); }},
    {"ENV-STEPS/S", 12, Where::kBoth, 10, [](const Row& row) { return row.figures.rate; }},
    {"LIMIT", 6, Where::kBoth, 6, [](const Row& row) { return row.figures.limit; }},
    {"POLICY", 7, Where::kStatus, 1, [](const Row& row) { return absl::StrCat(row.member.report().policy_version()); }},
    {"LAG", 5, Where::kBoth, 9, [](const Row& row) { return row.figures.lag; }},
    {"CPU", 5, Where::kBoth, 8, [](const Row& row) { return row.figures.cpu; }},
    {"MEMORY", 9, Where::kBoth, 4, [](const Row& row) { return row.figures.memory; }},
    {"SILENT", 7, Where::kBoth, 3, [](const Row& row) { return row.figures.silent; }},
    {"METRICS", -23, Where::kStatus, 1, [](const Row& row) { return " " + row.member.metrics_address(); }},
};
constexpr char kStages[] = "TIME BY STAGE";
constexpr int kStagesGap = 2, kLeastStages = sizeof(kStages) - 1;

// The table of members: which columns there is room for.
class MemberTable {
 public:
  MemberTable(Where where, int width) : room_(width) {
    for (const Column& column : kColumns) {
      if (column.where == where || column.where == Where::kBoth) columns_.push_back(&column);
    }
    const auto taken = [&] {
      int sum = kStagesGap + kLeastStages - 1;
      for (const Column* column : columns_) sum += 1 + std::abs(column->width);
      return sum;
    };
    while (taken() > width && columns_.size() > 1) {
      const auto least = std::min_element(columns_.begin(), columns_.end(),
                                          [](const Column* a, const Column* b) { return a->rank < b->rank; });
      left_out_.push_back((*least)->title);
      columns_.erase(least);
    }
  }

  std::string Titles() const {
    return Line([](const Column& column) { return std::string(column.title); }, kStages);
  }
  std::string Members(const Row& row, const std::string& stages) const {
    return Line([&](const Column& column) { return column.text(row); }, stages);
  }
  // What is to be said of columns for which there is no room; none if there is room for all.
  std::vector<std::string> Note() const {
    if (left_out_.empty()) return {};
    return WrapLine(absl::StrCat("no room for ", absl::StrJoin(left_out_, ", "),
                                 ": widen the terminal, or see skein status --json"),
                    room_);
  }

 private:
  template <typename TextOf>
  std::string Line(const TextOf& text_of, const std::string& stages) const {
    std::string line;
    for (const Column* column : columns_) {
      const std::string text = Cell(text_of(*column), static_cast<size_t>(std::abs(column->width)));
      absl::StrAppendFormat(&line, "%*s ", column->width, text);
    }
    line.append(kStagesGap - 1, ' ');
    line += Cell(stages, static_cast<size_t>(std::max(room_ - static_cast<int>(line.size()), 1)));
    return std::string(absl::StripTrailingAsciiWhitespace(line));
  }

  const int room_;
  std::vector<const Column*> columns_;
  std::vector<std::string> left_out_;
};

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

std::string FormatMembers(const v1::StatusResponse& status, int width) {
  const MemberTable table(Where::kStatus, width);
  std::vector<std::string> lines = {table.Titles()};
  std::vector<std::string> errors;
  for (const v1::MemberStatus& member : status.members()) {
    const v1::MemberReport& report = member.report();
    lines.push_back(table.Members({member, FiguresOf(status, member)}, FormatStages(report, nullptr)));
    if (!report.last_error().empty()) {
      errors.push_back(Printable(absl::StrCat(member.member_id(), ": ", report.last_error())));
    }
  }
  for (const std::string& line : table.Note()) lines.push_back(line);
  if (!errors.empty()) lines.insert(lines.end(), {"", "errors"});
  for (const std::string& error : errors) {
    for (const std::string& line : WrapLine(error, width)) lines.push_back(line);
  }
  return absl::StrJoin(lines, "\n") + "\n";
}

std::vector<std::string> FormatTop(const v1::StatusResponse& status, const v1::StatusResponse* before, int width,
                                   int height) {
  const MemberTable table(Where::kTop, width);
  std::vector<std::string> lines = FormatProgressBlock(status, {}, width);
  const auto add = [&](const std::vector<std::string>& more) { lines.insert(lines.end(), more.begin(), more.end()); };
  add(WrapLine(absl::StrCat("steps  ", FormatStepAccount(status.progress().account())), width));
  const auto& warnings = status.progress().warnings();
  for (int i = std::max(warnings.size() - kMostWarnings, 0); i < warnings.size(); ++i) {
    add(WrapLine(absl::StrCat("warning: ", Printable(warnings[i])), width));
  }
  add({""});
  add(table.Note());
  add({table.Titles()});
  std::vector<std::string> members;
  for (const v1::MemberStatus& member : status.members()) {
    const std::string stages = FormatStages(member.report(), ReportBefore(before, member));
    members.push_back(table.Members({member, FiguresOf(status, member)}, stages));
    const std::string& error = member.report().last_error();
    if (error.empty()) continue;
    for (std::string& line : WrapLine(Printable(absl::StrCat("  error: ", error)), width)) {
      members.push_back(std::move(line));
    }
  }
  const size_t room = static_cast<size_t>(std::max<int>(height - static_cast<int>(lines.size()), 1));
  if (members.size() > room) {
    const size_t hidden = members.size() - (room - 1);
    members.resize(room - 1);
    members.push_back(absl::StrCat("... and ", hidden, " more lines; `skein status` shows all"));
  }
  add(members);
  for (std::string& line : lines) line.resize(std::min(line.size(), static_cast<size_t>(std::max(width, 1))));
  return lines;
}

}  // namespace skein
