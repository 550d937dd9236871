// SPDX-License-Identifier: Apache-2.0
#include "coordinator/status_page.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "absl/time/time.h"
#include "base/format_count.h"
#include "base/run_state_name.h"

namespace skein {
namespace {

constexpr char kHead[] = R"(<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="refresh" content="3">
<title>Skein: %s</title>
<style>
body { font: 16px/1.4 system-ui, sans-serif; margin: 1rem auto; padding: 0 1rem; max-width: 60rem; color: #222 }
h1 { font-size: 1.3rem } h2 { font-size: 1.1rem }
table { border-collapse: collapse } td, th { padding: .2rem .8rem .2rem 0; text-align: left; vertical-align: top }
.wide { overflow-x: auto } .number { text-align: right; font-variant-numeric: tabular-nums }
.error { background: #fdd; padding: .5rem; overflow-wrap: anywhere }
progress { width: 100%%; height: 1.2rem }
</style></head>
)";

std::string Escape(const std::string& text) {
  return absl::StrReplaceAll(text, {{"&", "&amp;"}, {"<", "&lt;"}, {">", "&gt;"}, {"\"", "&quot;"}, {"'", "&#39;"}});
}

std::string Number(double value) { return std::isfinite(value) ? absl::StrFormat("%.1f", value) : "-"; }

std::string Seconds(double seconds) {
  if (!std::isfinite(seconds) || seconds < 0) return "unknown";
  return absl::FormatDuration(absl::Trunc(absl::Seconds(seconds), absl::Seconds(1)));
}

std::string Row(const std::string& name, const std::string& value) {
  return absl::StrCat("<tr><th>", name, "</th><td>", Escape(value), "</td></tr>\n");
}

std::string RunTable(const v1::StatusResponse& status) {
  const v1::RunProgress& progress = status.progress();
  return absl::StrCat(
      "<table>\n", Row("State", RunStateName(status.state())),
      Row("Env steps",
          absl::StrCat(FormatCount(progress.env_steps()), " of ", FormatCount(progress.target_env_steps()))),
      Row("Time to go", Seconds(progress.eta_seconds())),
      Row("Env steps/s (10, 60, 300 s)",
          absl::StrFormat("%.0f, %.0f, %.0f", progress.env_steps_per_second_10s(), progress.env_steps_per_second_60s(),
                          progress.env_steps_per_second_300s())),
      Row("Mean episode return", Number(progress.mean_episode_return())),
      Row("Mean policy lag", Number(progress.mean_policy_lag())),
      Row("Policy version", FormatCount(progress.policy_version())), Row("Environment", status.env_id()),
      Row("Run id", status.run_id()), Row("Run directory", status.run_directory()),
      Row("Checkpoint", progress.checkpoint()), Row("Up for", Seconds(status.uptime_seconds())),
      Row("Joins, leaves, expirations",
          absl::StrCat(status.joins(), ", ", status.leaves(), ", ", status.expirations())),
      Row("Actors moved", absl::StrCat(status.actor_moves())), "</table>\n");
}

std::string MemberRow(const v1::MemberStatus& member) {
  const v1::MemberReport& report = member.report();
  std::string name = Escape(member.member_id());
  if (!member.metrics_address().empty()) {
    name = absl::StrCat("<a href=\"http://", Escape(member.metrics_address()), "/metrics\">", name, "</a>");
  }
  const std::string place = member.role() == "learner" ? absl::StrCat("rank ", member.rank()) : member.learner_id();
  return absl::StrCat("<tr><td>", name, "</td><td>", Escape(place), "</td><td>", Escape(member.host()),
                      "</td><td class=\"number\">", member.pid(), "</td><td class=\"number\">",
                      FormatCount(report.env_steps()), "</td><td class=\"number\">",
                      absl::StrFormat("%.0f", report.env_steps_per_second()), "</td><td class=\"number\">",
                      FormatCount(report.policy_version()), "</td><td class=\"number\">",
                      absl::StrFormat("%.0f %%", 100 * report.cpu_ratio()), "</td><td class=\"number\">",
                      FormatCount(report.resident_bytes() >> 20), "</td><td class=\"number\">",
                      absl::StrFormat("%.1f", member.seconds_since_heartbeat()), "</td><td>",
                      Escape(report.last_error()), "</td></tr>\n");
}

std::string MemberTable(const v1::StatusResponse& status) {
  std::string table = absl::StrCat("<h2>Members (", status.members_size(),
                                   ")</h2>\n<div class=\"wide\"><table>\n<tr><th>Member</th><th>Feeds</th><th>Host</th>"
                                   "<th>Pid</th><th>Env steps</th><th>Steps/s</th><th>Policy</th><th>Node CPU</th>"
                                   "<th>MiB</th><th>Seen s ago</th><th>Last error</th></tr>\n");
  for (const v1::MemberStatus& member : status.members()) absl::StrAppend(&table, MemberRow(member));
  return absl::StrCat(table, "</table></div>\n");
}

}  // namespace

std::string StatusPage(const v1::StatusResponse& status) {
  const v1::RunProgress& progress = status.progress();
  const std::string title = Escape(status.run_name().empty() ? status.run_id() : status.run_name());
  const uint64_t target = std::max<uint64_t>(progress.target_env_steps(), 1);
  const double percent = std::min(100.0, 100.0 * progress.env_steps() / target);
  const std::string error =
      status.last_error().empty() ? "" : absl::StrCat("<p class=\"error\">", Escape(status.last_error()), "</p>\n");
  return absl::StrCat(
      absl::StrFormat(kHead, title), "<body>\n<h1>", title, "</h1>\n", error,
      absl::StrFormat("<p><progress max=\"100\" value=\"%.2f\"></progress>%.1f %%</p>\n", percent, percent),
      RunTable(status), MemberTable(status),
      "<p><a href=\"/api/status\">status as JSON</a> &middot; <a href=\"/metrics\">metrics</a> &middot; "
      "<a href=\"/sd/prometheus\">scrape targets</a></p>\n</body></html>\n");
}

}  // namespace skein
