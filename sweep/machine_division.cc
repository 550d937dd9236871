// SPDX-License-Identifier: Apache-2.0
#include "sweep/machine_division.h"

#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "launch/share_text.h"
#include "launch/visible_gpus.h"

namespace skein {
namespace {

absl::StatusOr<std::unique_ptr<NodeBooking>> Book(const std::string& sweep, const ResourceShare& share, uint32_t slots,
                                                  const std::string& folder, const NodeResources& here) {
  const ResourceShare all = Times(share, slots);
  auto booking = NodeBooking::Take(folder,
                                   {sweep,
                                    {all.cpus.value_or(0), all.gpus.value_or(0), all.memory_bytes.value_or(0)},
                                    absl::StrCat("the trainings of ", slots, slots == 1 ? " slot" : " slots"),
                                    {"resources"},
                                    "or for fewer --slots"},
                                   here);
  // Also what others have only for now is refused: nothing has started yet.
  if (absl::IsUnavailable(booking.status())) return absl::InvalidArgumentError(booking.status().message());
  return booking;
}

}  // namespace

absl::StatusOr<std::unique_ptr<NodeBooking>> DivideMachine(const std::string& sweep, const ResourceShare& share,
                                                           const NodeResources& asked, const std::string& device,
                                                           bool automatic, Places* places) {
  const std::vector<std::string> gpus = VisibleGpus();
  const NodeResources here = WhatIsHere(static_cast<uint32_t>(gpus.size()));
  std::unique_ptr<NodeBooking> booking;
  if (share.empty()) {
    if (absl::Status s = FitSlots(asked, here, automatic, places); !s.ok()) return s;
  } else {
    const std::string folder = BookingFolder();
    const NodeResources left = NodeBooking::Left(folder, here);
    if (absl::Status s = FitShares(share, asked, left, automatic, places); !s.ok()) return s;
    auto taken = Book(sweep, share, places->slots, folder, here);
    if (!taken.ok()) return taken.status();
    booking = *std::move(taken);
  }
  const bool named = absl::StartsWith(device, "cuda:");
  if (named && share.gpus.value_or(0) > 0) {
    return absl::InvalidArgumentError(absl::StrCat("resources.gpus: learner.device (--device) is ", device,
                                                   ", and with a share the sweep chooses the GPU; say cuda"));
  }
  if (gpus.size() > 1 && share.gpus != 0 && device != "cpu" && !named) SpreadOverGpus(share, gpus, places);
  return booking;
}

std::string DescribeSlots(const Places& places, const ResourceShare& share) {
  const double cores = share.cpus.value_or(places.cores);
  std::string text = absl::StrCat(places.slots, places.slots == 1 ? " slot of " : " slots of ", cores,
                                  cores == 1 ? " core" : " cores");
  if (share.memory_bytes) absl::StrAppend(&text, ", ", MemoryText(*share.memory_bytes));
  if (share.gpus) absl::StrAppend(&text, ", ", *share.gpus, *share.gpus == 1 ? " GPU" : " GPUs");
  if (!places.array_job.empty()) absl::StrAppend(&text, " in each job of the array");
  return text;
}

}  // namespace skein
