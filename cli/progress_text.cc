// SPDX-License-Identifier: Apache-2.0
#include "cli/progress_text.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "base/config/run_state_name.h"
#include "base/telemetry/format_count.h"
#include "base/telemetry/format_seconds.h"
#include "base/telemetry/printable.h"
#include "cli/member_text.h"

namespace skein {
namespace {

std::string FormatRate(double per_second) {
  return std::isfinite(per_second) && per_second >= 0 ? FormatCount(std::llround(per_second)) : "-";
}

std::string FormatNumber(double value, const char* unknown) {
  return std::isfinite(value) ? absl::StrFormat("%.1f", value) : unknown;
}

double Share(const v1::RunProgress& progress) {
  if (progress.target_env_steps() == 0) return 0;
  return std::min(1.0, static_cast<double>(progress.env_steps()) / static_cast<double>(progress.target_env_steps()));
}

// Rounded down, so that 100 % is only ever shown at the target.
std::string FormatPercent(double share) { return absl::StrFormat("%.1f%%", std::floor(share * 1000) / 10); }

// "waiting for data"
std::string StateText(v1::RunState state) { return absl::StrReplaceAll(RunStateName(state), {{"_", " "}}); }

int CountActors(const v1::StatusResponse& status) {
  return std::count_if(status.members().begin(), status.members().end(),
                       [](const v1::MemberStatus& member) { return member.role() == "actor"; });
}

bool WaitsForData(const v1::StatusResponse& status) {
  return status.state() == v1::RUN_STATE_STARTING || status.state() == v1::RUN_STATE_WAITING_FOR_DATA;
}

// "phase 2 of 3" after `space`, in runs with phases.
std::string PhaseText(const v1::RunProgress& progress, const std::string& space) {
  if (progress.phases() == 0) return "";
  return absl::StrCat(space, "phase ", progress.phase(), " of ", progress.phases());
}

// "memory gru 64" after `space`, where the policy has one.
std::string MemoryText(const v1::RunProgress& progress, const std::string& space) {
  if (progress.memory().empty()) return "";
  return absl::StrCat(space, "memory ", Printable(progress.memory()), " ", progress.memory_size());
}

// What `skein fit` trains on, in place of an environment.
constexpr char kSequencesId[] = "sequences";

// Of a training of sequences: what it has in place of returns and actors.
std::string SequencesText(const v1::RunProgress& progress) {
  const auto figure = [&](const char* name) {
    const auto found = progress.losses().find(name);
    return found == progress.losses().end() ? std::numeric_limits<double>::quiet_NaN() : found->second;
  };
  const auto loss = [&](const char* name) {
    return std::isfinite(figure(name)) ? absl::StrFormat("%.4f", figure(name)) : "-";
  };
  return absl::StrFormat("loss %s   of the last epoch %s   held out %s   epochs %s   keys/s %s", loss("loss"),
                         loss("epoch_loss"), loss("held_out_loss"), FormatRate(figure("epochs")),
                         FormatRate(figure("keys_per_second")));
}

}  // namespace

std::string FirstError(const v1::StatusResponse& status) {
  const std::string& error = status.last_error().empty() ? status.progress().last_error() : status.last_error();
  return Printable(error);
}

std::string FormatBar(double share, int width) {
  share = std::isfinite(share) ? std::clamp(share, 0.0, 1.0) : 0.0;
  const int full = static_cast<int>(share * width);
  return absl::StrCat("[", std::string(full, '#'), std::string(width - full, '-'), "]");
}

std::vector<std::string> WrapLine(const std::string& line, int width) {
  constexpr size_t kIndent = 2;
  const size_t room = static_cast<size_t>(std::max(width, 8));
  std::vector<std::string> lines;
  std::string rest = line;
  while (rest.size() > room) {
    // Not within the indentation.
    const auto last = [&](const char* gap) {
      const size_t at = rest.rfind(gap, room);
      return at == std::string::npos || at <= kIndent ? 0 : at;
    };
    const size_t between = last("  ");
    size_t cut = between > room / 3 ? between : last(" ");
    if (cut == 0) cut = room;
    lines.emplace_back(absl::StripTrailingAsciiWhitespace(rest.substr(0, cut)));
    rest = absl::StrCat(std::string(kIndent, ' '), absl::StripLeadingAsciiWhitespace(rest.substr(cut)));
  }
  lines.push_back(rest);
  return lines;
}

std::vector<std::string> FormatProgressBlock(const v1::StatusResponse& status, const ProgressNotes& notes, int width) {
  const v1::RunProgress& progress = status.progress();
  const double share = Share(progress);
  const bool sequences = status.env_id() == kSequencesId;
  const std::string steps =
      absl::StrFormat(" %s  %s / %s %s   ETA %s", FormatPercent(share), FormatCount(progress.env_steps()),
                      FormatCount(progress.target_env_steps()), sequences ? "sequences" : "env steps",
                      FormatSeconds(progress.eta_seconds()));
  const int bar = std::clamp(width - static_cast<int>(steps.size()) - 2, 4, 40);
  std::vector<std::string> lines = {
      absl::StrFormat("%s  %s  %s  iteration %d%s", Printable(status.run_name()), Printable(status.env_id()),
                      StateText(status.state()), progress.iteration(), MemoryText(progress, "  ")),
      FormatBar(share, bar) + steps,
      absl::StrFormat("%s  %s (10 s)   %s (60 s)   %s (300 s)", sequences ? "sequences/s" : "env-steps/s",
                      FormatRate(progress.env_steps_per_second_10s()), FormatRate(progress.env_steps_per_second_60s()),
                      FormatRate(progress.env_steps_per_second_300s()))};
  if (sequences) {
    lines.push_back(SequencesText(progress));
  } else {
    lines.push_back(absl::StrFormat("mean episode return (last 100)  %s   length %s   episodes %s",
                                    FormatNumber(progress.mean_episode_return(), "-"),
                                    FormatNumber(progress.mean_episode_length(), "-"),
                                    FormatCount(progress.episodes())));
    lines.push_back(absl::StrFormat(
        "policy lag %s   actors %d live%s   queue %d%s", FormatNumber(progress.mean_policy_lag(), "-"),
        CountActors(status), notes.actor_restarts > 0 ? absl::StrCat(" (", notes.actor_restarts, " restarted)") : "",
        progress.queued_batches(), PhaseText(progress, "   ")));
  }
  if (WaitsForData(status) && !notes.waiting_hint.empty()) lines.push_back(notes.waiting_hint);
  if (const std::string error = FirstError(status); !error.empty()) lines.push_back("first error: " + error);
  std::vector<std::string> wrapped;
  for (const std::string& line : lines) {
    for (std::string& part : WrapLine(line, width)) wrapped.push_back(std::move(part));
  }
  return wrapped;
}

std::string FormatProgressLine(const v1::StatusResponse& status, const ProgressNotes& notes) {
  const v1::RunProgress& progress = status.progress();
  std::string line = absl::StrFormat(
      "%s  %s/%s (%s)  %s/%s/%s env-steps/s (10/60/300 s)  return %s  lag %s  actors %d  queue %d  ETA %s",
      StateText(status.state()), FormatCount(progress.env_steps()), FormatCount(progress.target_env_steps()),
      FormatPercent(Share(progress)), FormatRate(progress.env_steps_per_second_10s()),
      FormatRate(progress.env_steps_per_second_60s()), FormatRate(progress.env_steps_per_second_300s()),
      FormatNumber(progress.mean_episode_return(), "-"), FormatNumber(progress.mean_policy_lag(), "-"),
      CountActors(status), progress.queued_batches(), FormatSeconds(progress.eta_seconds()));
  line += PhaseText(progress, "  ");
  if (notes.actor_restarts > 0) absl::StrAppend(&line, "  restarts ", notes.actor_restarts);
  if (WaitsForData(status) && !notes.waiting_hint.empty()) absl::StrAppend(&line, "  ", notes.waiting_hint);
  if (const std::string error = FirstError(status); !error.empty()) absl::StrAppend(&line, "  first error: ", error);
  return line;
}

std::string FormatStatusTable(const v1::StatusResponse& status, int width) {
  constexpr int kLabel = 10;
  const v1::RunProgress& progress = status.progress();
  std::string text;
  const auto add = [&](const std::string& label, const std::vector<std::string>& lines) {
    for (size_t i = 0; i < lines.size(); ++i) {
      absl::StrAppendFormat(&text, "%-*s%s\n", kLabel, i == 0 ? label : "", lines[i]);
    }
  };
  const auto wrap = [&](const std::string& label, const std::string& line) {
    add(label, WrapLine(line, width - kLabel));
  };
  wrap("run",
       absl::StrFormat("%s (%s), %s, up %s%s", Printable(status.run_name()), Printable(status.env_id()),
                       StateText(status.state()), FormatSeconds(status.uptime_seconds()), MemoryText(progress, ", ")));
  std::vector<std::string> block = FormatProgressBlock(status, {}, std::min(width, 1000) - kLabel);
  // Its first line, which may be wrapped, repeats the run.
  const auto bar = std::find_if(block.begin(), block.end(), [](const std::string& line) { return line[0] == '['; });
  block.erase(block.begin(), bar);
  add("", block);
  wrap("steps", FormatStepAccount(progress.account()));
  wrap("members", absl::StrFormat("%d joins, %d leaves, %d expired, %d moves of actors", status.joins(),
                                  status.leaves(), status.expirations(), status.actor_moves()));
  if (!progress.checkpoint().empty()) {
    wrap("saved", absl::StrCat(Printable(progress.checkpoint()), " (digest ", progress.checkpoint_digest(), ")"));
  }
  for (const std::string& warning : progress.warnings()) wrap("warning", Printable(warning));
  return absl::StrCat(text, "\n", FormatMembers(status, width));
}

std::string FormatStepAccount(const v1::StepAccount& account) {
  std::string text =
      absl::StrFormat("collected %s = trained %s + stale %s + rejected %s + lost %s", FormatCount(account.collected()),
                      FormatCount(account.trained()), FormatCount(account.stale()), FormatCount(account.rejected()),
                      FormatCount(account.lost()));
  if (account.pending() > 0) absl::StrAppend(&text, " + pending ", FormatCount(account.pending()));
  return text;
}

}  // namespace skein
