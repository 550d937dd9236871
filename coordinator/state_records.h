// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "coordinator/membership.h"
#include "coordinator/state_store.h"
#include "skein/v1/config.pb.h"
#include "store/record.pb.h"

namespace skein {

// The records that a coordinator keeps in its StateStore, parsed.
struct SavedState {
  store::RunRecord run;
  std::optional<store::ProgressRecord> progress;
  std::vector<store::MemberRecord> members;
  std::vector<store::BarrierRecord> barriers;
  std::vector<store::HistoryRecord> history;  // In the order of their keys.
};

// nullopt: `records` is empty. DataLoss: a record cannot be parsed, or the record of the run is missing.
absl::StatusOr<std::optional<SavedState>> ParseRecords(const std::map<std::string, std::string>& records);

StateChange PutRun(const store::RunRecord& run);
StateChange PutProgress(const store::ProgressRecord& progress);
StateChange PutMember(const Member& member);
StateChange RemoveMember(const std::string& id);
StateChange PutBarrier(const store::BarrierRecord& barrier);
StateChange RemoveBarrier(v1::Role role, const std::string& name);
StateChange PutHistory(size_t number, const store::HistoryRecord& history);
StateChange RemoveHistory(size_t number);

Member MemberOf(const store::MemberRecord& record, MonotonicTime last_heartbeat);

// A checksum that distinguishes resolved configurations. Never 0.
uint32_t ChecksumOf(const v1::RunConfig& config);

// A start epoch (see CoordinatorState::Options) above those of all earlier coordinators: `now`, in milliseconds, unless
// the clock has been set back. REQUIRES: a coordinator admits fewer than 2^20 members.
uint64_t NextEpoch(uint64_t now, uint64_t before);

}  // namespace skein
