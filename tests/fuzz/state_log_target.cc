// SPDX-License-Identifier: Apache-2.0
#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "base/telemetry/event_file.h"
#include "coordinator/history.h"
#include "coordinator/state_log.h"
#include "coordinator/state_records.h"
#include "tests/fuzz/scratch.h"
#include "tests/fuzz/targets.h"

namespace skein::fuzz {
namespace {

std::string Number(uint32_t value) {
  std::string bytes;
  for (int i = 0; i < 4; ++i) bytes.push_back(static_cast<char>(value >> (8 * i)));
  return bytes;
}

}  // namespace

bool FuzzStateLog(absl::string_view input) {
  static const Scratch folder("state-log");
  static StateLog* const log = StateLog::Open(folder.path()).value().release();
  if (input.empty()) return false;
  const std::string rest(input.substr(1));
  std::string text = rest;
  if (input[0] & 1) {
    const std::string size = Number(static_cast<uint32_t>(rest.size()));
    text = absl::StrCat("skein coordinator log 1\n", size, Number(Crc32c(size)), Number(Crc32c(rest)), rest);
  }
  std::ofstream(folder.path() + "/log", std::ios::binary) << text;
  const auto records = log->Load();
  Check(records.ok() || absl::IsDataLoss(records.status()), "a bad log is DataLoss");
  if (!records.ok()) return false;
  const auto state = ParseRecords(*records);
  Check(state.ok() || absl::IsDataLoss(state.status()), "bad records are DataLoss");
  if (!state.ok() || !state->has_value()) return false;
  History history;
  history.Restore((*state)->history, 1.7e9, false);
  history.Add(v1::StatusResponse(), absl::ZeroDuration());
  Check(history.points().size() <= History::kMostPoints, "a history is bounded");
  HistoryJson(history, History::kMostPoints);
  return true;
}

}  // namespace skein::fuzz
