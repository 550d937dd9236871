// SPDX-License-Identifier: Apache-2.0
#include "coordinator/state_records.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/telemetry/event_file.h"
#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"

namespace skein {
namespace {

constexpr char kRun[] = "run";
constexpr char kProgress[] = "progress";
constexpr char kMember[] = "member/";
constexpr char kBarrier[] = "barrier/";
constexpr char kHistory[] = "history/";
constexpr uint64_t kEpochsApart = 1 << 10;  // Each has 1 << 10 generations of its own.

template <typename Record>
absl::Status Parse(const std::string& key, const std::string& value, Record* record) {
  if (record->ParseFromString(value)) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat("record ", key, " cannot be read"));
}

}  // namespace

absl::StatusOr<std::optional<SavedState>> ParseRecords(const std::map<std::string, std::string>& records) {
  if (records.empty()) return std::nullopt;
  SavedState state;
  bool has_run = false;
  for (const auto& [key, value] : records) {
    absl::Status status;
    if (key == kRun) {
      status = Parse(key, value, &state.run);
      has_run = true;
    } else if (key == kProgress) {
      status = Parse(key, value, &state.progress.emplace());
    } else if (absl::StartsWith(key, kMember)) {
      status = Parse(key, value, &state.members.emplace_back());
    } else if (absl::StartsWith(key, kBarrier)) {
      status = Parse(key, value, &state.barriers.emplace_back());
    } else if (absl::StartsWith(key, kHistory)) {
      status = Parse(key, value, &state.history.emplace_back());
    }
    if (!status.ok()) return status;
  }
  if (!has_run) return absl::DataLossError("there is no record of the run");
  return std::make_optional(std::move(state));
}

StateChange PutRun(const store::RunRecord& run) { return {kRun, run.SerializeAsString()}; }

StateChange PutProgress(const store::ProgressRecord& progress) {
  return {kProgress, progress.SerializeAsString(), false};
}

StateChange PutMember(const Member& member) {
  store::MemberRecord record;
  record.set_id(member.id);
  record.set_generation(member.generation);
  record.set_role(member.role);
  record.set_rank(member.rank);
  record.set_ranks(member.ranks);
  record.set_runners(member.runners);
  record.set_host(member.host);
  record.set_pid(member.pid);
  record.set_data_address(member.data_address);
  record.set_metrics_address(member.metrics_address);
  record.set_draining(member.draining);
  record.set_certificate(member.certificate);
  if (member.last_learner) record.set_last_learner(*member.last_learner);
  if (member.learner) record.set_learner(*member.learner);
  return {kMember + member.id, record.SerializeAsString()};
}

StateChange RemoveMember(const std::string& id) { return {kMember + id, std::nullopt}; }

namespace {

std::string BarrierKey(v1::Role role, const std::string& name) {
  return absl::StrCat(kBarrier, static_cast<int>(role), "/", name);
}

std::string HistoryKey(size_t number) { return absl::StrFormat("%s%03d", kHistory, number); }

}  // namespace

StateChange PutBarrier(const store::BarrierRecord& barrier) {
  return {BarrierKey(barrier.role(), barrier.name()), barrier.SerializeAsString(), false};
}

StateChange RemoveBarrier(v1::Role role, const std::string& name) {
  return {BarrierKey(role, name), std::nullopt, false};
}

StateChange PutHistory(size_t number, const store::HistoryRecord& history) {
  return {HistoryKey(number), history.SerializeAsString(), false};
}

StateChange RemoveHistory(size_t number) { return {HistoryKey(number), std::nullopt, false}; }

Member MemberOf(const store::MemberRecord& record, MonotonicTime last_heartbeat) {
  Member member;
  member.id = record.id();
  member.generation = record.generation();
  member.role = record.role();
  member.rank = record.rank();
  member.ranks = record.ranks();
  member.runners = record.runners();
  member.host = record.host();
  member.pid = record.pid();
  member.data_address = record.data_address();
  member.metrics_address = record.metrics_address();
  member.draining = record.draining();
  member.certificate = record.certificate();
  if (record.has_last_learner()) member.last_learner = record.last_learner();
  if (record.has_learner()) member.learner = record.learner();
  member.last_heartbeat = last_heartbeat;
  return member;
}

uint32_t ChecksumOf(const v1::RunConfig& config) {
  std::string bytes;
  {
    google::protobuf::io::StringOutputStream stream(&bytes);
    google::protobuf::io::CodedOutputStream coded(&stream);
    coded.SetSerializationDeterministic(true);
    config.SerializeToCodedStream(&coded);
  }
  return std::max(Crc32c(bytes), 1u);
}

uint64_t NextEpoch(uint64_t now, uint64_t before) { return std::max(now, before == 0 ? 0 : before + kEpochsApart); }

}  // namespace skein
