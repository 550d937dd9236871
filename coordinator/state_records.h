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

// The records that a coordinator keeps, taken apart.
struct SavedState {
  store::RunRecord run;
  std::optional<store::ProgressRecord> progress;
  std::vector<store::MemberRecord> members;
  std::vector<store::BarrierRecord> barriers;
};

// nullopt: there are none. DataLoss: one of them cannot be read, or there is none of the run.
absl::StatusOr<std::optional<SavedState>> ParseRecords(const std::map<std::string, std::string>& records);

StateChange PutRun(const store::RunRecord& run);
StateChange PutProgress(const store::ProgressRecord& progress);
StateChange PutMember(const Member& member);
StateChange RemoveMember(const std::string& id);
StateChange PutBarrier(const store::BarrierRecord& barrier);
StateChange RemoveBarrier(v1::Role role, const std::string& name);

Member MemberOf(const store::MemberRecord& record, MonotonicTime last_heartbeat);

// Tells one resolved configuration from another. Never 0.
uint32_t ChecksumOf(const v1::RunConfig& config);

// An epoch (see CoordinatorState::Options) above all those of coordinators before: `now`, in milliseconds, unless the
// clock has been set back. REQUIRES: a coordinator makes less than 2^20 members.
uint64_t NextEpoch(uint64_t now, uint64_t before);

}  // namespace skein
