// SPDX-License-Identifier: Apache-2.0
#include "coordinator/saved_run.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/net/credentials.h"
#include "base/process/no_links.h"
#include "coordinator/etcd_store.h"
#include "coordinator/state_log.h"
#include "coordinator/state_records.h"
#include "spdlog/spdlog.h"

namespace skein {
namespace {

constexpr char kNone[] = "none";
constexpr absl::Duration kRetryPeriod = absl::Milliseconds(100);

absl::StatusOr<std::unique_ptr<StateLog>> OpenLog(const std::string& folder, absl::Duration patience) {
  for (absl::Duration waited; waited < patience; waited += kRetryPeriod) {
    auto log = StateLog::Open(folder);
    if (!absl::IsUnavailable(log.status())) return log;
    absl::SleepFor(kRetryPeriod);
  }
  return StateLog::Open(folder);
}

// Says in the log where the records are then, if there are any.
absl::Status SetAside(StateStore* store, const std::string& name) {
  const absl::StatusOr<std::string> place = store->SetAside(name);
  if (!place.ok()) return place.status();
  spdlog::info("what was kept here is in {} now", *place);
  return absl::OkStatus();
}

}  // namespace

absl::Status ValidateStore(const StoreOptions& options) {
  if (absl::StartsWith(options.url, "etcd:") || absl::StartsWith(options.url, "etcds:")) {
    const auto etcd = ParseEtcdAddress(options.url);
    if (!etcd.ok()) return absl::InvalidArgumentError(absl::StrCat("--store: ", etcd.status().message()));
    if (etcd->tls && !ProcessCredentials().has_tls()) {
      return absl::InvalidArgumentError("--store: etcds:// needs --tls-cert, --tls-key and --tls-ca");
    }
  } else if (options.standby) {
    return absl::InvalidArgumentError(
        "--standby: needs --store etcd://host:port/prefix, where the primary has its lease");
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<StateStore>> OpenStore(const StoreOptions& options) {
  if (options.url == kNone || (options.url.empty() && options.run_directory.empty())) return nullptr;
  if (!IsEtcdAddress(options.url)) {
    const std::string folder = options.url.empty() ? options.run_directory + "/coordinator" : options.url;
    if (absl::Status made = options.url.empty() ? MakeFolder(folder) : absl::OkStatus(); !made.ok()) return made;
    auto log = OpenLog(folder, options.patience);
    if (!log.ok()) return log.status();
    return *std::move(log);
  }
  EtcdStore::Options etcd;
  auto address = ParseEtcdAddress(options.url);
  if (!address.ok()) return address.status();
  etcd.etcd = *std::move(address);
  etcd.address = options.address;
  etcd.lease = std::max(options.lease, absl::Seconds(2));
  // Without --standby only its own predecessor is waited for.
  etcd.patience = options.standby ? absl::InfiniteDuration() : etcd.lease + absl::Seconds(5);
  etcd.cancel = options.cancel;
  etcd.on_wait = options.on_wait;
  etcd.on_lost = options.on_lost;
  auto store = EtcdStore::Acquire(std::move(etcd));
  if (!store.ok()) return store.status();
  return *std::move(store);
}

absl::Status TakeOver(StateStore* store, uint64_t now, CoordinatorState::Options* state) {
  std::optional<SavedState> saved;
  const auto loaded = store->Load();
  absl::Status damage = absl::IsDataLoss(loaded.status()) ? loaded.status() : absl::OkStatus();
  if (!loaded.ok() && damage.ok()) return loaded.status();
  if (loaded.ok()) {
    auto parsed = ParseRecords(*loaded);
    if (parsed.ok()) saved = *std::move(parsed);
    damage = parsed.status();
  }
  if (!damage.ok()) {
    spdlog::error("the coordinator's state is lost, members join again: {}", std::string(damage.message()));
    if (absl::Status s = SetAside(store, "damaged"); !s.ok()) return s;
  } else if (!saved && !state->new_session) {
    spdlog::info("starts without the state of an earlier coordinator, of which there is none here");
  } else if (!saved) {
    spdlog::info("coordinator of run {}", state->run_id);
  } else if (!state->run_id.empty() && saved->run.run_id() != state->run_id) {
    spdlog::warn("the state that is kept here is of run {}, this is run {}: starting with none", saved->run.run_id(),
                 state->run_id);
    if (absl::Status s = SetAside(store, "of_another_run"); !s.ok()) return s;
    // Use higher generations than that run's as well: it is unknown which clock was right.
    state->start_epoch = NextEpoch(now, saved->run.epoch());
    return absl::OkStatus();
  }
  state->start_epoch = NextEpoch(now, saved ? saved->run.epoch() : 0);
  if (!saved) return absl::OkStatus();
  if (state->run_id.empty()) state->run_id = saved->run.run_id();
  if (state->new_session) {
    saved->members.clear();
    saved->barriers.clear();
    saved->progress.reset();
    if (absl::Status s = SetAside(store, "session_before"); !s.ok()) return s;
  } else {
    if (saved->run.config_checksum() != ChecksumOf(state->config)) {
      spdlog::warn("the configuration is not the one that members of run {} were given", state->run_id);
    }
    spdlog::info("goes on as coordinator of run {}: {} members, {} env steps", state->run_id, saved->members.size(),
                 saved->progress ? saved->progress->progress().env_steps() : 0);
  }
  state->saved = std::move(saved);
  return absl::OkStatus();
}

}  // namespace skein
