// SPDX-License-Identifier: Apache-2.0
#include "sweep/slot_worker.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "base/process/clock.h"
#include "base/process/shutdown.h"
#include "sweep/machine_division.h"
#include "sweep/places.h"
#include "sweep/slot_lender.h"
#include "sweep/slot_messages.h"

namespace skein {
namespace {

constexpr absl::Duration kTick = absl::Milliseconds(200);
constexpr absl::Duration kLookAtTerms = absl::Seconds(1);  // Whether the sweep is over.

// Of this process among all that lend slots.
std::string WorkerName() {
  char host[256] = "";
  if (gethostname(host, sizeof(host) - 1) != 0 || host[0] == '\0') return absl::StrCat("worker-", getpid());
  return absl::StrCat(host, "-", getpid());
}

// Waits for a sweep that is not over. Unavailable: there is none at all.
absl::StatusOr<SlotTerms> AwaitSweep(const SlotWorkerOptions& options, const absl::Notification& stop) {
  const absl::Duration give_up = MonotonicNow() + options.timeout;
  for (bool told = false;; told = true) {
    auto terms = ReadTerms(options.folder);
    if (terms.ok() && !terms->over) return terms;
    if (!terms.ok() && !absl::IsNotFound(terms.status())) return terms.status();
    if (MonotonicNow() >= give_up) {
      if (terms.ok()) return terms;
      return absl::UnavailableError(
          absl::StrCat(options.folder, ": no sweep has this folder; start it first: skein sweep --slots 0 ..."));
    }
    if (!told) std::cout << "waiting for the sweep in " << options.folder << std::endl;
    if (stop.WaitForNotificationWithTimeout(kTick)) return absl::CancelledError("stopped before the sweep began");
  }
}

void Say(SlotLender* lender) {
  for (const std::string& line : lender->TakeNews()) std::cout << line << std::endl;
}

// Until the sweep is over, or `stop`, or an error; then until all trainings have ended.
absl::Status Serve(const std::string& folder, const absl::Notification& stop, SlotLender* lender) {
  absl::Status status;
  absl::Duration next_look;
  bool over = false;
  while (status.ok() && !over && !stop.WaitForNotificationWithTimeout(kTick)) {
    status = lender->Step();
    Say(lender);
    if (const absl::Duration now = MonotonicNow(); now >= next_look) {
      const auto terms = ReadTerms(folder);
      over = terms.ok() && terms->over;
      next_look = now + kLookAtTerms;
    }
  }
  if (stop.HasBeenNotified()) std::cout << "leaving: each training writes a checkpoint" << std::endl;
  if (over) std::cout << "the sweep has ended" << std::endl;
  lender->Leave();
  while (true) {
    status.Update(lender->Step());
    Say(lender);
    if (lender->busy() == 0) return status;
    absl::SleepFor(kTick);
  }
}

}  // namespace

absl::Status RunSlotWorker(const SlotWorkerOptions& options) {
  absl::Notification stop;
  ShutdownSignal shutdown;
  shutdown.OnSignal([&stop] { stop.Notify(); });
  // A folder's last component is the sweep's name, also of "runs/mine/".
  std::string folder = std::filesystem::path(options.folder).lexically_normal().string();
  while (folder.size() > 1 && folder.back() == '/') folder.pop_back();
  SlotWorkerOptions here = options;
  here.folder = folder;
  const auto terms = AwaitSweep(here, stop);
  if (absl::IsCancelled(terms.status())) return absl::OkStatus();
  if (!terms.ok()) return terms.status();
  if (terms->over) {
    std::cout << "the sweep in " << folder << " has ended" << std::endl;
    return absl::OkStatus();
  }
  auto places = PlacesOfWorker(options.slots, terms->cores);
  if (!places.ok()) return places.status();
  const std::string name = std::filesystem::path(folder).filename().string();
  const auto booking =
      DivideMachine(name, terms->share, terms->asked, terms->device, options.slots == "auto", &*places);
  if (!booking.ok()) return booking.status();
  auto lender = SlotLender::Lend({.folder = folder,
                                  .program_folder = options.program_folder,
                                  .name = WorkerName(),
                                  .slots = places->slots,
                                  .gpus = places->gpus,
                                  .share = terms->share});
  if (!lender.ok()) return lender.status();
  std::cout << "lending " << DescribeSlots(*places, terms->share) << " to the sweep in " << folder << std::endl;
  return Serve(folder, stop, lender->get());
}

}  // namespace skein
