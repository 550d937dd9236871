// SPDX-License-Identifier: Apache-2.0
#include "learner/fit/fit_ranks.h"

#include <torch/types.h>
#include <torch/utils.h>

#include <atomic>
#include <cstdlib>
#include <thread>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "learner/ranks/training_device.h"

namespace skein {
namespace {

constexpr absl::Duration kBetweenLooks = absl::Milliseconds(100);
constexpr uint64_t kFirstSlurmPort = 20000, kSlurmPorts = 20000;

absl::StatusOr<uint64_t> ReadNumber(const EnvironmentLookup& lookup, const char* name, uint64_t most) {
  const std::optional<std::string> text = lookup(name);
  if (!text) return absl::InvalidArgumentError(absl::StrCat(name, " is not set"));
  uint64_t value = 0;
  if (!absl::SimpleAtoi(*text, &value) || value > most) {
    return absl::InvalidArgumentError(absl::StrCat(name, "=\"", *text, "\": want a number, ", most, " at most"));
  }
  return value;
}

std::optional<std::string> FromEnvironment(const std::string& name) {
  const char* const value = std::getenv(name.c_str());
  if (value == nullptr) return std::nullopt;
  return value;
}

}  // namespace

std::string FirstHostOf(const std::string& node_list) {
  const size_t open = node_list.find('['), comma = node_list.find(',');
  if (open == std::string::npos || comma < open) return node_list.substr(0, comma);
  const size_t end = node_list.find_first_of(",-]", open);
  if (end == std::string::npos) return "";
  return node_list.substr(0, open) + node_list.substr(open + 1, end - open - 1);
}

absl::StatusOr<MeetingPlace> FindMeetingPlace(const EnvironmentLookup& lookup) {
  constexpr uint64_t kLastPort = 65535;
  if (const auto host = lookup("MASTER_ADDR")) {
    const auto port = ReadNumber(lookup, "MASTER_PORT", kLastPort - 1);
    if (!port.ok()) return port.status();
    const bool taken = lookup("TORCHELASTIC_RUN_ID").has_value();
    return MeetingPlace{*host, static_cast<int>(*port) + (taken ? 1 : 0)};
  }
  for (const char* name : {"SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST"}) {
    const auto nodes = lookup(name);
    if (!nodes) continue;
    const std::string host = FirstHostOf(*nodes);
    if (host.empty()) return absl::InvalidArgumentError(absl::StrCat(name, "=\"", *nodes, "\": want names of nodes"));
    const auto job = ReadNumber(lookup, "SLURM_JOB_ID", UINT64_MAX);
    if (!job.ok()) return job.status();
    const uint64_t step = ReadNumber(lookup, "SLURM_STEP_ID", UINT64_MAX).value_or(0);
    return MeetingPlace{host, static_cast<int>(kFirstSlurmPort + (*job * 31 + step) % kSlurmPorts)};
  }
  return absl::InvalidArgumentError(
      "several ranks, and nothing says where to find rank 0: set MASTER_ADDR and MASTER_PORT, as torchrun does");
}

absl::StatusOr<FitRanks> JoinRanks(const std::string& device, absl::Duration timeout) {
  FitRanks ranks;
  const auto place = ReadRankEnvironment();
  if (!place.ok()) return place.status();
  ranks.place = *place;
  const auto torch_device = ParseTrainingDevice(device, place->local_rank, "train.device");
  if (!torch_device.ok()) return torch_device.status();
  if (place->size == 1) return ranks;
  const auto meeting = FindMeetingPlace(FromEnvironment);
  if (!meeting.ok()) return meeting.status();
  auto store = place->rank == 0 ? TcpStore::Serve(meeting->port, place->size, timeout, meeting->host)
                                : TcpStore::Find(meeting->host, meeting->port, place->size, timeout);
  if (!store.ok()) return store.status();
  Collective::Options options;
  options.rank = place->rank;
  options.size = place->size;
  options.device = *torch_device;
  options.timeout = timeout;
  auto collective = Collective::Connect(options, *std::move(store));
  if (!collective.ok()) return collective.status();
  ranks.collective = *std::move(collective);
  return ranks;
}

absl::Status InTurn(const FitRanks& ranks, const std::function<absl::Status()>& work) {
  if (ranks.collective == nullptr) return work();
  enum State : int64_t { kWaiting, kDone, kFailed };
  const int turn = ranks.place.rank == 0 ? 0 : ranks.place.local_rank == 0 ? 1 : 2;
  std::atomic<int64_t> state{kWaiting};
  absl::Status status;
  std::thread worker;
  absl::Status met;
  for (int now = 0;;) {
    if (now == turn && !worker.joinable()) {
      worker = std::thread([&] {
        status = work();
        state = status.ok() ? kDone : kFailed;
      });
    }
    const auto all = ranks.collective->Gather(torch::tensor({static_cast<int64_t>(turn), state.load()}, torch::kInt64));
    if (!all.ok()) {
      met = all.status();
      break;
    }
    bool turn_is_over = true, all_are_done = true;
    for (int64_t rank = 0; rank < ranks.place.size; ++rank) {
      const auto its_turn = (*all)[rank][0].item<int64_t>(), its_state = (*all)[rank][1].item<int64_t>();
      if (its_state == kFailed && met.ok()) {
        met = absl::AbortedError(absl::StrCat("rank ", rank, " could not prepare its data; its own message says why"));
      }
      if (its_state != kDone) all_are_done = false;
      if (its_turn <= now && its_state != kDone) turn_is_over = false;
    }
    if (!met.ok() || all_are_done) break;
    if (turn_is_over) {
      ++now;
    } else {
      absl::SleepFor(kBetweenLooks);
    }
  }
  if (worker.joinable()) worker.join();
  return status.ok() ? met : status;
}

}  // namespace skein
