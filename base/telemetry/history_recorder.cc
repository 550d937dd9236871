// SPDX-License-Identifier: Apache-2.0
#include "base/telemetry/history_recorder.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/process/clock.h"
#include "nlohmann/json.hpp"
#include "spdlog/spdlog.h"

namespace skein {
namespace {

// -1: off.
int OpenHistory() {
  const char* const folder = std::getenv("SKEIN_HISTORY");
  if (folder == nullptr || *folder == '\0') return -1;
  const std::string path = absl::StrCat(folder, "/", getpid(), ".jsonl");
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (fd < 0) spdlog::warn("SKEIN_HISTORY: {} cannot be written; there will be no record", path);
  return fd;
}

int HistoryFile() {
  static const int fd = OpenHistory();
  return fd;
}

}  // namespace

bool HistoryIsOn() { return HistoryFile() >= 0; }

void RecordHistory(const char* event, std::initializer_list<std::pair<const char*, HistoryValue>> fields) {
  if (!HistoryIsOn()) return;
  nlohmann::ordered_json line = {
      {"t", absl::ToDoubleSeconds(MonotonicNow())}, {"pid", static_cast<uint64_t>(getpid())}, {"event", event}};
  for (const auto& [name, value] : fields) {
    if (const auto* number = std::get_if<uint64_t>(&value)) {
      line[name] = *number;
    } else {
      line[name] = std::get<std::string>(value);
    }
  }
  const std::string text = line.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
  [[maybe_unused]] const ssize_t written = write(HistoryFile(), text.data(), text.size());
}

}  // namespace skein
