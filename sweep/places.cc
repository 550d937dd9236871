// SPDX-License-Identifier: Apache-2.0
#include "sweep/places.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <iterator>
#include <optional>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/process/cores.h"
#include "base/process/message_text.h"
#include "launch/share_text.h"

namespace skein {
namespace {

// Of sums such as ten times 0.1.
constexpr double kRounding = 1e-9;
constexpr double kMostSlots = 4096;

std::optional<uint32_t> NumberIn(const char* variable) {
  const char* const text = std::getenv(variable);
  uint32_t number = 0;
  if (text == nullptr || !absl::SimpleAtoi(text, &number) || number == 0) return std::nullopt;
  return number;
}

uint32_t WholeCpus(const ResourceShare& share) {
  return std::max(1u, static_cast<uint32_t>(std::ceil(*share.cpus - kRounding)));
}

// A number from `least` to 4096, or what auto is.
absl::StatusOr<uint32_t> ParseSlots(const std::string& text, uint32_t least, uint32_t automatic) {
  if (text == "auto") return automatic;
  uint32_t slots = 0;
  if (absl::SimpleAtoi(text, &slots) && slots >= least && slots <= kMostSlots) return slots;
  return absl::InvalidArgumentError(
      absl::StrCat("--slots: got ", Quoted(text), ", want auto or a number from ", least, " to 4096"));
}

// So many shares fit into an amount.
uint32_t Fitting(double share, double amount) {
  return static_cast<uint32_t>(std::clamp(std::floor(amount / share + kRounding), 0.0, kMostSlots));
}

// So many shares of `share` have `gpus` GPUs: none spans two of them unless it is of whole ones.
uint32_t FittingGpus(double share, double gpus) {
  return share < 1 ? Fitting(share, 1) * Fitting(1, gpus) : Fitting(share, gpus);
}

}  // namespace

absl::StatusOr<Places> FindPlaces(const std::string& slots, const std::string& launcher, const ResourceShare& share) {
  Places places;
  const bool slurm = launcher == "auto" && std::getenv("SLURM_JOB_ID") != nullptr;
  const uint32_t cores = Cores();
  const uint32_t task_cores = NumberIn("SLURM_CPUS_PER_TASK").value_or(1), tasks = NumberIn("SLURM_NTASKS").value_or(1);
  uint32_t automatic = cores;
  if (slurm) automatic = share.cpus ? std::max(1u, tasks * task_cores / WholeCpus(share)) : tasks;
  const auto parsed = ParseSlots(slots, 0, automatic);
  if (!parsed.ok()) return parsed.status();
  places.slots = *parsed;
  // Without a slot here those of workers are as with auto.
  places.cores = slurm ? task_cores : places.slots == 0 ? 1 : std::max(1u, cores / places.slots);
  if (share.cpus) places.cores = WholeCpus(share);
  if (slurm && std::getenv("SLURM_ARRAY_JOB_ID") != nullptr) places.array_job = std::getenv("SLURM_JOB_ID");
  if (slurm) {
    places.launcher = {"srun", "--exact", "--nodes=1", "--ntasks=1"};
    ResourceShare step = share;
    step.cpus = places.cores;
    for (const auto flag : absl::StrSplit(SlurmFlags(step), ' ')) places.launcher.emplace_back(flag);
  } else if (launcher != "auto" && launcher != "none") {
    places.launcher = absl::StrSplit(launcher, ' ', absl::SkipEmpty());
  }
  if (!slurm && !places.launcher.empty() && !share.empty()) {
    return absl::InvalidArgumentError(
        "resources: trainings behind --launcher cannot be held to a share; leave one of the two out");
  }
  if (!places.launcher.empty()) {
    // A launcher that outlived the sweep would keep its training's folder.
    const char* const ending[] = {"setpriv", "--pdeathsig", "TERM"};
    places.launcher.insert(places.launcher.begin(), std::begin(ending), std::end(ending));
  }
  return places;
}

absl::StatusOr<Places> PlacesOfWorker(const std::string& slots, uint32_t cores_per_slot) {
  const uint32_t cores = Cores();
  const auto parsed = ParseSlots(slots, 1, std::max(1u, cores / cores_per_slot));
  if (!parsed.ok()) return parsed.status();
  Places places;
  places.slots = *parsed;
  places.cores = cores_per_slot;
  return places;
}

absl::Status FitSlots(const NodeResources& asked, const NodeResources& here, bool automatic, Places* places) {
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
    const uint32_t together = Fitting(kind.asked, kind.here);
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

absl::Status FitShares(const ResourceShare& share, const NodeResources& asked, const NodeResources& left,
                       bool automatic, Places* places) {
  const auto too_much = [](const std::string& kind, double wanted, double has) {
    return absl::InvalidArgumentError(absl::StrCat("resources.", kind, ": each training has ", has,
                                                   ", and resources.actor.", kind, " and resources.learner.", kind,
                                                   " of its processes come to ", wanted));
  };
  const double asked_memory = static_cast<double>(asked.memory_bytes);
  if (share.cpus && asked.cpus > *share.cpus + kRounding) return too_much("cpus", asked.cpus, *share.cpus);
  if (share.gpus && asked.gpus > *share.gpus + kRounding) return too_much("gpus", asked.gpus, *share.gpus);
  if (share.memory_bytes && asked.memory_bytes > *share.memory_bytes) {
    return too_much("memory", asked_memory, static_cast<double>(*share.memory_bytes));
  }
  const double gpus = share.gpus.value_or(0);
  if (automatic) {
    uint32_t fit = share.cpus ? Fitting(*share.cpus, left.cpus) : places->slots;
    if (gpus > 0) fit = std::min(fit, FittingGpus(gpus, left.gpus));
    if (share.memory_bytes) {
      const auto memory = static_cast<double>(left.memory_bytes);
      fit = std::min(fit, Fitting(static_cast<double>(*share.memory_bytes), memory));
    }
    places->slots = std::max(1u, fit);
  }
  // More than all GPUs together is for NodeBooking to refuse: it knows who has them.
  const bool whole = gpus <= 0 || gpus * places->slots > left.gpus + kRounding;
  if (!whole && FittingGpus(gpus, left.gpus) < places->slots) {
    return absl::InvalidArgumentError(absl::StrCat("resources.gpus: ", places->slots, " slots with ", gpus,
                                                   " of a GPU each do not fit, since none can ",
                                                   "be on two GPUs; --slots ", FittingGpus(gpus, left.gpus), " fits"));
  }
  return absl::OkStatus();
}

void SpreadOverGpus(const ResourceShare& share, const std::vector<std::string>& gpus, Places* places) {
  const size_t each = static_cast<size_t>(std::max(1.0, share.gpus.value_or(1)));
  for (uint32_t slot = 0; slot < places->slots; ++slot) {
    std::vector<std::string> devices;
    for (size_t i = 0; i < each; ++i) devices.push_back(gpus[(slot * each + i) % gpus.size()]);
    places->gpus.push_back(absl::StrJoin(devices, ","));
  }
}

}  // namespace skein
