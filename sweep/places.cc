// SPDX-License-Identifier: Apache-2.0
#include "sweep/places.h"

#include <algorithm>
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

}  // namespace skein
