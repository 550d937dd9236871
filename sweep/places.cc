// SPDX-License-Identifier: Apache-2.0
#include "sweep/places.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <iterator>
#include <optional>
#include <thread>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/process/message_text.h"

namespace skein {
namespace {

std::optional<uint32_t> NumberIn(const char* variable) {
  const char* const text = std::getenv(variable);
  uint32_t number = 0;
  if (text == nullptr || !absl::SimpleAtoi(text, &number) || number == 0) return std::nullopt;
  return number;
}

}  // namespace

absl::StatusOr<Places> FindPlaces(const std::string& slots, const std::string& launcher) {
  Places places;
  const bool slurm = launcher == "auto" && std::getenv("SLURM_JOB_ID") != nullptr;
  const uint32_t cores = std::max(1u, std::thread::hardware_concurrency());
  uint32_t automatic = cores;
  if (slurm) automatic = NumberIn("SLURM_NTASKS").value_or(1);
  if (slots == "auto") {
    places.slots = automatic;
  } else if (!absl::SimpleAtoi(slots, &places.slots) || places.slots < 1 || places.slots > 4096) {
    return absl::InvalidArgumentError(
        absl::StrCat("--slots: got ", Quoted(slots), ", want auto or a number from 1 to 4096"));
  }
  places.cores = slurm ? NumberIn("SLURM_CPUS_PER_TASK").value_or(1) : std::max(1u, cores / places.slots);
  if (slurm) {
    places.launcher = {"srun", "--exact", "--nodes=1", "--ntasks=1", absl::StrCat("--cpus-per-task=", places.cores)};
  } else if (launcher != "auto" && launcher != "none") {
    places.launcher = absl::StrSplit(launcher, ' ', absl::SkipEmpty());
  }
  if (!places.launcher.empty()) {
    // A launcher that outlived the sweep would keep its training's folder.
    const char* const ending[] = {"setpriv", "--pdeathsig", "TERM"};
    places.launcher.insert(places.launcher.begin(), std::begin(ending), std::end(ending));
  }
  return places;
}

absl::Status FitSlots(const NodeResources& asked, const NodeResources& here, bool automatic, Places* places) {
  // Of sums such as ten times 0.1.
  constexpr double kRounding = 1e-9;
  struct Kind {
    const char* name;
    double asked, here;
  };
  const Kind kinds[] = {
      {"CPUs", asked.cpus, here.cpus},
      {"GPUs", asked.gpus, here.gpus},
      {"bytes of memory", static_cast<double>(asked.memory_bytes), static_cast<double>(here.memory_bytes)}};
  uint32_t fit = places->slots;
  for (const Kind& kind : kinds) {
    if (kind.asked <= 0) continue;
    const auto together = static_cast<uint32_t>(std::min(4096.0, std::floor(kind.here / kind.asked + kRounding)));
    if (together == 0 || (together < fit && !automatic)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "resources: the trainings of ", places->slots, places->slots == 1 ? " slot ask for " : " slots ask for ",
          kind.asked * (together == 0 ? 1 : places->slots), " of ", kind.name, together == 0 ? " each" : "", ", and ",
          kind.here, " is here; ",
          together == 0 ? std::string("ask for less") : absl::StrCat("--slots ", together, " fits")));
    }
    fit = std::min(fit, together);
  }
  places->slots = fit;
  return absl::OkStatus();
}

}  // namespace skein
