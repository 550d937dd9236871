// SPDX-License-Identifier: Apache-2.0
#include "bench/tune.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/telemetry/format_count.h"

namespace skein {
namespace {

class Climber {
 public:
  Climber(const TuneSpace& space, const MeasureTrial& measure) : space_(space), measure_(measure) {}

  absl::Status Start() {
    TunePoint start;
    for (const TuneKnob& knob : space_.knobs) start.push_back(knob.start);
    if (!Fits(start)) return absl::InvalidArgumentError("no run has the sizes that the search begins with");
    auto trial = Measure(start);
    if (!trial.ok()) return trial.status();
    search_.best = *trial;
    return absl::OkStatus();
  }

  // First up, then, unless that was worth it, down.
  absl::Status Turn(size_t knob) {
    const uint64_t factor = space_.knobs[knob].factor;
    const auto climbed = Climb(
        knob, [factor](uint64_t value) { return value * factor; }, kWorthIt);
    if (!climbed.ok() || *climbed) return climbed.status();
    return Climb(
               knob, [factor](uint64_t value) { return value / factor; }, 1 / kWorthIt)
        .status();
  }

  TuneSearch search() && { return std::move(search_); }

 private:
  bool Fits(const TunePoint& point) const {
    for (size_t i = 0; i < point.size(); ++i) {
      if (point[i] < space_.knobs[i].least || point[i] > space_.knobs[i].most) return false;
    }
    return space_.fits(point);
  }

  // Continues in steps of `next` from the best point while each is `worth` times as fast as the fastest before it.
  // Returns whether any was.
  template <typename Next>
  absl::StatusOr<bool> Climb(size_t knob, const Next& next, double worth) {
    bool climbed = false;
    for (TunePoint point = search_.best.point;;) {
      point[knob] = next(point[knob]);
      if (!Fits(point)) break;
      auto trial = Measure(point);
      if (!trial.ok()) return trial.status();
      if (!trial->failure.empty() || trial->env_steps_per_second < worth * fastest_before_) break;
      search_.best = *trial;
      climbed = true;
    }
    return climbed;
  }

  absl::StatusOr<TuneTrial> Measure(const TunePoint& point) {
    for (const TuneTrial& one : search_.trials) fastest_before_ = std::max(fastest_before_, one.env_steps_per_second);
    const TuneSettings settings = space_.settings(point);
    auto trial = measure_(settings);
    if (!trial.ok()) {
      if (search_.trials.empty() || absl::IsCancelled(trial.status())) return trial;
      trial = TuneTrial{.failure = std::string(trial.status().message())};
    }
    trial->point = point;
    trial->settings = settings;
    search_.trials.push_back(*trial);
    return trial;
  }

  const TuneSpace& space_;
  const MeasureTrial& measure_;
  TuneSearch search_;
  double fastest_before_ = 0;
};

std::string Title(const std::string& setting) { return absl::AsciiStrToUpper(setting.substr(setting.rfind('.') + 1)); }

}  // namespace

absl::StatusOr<TuneSearch> SearchFastest(const TuneSpace& space, const MeasureTrial& measure) {
  Climber climber(space, measure);
  if (absl::Status s = climber.Start(); !s.ok()) return s;
  for (size_t knob = 0; knob < space.knobs.size(); ++knob) {
    if (absl::Status s = climber.Turn(knob); !s.ok()) return s;
  }
  return std::move(climber).search();
}

std::string FormatTuneTable(const TuneSearch& search) {
  std::string text;
  const auto width = [](const std::string& title) { return std::max<size_t>(8, title.size() + 1); };
  for (const auto& [setting, value] : search.best.settings) {
    absl::StrAppendFormat(&text, "%*s", width(Title(setting)), Title(setting));
  }
  absl::StrAppendFormat(&text, "%13s %7s%s\n", "ENV-STEPS/S", "CPU", search.best.gpu ? "     GPU" : "");
  for (const TuneTrial& trial : search.trials) {
    for (const auto& [setting, value] : trial.settings) {
      absl::StrAppendFormat(&text, "%*d", width(Title(setting)), value);
    }
    if (!trial.failure.empty()) {
      absl::StrAppendFormat(&text, "  failed: %s\n", trial.failure);
      continue;
    }
    absl::StrAppendFormat(&text, "%13s %5.0f %%",
                          FormatCount(static_cast<uint64_t>(std::llround(trial.env_steps_per_second))),
                          100 * trial.cpu);
    if (search.best.gpu) absl::StrAppendFormat(&text, " %5.0f %%", 100 * trial.gpu.value_or(0));
    text += trial.point == search.best.point ? "  <- chosen\n" : "\n";
  }
  return text;
}

}  // namespace skein
