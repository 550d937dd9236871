// SPDX-License-Identifier: Apache-2.0
#include "coordinator/log_tail.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/time/time.h"
#include "base/process/system_error.h"
#include "base/telemetry/printable.h"
#include "nlohmann/json.hpp"
#include "spdlog/spdlog.h"

namespace skein {
namespace {

constexpr const char* kFields[] = {"time", "level", "program", "message"};

// The last `most` bytes of a file, from the beginning of a line on.
absl::StatusOr<std::string> ReadEnd(const std::string& path, size_t most) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (file < 0) return absl::UnavailableError(SystemError(errno, path).message());
  const absl::Cleanup close_file = [file] { close(file); };
  struct stat info = {};
  if (fstat(file, &info) != 0 || !S_ISREG(info.st_mode)) {
    return absl::UnavailableError(absl::StrCat(path, ": is no regular file"));
  }
  const off_t start = std::max<off_t>(0, info.st_size - static_cast<off_t>(most));
  std::string text(static_cast<size_t>(info.st_size - start), '\0');
  size_t size = 0;
  while (size < text.size()) {
    const ssize_t got = pread(file, text.data() + size, text.size() - size, start + static_cast<off_t>(size));
    if (got <= 0) break;
    size += static_cast<size_t>(got);
  }
  text.resize(size);
  if (start > 0) text.erase(0, text.find('\n') == std::string::npos ? text.size() : text.find('\n') + 1);
  return text;
}

}  // namespace

LogTail::LogTail(std::string path, std::string secret) : path_(std::move(path)), secret_(std::move(secret)) {
  if (!path_.empty()) return;
  own_ = std::make_shared<spdlog::sinks::ringbuffer_sink_mt>(kMostLines);
  spdlog::default_logger()->sinks().push_back(own_);
}

absl::StatusOr<std::string> LogTail::Json() const {
  std::vector<nlohmann::json> lines;
  if (own_ != nullptr) {
    for (const spdlog::details::log_msg_buffer& line : own_->last_raw()) {
      const auto text = [](spdlog::string_view_t view) { return std::string(view.data(), view.size()); };
      lines.push_back(
          {{"time", absl::FormatTime("%Y-%m-%dT%H:%M:%E3SZ", absl::FromChrono(line.time), absl::UTCTimeZone())},
           {"level", text(spdlog::level::to_string_view(line.level))},
           {"program", text(line.logger_name)},
           {"message", text(line.payload)}});
    }
  } else {
    const absl::StatusOr<std::string> text = ReadEnd(path_, kMostFileBytes);
    if (!text.ok()) return text.status();
    const std::vector<absl::string_view> all = absl::StrSplit(*text, '\n', absl::SkipEmpty());
    for (auto line = all.rbegin(); line != all.rend() && lines.size() < kMostLines; ++line) {
      nlohmann::json parsed = nlohmann::json::parse(line->begin(), line->end(), nullptr, /*allow_exceptions=*/false);
      const bool usable =
          parsed.is_object() && std::all_of(std::begin(kFields), std::end(kFields), [&](const char* field) {
            return parsed.contains(field) && parsed[field].is_string();
          });
      if (usable) lines.push_back(std::move(parsed));
    }
    std::reverse(lines.begin(), lines.end());
  }
  nlohmann::json answer = nlohmann::json::array();
  for (const nlohmann::json& line : lines) {
    nlohmann::json& shown = answer.emplace_back();
    for (const char* field : kFields) {
      std::string text = line[field].get<std::string>();
      if (!secret_.empty()) text = absl::StrReplaceAll(text, {{secret_, "[token]"}});
      if (text.size() > kMostMessageBytes) text = absl::StrCat(text.substr(0, kMostMessageBytes), " ...");
      shown[field] = Printable(std::move(text));
    }
  }
  return answer.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

}  // namespace skein
