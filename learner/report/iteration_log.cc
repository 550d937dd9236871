// SPDX-License-Identifier: Apache-2.0
#include "learner/report/iteration_log.h"

#include <unistd.h>

#include <cerrno>
#include <map>
#include <optional>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/process/file.h"
#include "base/process/no_links.h"
#include "base/process/system_error.h"
#include "nlohmann/json.hpp"

namespace skein {
namespace {

constexpr size_t kMaxPendingBytes = size_t{64} << 20;

// nullopt: not a complete record.
std::optional<uint64_t> IterationOf(absl::string_view line) {
  const auto json = nlohmann::json::parse(line.begin(), line.end(), nullptr, false);
  if (!json.is_object()) return std::nullopt;
  const auto found = json.find("iteration");
  if (found == json.end() || !found->is_number_unsigned()) return std::nullopt;
  return found->get<uint64_t>();
}

// Complete lines by their iteration, each with its line end; of several of one iteration the last.
std::map<uint64_t, absl::string_view> LinesUpTo(absl::string_view text, uint64_t iteration) {
  std::map<uint64_t, absl::string_view> lines;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    if (end == absl::string_view::npos) break;  // Cut off.
    const auto number = IterationOf(text.substr(0, end));
    if (number && *number <= iteration) lines[*number] = text.substr(0, end + 1);
    text.remove_prefix(end + 1);
  }
  return lines;
}

}  // namespace

absl::StatusOr<std::unique_ptr<IterationLog>> IterationLog::Open(const std::string& path) {
  const auto fd = OpenForAppend(path);
  if (!fd.ok()) return fd.status();
  return std::unique_ptr<IterationLog>(new IterationLog(path, *fd));
}

IterationLog::~IterationLog() {
  WritePending().IgnoreError();
  close(fd_);
}

absl::StatusOr<uint64_t> IterationLog::KeepUpTo(uint64_t iteration) {
  const auto text = ReadFile(path_);
  if (!text.ok()) return text.status();
  const std::string all = absl::StrCat(*text, torn_ ? "\n" : "", pending_);
  const auto before = LinesUpTo(all, iteration);
  std::string kept;
  kept.reserve(text->size());
  for (const auto& [number, line] : before) absl::StrAppend(&kept, line);
  const uint64_t last = before.empty() ? 0 : before.rbegin()->first;
  if (kept == *text) {
    pending_.clear();  // Lines of later iterations, or copies of those that are there.
    return last;
  }
  if (absl::StartsWith(*text, kept)) {
    if (ftruncate(fd_, static_cast<off_t>(kept.size())) != 0) {
      return SystemError(errno, absl::StrCat("cannot cut ", path_));
    }
  } else {
    if (absl::Status s = WriteFileAtomically(path_, kept); !s.ok()) return s;
    const auto fd = OpenForAppend(path_);
    if (!fd.ok()) return fd.status();
    close(std::exchange(fd_, *fd));
  }
  pending_.clear();
  torn_ = false;
  return last;
}

absl::Status IterationLog::Append(absl::string_view line) {
  if (pending_.size() + line.size() < kMaxPendingBytes) absl::StrAppend(&pending_, line, "\n");
  return WritePending();
}

absl::Status IterationLog::Sync() {
  if (absl::Status s = WritePending(); !s.ok()) return s;
  if (fdatasync(fd_) != 0) return SystemError(errno, absl::StrCat("cannot write ", path_));
  return absl::OkStatus();
}

absl::Status IterationLog::WritePending() {
  if (pending_.empty()) return absl::OkStatus();
  const off_t size = lseek(fd_, 0, SEEK_END);
  // A line end of its own ends a record that is cut off.
  const std::string lines = torn_ ? "\n" + pending_ : pending_;
  absl::string_view left = lines;
  while (!left.empty()) {
    const ssize_t written = write(fd_, left.data(), left.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) {
      const absl::Status error = SystemError(errno, absl::StrCat("cannot write ", path_));
      if (left.size() < lines.size()) torn_ = size < 0 || ftruncate(fd_, size) != 0 || torn_;
      return error;
    }
    left.remove_prefix(static_cast<size_t>(written));
  }
  pending_.clear();
  torn_ = false;
  return absl::OkStatus();
}

}  // namespace skein
