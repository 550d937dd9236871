// SPDX-License-Identifier: Apache-2.0
#include "sweep/journal.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "absl/strings/str_cat.h"
#include "base/process/system_error.h"

namespace skein {

absl::StatusOr<std::unique_ptr<Journal>> Journal::Open(const std::string& path, Fault fault) {
  const int fd = open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0644);
  if (fd < 0) return SystemError(errno, absl::StrCat("cannot open ", path));
  std::unique_ptr<Journal> journal(new Journal(path, fd, std::move(fault)));
  if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
    return absl::UnavailableError(
        absl::StrCat(path, " is in use by another skein sweep; stop it or give another --name"));
  }
  if (absl::Status status = journal->Load(); !status.ok()) return status;
  return journal;
}

Journal::~Journal() { close(fd_); }

absl::Status Journal::Load() {
  auto records = ReadNew();
  if (!records.ok()) return records.status();
  records_ = *std::move(records);
  // What a crash cut off.
  if (ftruncate(fd_, static_cast<off_t>(read_)) != 0) return SystemError(errno, absl::StrCat("cannot cut ", path_));
  return absl::OkStatus();
}

absl::StatusOr<std::vector<nlohmann::json>> Journal::ReadNew() {
  const off_t size = lseek(fd_, 0, SEEK_END);
  if (size < 0) return SystemError(errno, absl::StrCat("cannot read ", path_));
  if (static_cast<uint64_t>(size) < read_) {
    return absl::DataLossError(absl::StrCat(path_, ": another program has cut it; restore it from a copy"));
  }
  std::string text(static_cast<uint64_t>(size) - read_, '\0');
  size_t got = 0;
  while (got < text.size()) {
    const ssize_t part = pread(fd_, text.data() + got, text.size() - got, static_cast<off_t>(read_ + got));
    if (part < 0 && errno == EINTR) continue;
    if (part < 0) return SystemError(errno, absl::StrCat("cannot read ", path_));
    if (part == 0) break;
    got += static_cast<size_t>(part);
  }
  std::vector<nlohmann::json> records;
  absl::string_view left(text.data(), got);
  for (size_t end = left.find('\n'); end != absl::string_view::npos; end = left.find('\n')) {
    auto record = nlohmann::json::parse(left.begin(), left.begin() + end, nullptr, false);
    ++lines_;
    if (!record.is_object() || !record.contains("op_code") || !record["op_code"].is_number_integer()) {
      return absl::DataLossError(
          absl::StrCat(path_, ":", lines_, ": no record of a journal; restore it from a copy, or give another --name"));
    }
    records.push_back(std::move(record));
    read_ += end + 1;
    left.remove_prefix(end + 1);
  }
  return records;
}

absl::Status Journal::WriteLines(absl::string_view lines) {
  const off_t size = lseek(fd_, 0, SEEK_END);
  while (!lines.empty()) {
    const ssize_t written = write(fd_, lines.data(), lines.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) {
      const absl::Status error = SystemError(errno, absl::StrCat("cannot write ", path_));
      if (size < 0 || ftruncate(fd_, size) != 0) return error;  // The next Open() cuts the torn line.
      return error;
    }
    lines.remove_prefix(static_cast<size_t>(written));
  }
  if (fdatasync(fd_) != 0) return SystemError(errno, absl::StrCat("cannot write ", path_));
  return absl::OkStatus();
}

absl::StatusOr<std::vector<nlohmann::json>> Journal::Append(const std::vector<nlohmann::json>& records) {
  const std::optional<size_t> fails_after = fault_ ? fault_(records.size()) : std::nullopt;
  std::string lines;
  for (size_t i = 0; i < std::min(records.size(), fails_after.value_or(records.size())); ++i) {
    absl::StrAppend(&lines, records[i].dump(), "\n");
  }
  if (absl::Status status = WriteLines(lines); !status.ok()) return status;
  if (fails_after) return absl::ResourceExhaustedError(absl::StrCat("cannot write ", path_, ": a test's fault"));
  return ReadNew();
}

}  // namespace skein
