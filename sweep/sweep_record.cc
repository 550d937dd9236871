// SPDX-License-Identifier: Apache-2.0
#include "sweep/sweep_record.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"

namespace skein {
namespace {

constexpr char kIdentity[] = "skein:identity";

// The part of a line up to its first colon: what it is about.
absl::string_view SubjectOf(absl::string_view line) { return line.substr(0, line.find(':')); }

bool Has(const std::vector<std::string>& lines, const std::string& line) {
  return std::find(lines.begin(), lines.end(), line) != lines.end();
}

// The first line that only one of them has, and the other's about the same.
std::string FirstDifference(const std::string& before, const std::string& now) {
  const std::vector<std::string> old_lines = absl::StrSplit(before, '\n'), new_lines = absl::StrSplit(now, '\n');
  for (const std::string& gone : old_lines) {
    if (Has(new_lines, gone)) continue;
    for (const std::string& added : new_lines) {
      if (Has(old_lines, added) || SubjectOf(added) != SubjectOf(gone)) continue;
      return absl::StrCat("it has ", gone, ", this sweep ", added);
    }
    return absl::StrCat("it has ", gone, ", this sweep has not");
  }
  for (const std::string& added : new_lines) {
    if (!Has(old_lines, added)) return absl::StrCat("this sweep has ", added, ", it has not");
  }
  return "its parameters or constraints have another order";
}

}  // namespace

absl::StatusOr<std::unique_ptr<SweepRecord>> SweepRecord::Open(const std::string& path, const SweepFile& file,
                                                               const std::string& identity, Journal::Fault fault) {
  std::unique_ptr<SweepRecord> record(new SweepRecord(&file.space, file.config.goal() == v1::SWEEP_GOAL_MINIMIZE));
  auto journal = Journal::Open(path, std::move(fault));
  if (!journal.ok()) return journal.status();
  record->journal_ = *std::move(journal);
  const std::vector<nlohmann::json> records = record->journal_->TakeRecords();
  // Before the trials: those of another space cannot be read.
  bool others = false;
  for (size_t i = 0; i < records.size(); ++i) {
    const nlohmann::json& one = records[i];
    others = others || !Study::IsOwn(one);
    const auto attributes = one.find("user_attr");
    if (one["op_code"] != 2 || attributes == one.end() || !attributes->contains(kIdentity)) continue;
    const std::string before = (*attributes)[kIdentity].is_string() ? (*attributes)[kIdentity] : "";
    if (before != identity) {
      return absl::FailedPreconditionError(
          absl::StrCat(path, ":", i + 1, ": the journal of another sweep: ", FirstDifference(before, identity),
                       "; give another --name, or start over with --resume never"));
    }
    break;
  }
  for (const nlohmann::json& one : records) {
    if (absl::Status status = record->Apply(one); !status.ok()) return status;
  }
  if (record->search_.attributes().count(kIdentity) > 0) return record;
  if (others || record->trials_ > 0 || record->studies_ > 2) {
    return absl::FailedPreconditionError(
        absl::StrCat(path, " is a journal that skein sweep has not made; give another --name"));
  }
  // A sweep that was killed here may have written the first of them.
  std::vector<nlohmann::json> begin;
  if (record->studies_ < 1) begin.push_back(record->search_.CreateStudy(file.config.name()));
  if (record->studies_ < 2) begin.push_back(record->test_.CreateStudy(file.config.name() + "-test"));
  begin.push_back(record->search_.SetAttribute(kIdentity, identity));
  begin.push_back(record->search_.SetAttribute("metric", file.config.metric()));
  if (absl::Status status = record->Write(begin); !status.ok()) return status;
  return record;
}

absl::Status SweepRecord::Write(const std::vector<nlohmann::json>& records) {
  const auto added = journal_->Append(records);
  if (!added.ok()) return added.status();
  for (const nlohmann::json& one : *added) {
    if (absl::Status status = Apply(one); !status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status SweepRecord::Apply(const nlohmann::json& record) {
  const int operation = record["op_code"];
  if (operation == 0) ++studies_;
  const auto id = record.find("study_id");
  const bool has_id = id != record.end() && id->is_number_integer();
  Study* study = nullptr;
  if (has_id && *id == 0) study = &search_;
  if (has_id && *id == 1) study = &test_;
  if (const auto trial = record.find("trial_id"); trial != record.end() && trial->is_number_unsigned()) {
    study = search_.HasTrialId(*trial) ? &search_ : test_.HasTrialId(*trial) ? &test_ : nullptr;
  }
  const uint32_t trial_id = trials_;
  if (operation == 4) ++trials_;
  return study == nullptr || !Study::IsOwn(record) ? absl::OkStatus() : study->Apply(record, trial_id);
}

}  // namespace skein
