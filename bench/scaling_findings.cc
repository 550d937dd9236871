// SPDX-License-Identifier: Apache-2.0
#include "bench/scaling_findings.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/telemetry/format_count.h"

namespace skein {
namespace {

std::string Rate(double rate) { return FormatCount(static_cast<uint64_t>(std::llround(rate))); }
std::string Percent(double share) { return absl::StrFormat("%.1f %%", 100 * share); }

bool IsOnPolicy(const ScalingResults& results) {
  // The resolved configuration, which has every setting.
  return results.config.value("run_config", "").find("mode: on_policy") != std::string::npos;
}

std::string Gain(const ScalingResults& results, const ScalingAnalysis& analysis) {
  const ScalingRow& one = analysis.rows[0];
  const ScalingRow& fastest = analysis.rows[*analysis.fastest.row];
  const int cores = results.machine.value("cores", 0);
  return absl::StrFormat(
      "**How much parallelism gives.** One runner with one environment makes %s env-steps/s; the fastest "
      "configuration, %s, makes %s: %.2f times as many with %d environments, on a machine with %d %s.",
      Rate(one.env_steps_per_second), fastest.point.name(), Rate(fastest.env_steps_per_second), fastest.speed_up,
      fastest.point.environments(), cores, cores == 1 ? "core" : "cores");
}

// Configurations that divide the same number of environments differently.
std::string RunnersOrEnvironments(const ScalingAnalysis& analysis) {
  std::map<uint32_t, std::vector<const ScalingRow*>> by_environments;
  for (const ScalingRow& row : analysis.rows) by_environments[row.point.environments()].push_back(&row);
  std::vector<std::string> groups;
  for (auto& [environments, rows] : by_environments) {
    if (rows.size() < 2) continue;
    std::stable_sort(rows.begin(), rows.end(), [](const ScalingRow* a, const ScalingRow* b) {
      return a->env_steps_per_second > b->env_steps_per_second;
    });
    groups.push_back(absl::StrCat(
        environments, " environments: ", absl::StrJoin(rows, ", ", [](std::string* out, const ScalingRow* row) {
          absl::StrAppend(out, row->point.name(), " ", Rate(row->env_steps_per_second));
        })));
  }
  if (groups.empty()) return "";
  return absl::StrCat(
      "**More runners, or more environments of each?** The same number of environments, divided "
      "differently, in env-steps/s, fastest first. ",
      absl::StrJoin(groups, "; "), ".");
}

std::string Limit(const ScalingResults& results, const ScalingAnalysis& analysis) {
  const ScalingRow& fastest = analysis.rows[*analysis.fastest.row];
  const auto known = results.limits.find(fastest.point.name());
  if (known == results.limits.end()) return "";
  if (!fastest.limit) return absl::StrCat("**The physical limit** is not known: ", known->second.how, ".");
  const ScalingRow* closest = &fastest;
  for (const ScalingRow& row : analysis.rows) {
    if (row.limit_ratio && *row.limit_ratio > *closest->limit_ratio) closest = &row;
  }
  std::string text = absl::StrFormat(
      "**Against the physical limit.** With nothing to do but step the environment, as many threads as %s has would "
      "make %s "
      "env-steps/s (%s). Training with everything that belongs to it, %s reaches %s of that",
      fastest.point.name(), Rate(*fastest.limit), known->second.how, fastest.point.name(),
      Percent(*fastest.limit_ratio));
  if (closest != &fastest) {
    absl::StrAppend(&text, "; nearest to the limit of its own threads is ", closest->point.name(), " with ",
                    Percent(*closest->limit_ratio));
  }
  absl::StrAppend(&text, ".");
  if (*closest->limit_ratio > 1) {
    absl::StrAppend(
        &text,
        " No configuration can be faster than its limit: something else kept the machine busy while that was "
        "measured, or it slowed down; measure again when it is quiet.");
  }
  return text;
}

std::string TimeGoes(const ScalingResults& results, const ScalingRow& row) {
  const StageShares& shares = row.shares;
  std::string text = absl::StrFormat(
      "At %s runners spend %s of their time on physics at the speed of 1x1, %s on what physics takes longer than "
      "there (contention), %s on inference and %s on building fragments; they wait %s.",
      row.point.name(), Percent(shares.physics), Percent(shares.contention), Percent(shares.inference),
      Percent(shares.build), Percent(shares.waiting));
  if (IsOnPolicy(results)) {
    absl::StrAppend(&text, " Of that, ", Percent(std::min(shares.serial(), shares.waiting)),
                    " is the learner, during whose update nobody collects, and ", Percent(shares.coordination()),
                    " is everything else: messages, synchronisation, an uneven finish.");
  } else {
    absl::StrAppend(&text, " The learner is busy ", Percent(shares.serial()), " of the time, beside them.");
  }
  absl::StrAppend(&text, " Receiving and placing fragments keeps the learner's threads busy for ",
                  Percent(shares.transport), " of the time.");
  return text;
}

std::string WhereTimeGoes(const ScalingResults& results, const ScalingAnalysis& analysis) {
  const ScalingRow& fastest = analysis.rows[*analysis.fastest.row];
  std::string text = absl::StrCat("**Where the time goes, measured.** ", TimeGoes(results, analysis.rows[0]));
  if (analysis.rows.size() > 1) absl::StrAppend(&text, "\n\n", TimeGoes(results, analysis.rows.back()));
  if (*analysis.fastest.row != 0 && *analysis.fastest.row + 1 != analysis.rows.size()) {
    absl::StrAppend(&text, "\n\n", TimeGoes(results, fastest));
  }
  return text +
         " (The study could only guess these shares: communication 35-40 %, synchronisation 20-30 %, contention "
         "10-20 %, a serial learner 10-15 %.)";
}

std::string Laws(const ScalingResults& results, const ScalingAnalysis& analysis) {
  if (!analysis.amdahl) return "";
  std::string text = absl::StrFormat("**Laws.** Amdahl's law fits these speed-ups with a serial share of %s (R^2 %.3f)",
                                     Percent(analysis.amdahl->sigma), analysis.amdahl->r_squared);
  if (analysis.universal) {
    absl::StrAppendFormat(
        &text, "; the universal scalability law with a serial share of %s and a crosstalk of %.2g (R^2 %.3f)",
        Percent(analysis.universal->sigma), analysis.universal->kappa, analysis.universal->r_squared);
    if (const auto peak = PeakWorkers(*analysis.universal)) {
      absl::StrAppendFormat(&text, ", by which more than %.0f environments would slow it down", *peak);
    }
  }
  absl::StrAppend(&text, ".");
  constexpr double kDescribes = 0.5;
  if (std::max(analysis.amdahl->r_squared, analysis.universal ? analysis.universal->r_squared : 0) < kDescribes) {
    absl::StrAppend(&text, " Neither describes these figures: the speed-ups hardly follow the number of environments.");
  }
  uint32_t most = 0;
  for (const ScalingRow& row : analysis.rows) most = std::max(most, row.point.environments());
  absl::StrAppend(&text, " Measured at 1x1, the part that is serial indeed, the learner, is ",
                  Percent(analysis.rows[0].shares.serial()), " of an iteration.");
  const uint32_t cores = results.machine.value("cores", 0);
  if (most > cores && results.config.value("env", "") != "Latency-v0") {
    absl::StrAppendFormat(&text,
                          " The laws know nothing of cores: with up to %d environments on %d of them, most of the "
                          "share that they call serial is the lack of cores.",
                          most, cores);
  }
  return text;
}

}  // namespace

std::vector<std::string> ScalingFindings(const ScalingResults& results, const ScalingAnalysis& analysis) {
  std::vector<std::string> findings;
  for (std::string& finding :
       std::vector<std::string>{Gain(results, analysis), Limit(results, analysis), RunnersOrEnvironments(analysis),
                                WhereTimeGoes(results, analysis), Laws(results, analysis)}) {
    if (!finding.empty()) findings.push_back(std::move(finding));
  }
  return findings;
}

}  // namespace skein
