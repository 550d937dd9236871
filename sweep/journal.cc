// SPDX-License-Identifier: Apache-2.0
#include "sweep/journal.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/process/file.h"
#include "base/process/system_error.h"

namespace skein {

absl::StatusOr<std::unique_ptr<Journal>> Journal::Open(const std::string& path) {
  const int fd = open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0644);
  if (fd < 0) return SystemError(errno, absl::StrCat("cannot open ", path));
  std::unique_ptr<Journal> journal(new Journal(path, fd));
  if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
    return absl::UnavailableError(
        absl::StrCat(path, " is in use by another skein sweep; stop it or give another --name"));
  }
  if (absl::Status status = journal->Load(); !status.ok()) return status;
  return journal;
}

Journal::~Journal() { close(fd_); }

absl::Status Journal::Load() {
  const auto text = ReadFile(path_);
  if (!text.ok()) return text.status();
  absl::string_view left = *text;
  for (size_t number = 1; !left.empty(); ++number) {
    const size_t end = left.find('\n');
    if (end == absl::string_view::npos) break;  // Cut off.
    auto record = nlohmann::json::parse(left.begin(), left.begin() + end, nullptr, false);
    if (!record.is_object() || !record.contains("op_code") || !record["op_code"].is_number_integer()) {
      return absl::DataLossError(absl::StrCat(
          path_, ":", number, ": no record of a journal; restore it from a copy, or ", "give another --name"));
    }
    records_.push_back(std::move(record));
    left.remove_prefix(end + 1);
  }
  if (left.empty()) return absl::OkStatus();
  if (ftruncate(fd_, static_cast<off_t>(text->size() - left.size())) != 0) {
    return SystemError(errno, absl::StrCat("cannot cut ", path_));
  }
  return absl::OkStatus();
}

absl::Status Journal::Append(const std::vector<nlohmann::json>& records) {
  std::string lines;
  for (const nlohmann::json& record : records) absl::StrAppend(&lines, record.dump(), "\n");
  const off_t size = lseek(fd_, 0, SEEK_END);
  absl::string_view left = lines;
  while (!left.empty()) {
    const ssize_t written = write(fd_, left.data(), left.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) {
      const absl::Status error = SystemError(errno, absl::StrCat("cannot write ", path_));
      if (size < 0 || ftruncate(fd_, size) != 0) return error;  // The next Open() cuts the torn line.
      return error;
    }
    left.remove_prefix(static_cast<size_t>(written));
  }
  if (fdatasync(fd_) != 0) return SystemError(errno, absl::StrCat("cannot write ", path_));
  return absl::OkStatus();
}

}  // namespace skein
