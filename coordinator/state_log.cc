// SPDX-License-Identifier: Apache-2.0
#include "coordinator/state_log.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/process/file.h"
#include "base/process/system_error.h"
#include "base/telemetry/event_file.h"
#include "spdlog/spdlog.h"
#include "store/record.pb.h"

namespace skein {
namespace {

// An entry is its size, the checksum of the size, the checksum of its bytes (4 bytes each, little-endian), its bytes.
constexpr size_t kHeaderBytes = 12;
constexpr char kMagic[] = "skein coordinator log 1\n";
constexpr uint64_t kCompactRatio = 4;

void AppendNumber(uint32_t value, std::string* to) {
  for (int i = 0; i < 4; ++i) to->push_back(static_cast<char>(value >> (8 * i)));
}

uint32_t NumberAt(absl::string_view bytes, size_t at) {
  uint32_t value = 0;
  for (size_t i = 0; i < 4; ++i) value |= static_cast<uint32_t>(static_cast<uint8_t>(bytes[at + i])) << (8 * i);
  return value;
}

std::string Framed(const store::LogEntry& entry) {
  const std::string bytes = entry.SerializeAsString();
  std::string framed;
  AppendNumber(static_cast<uint32_t>(bytes.size()), &framed);
  AppendNumber(Crc32c(framed), &framed);
  AppendNumber(Crc32c(bytes), &framed);
  return framed + bytes;
}

void Apply(const store::LogEntry& entry, std::map<std::string, std::string>* records) {
  for (const store::Change& change : entry.changes()) {
    if (change.removed()) {
      records->erase(change.key());
    } else {
      (*records)[change.key()] = change.value();
    }
  }
}

uint64_t BytesOf(const std::map<std::string, std::string>& records) {
  uint64_t bytes = 0;
  for (const auto& [key, value] : records) bytes += key.size() + value.size() + kHeaderBytes;
  return bytes;
}

// Applies entries from `text` up to its end or to the first incomplete entry; returns that position. `tail` describes
// what follows it, "" if nothing does. DataLoss: an entry is damaged.
absl::StatusOr<size_t> Replay(absl::string_view text, std::map<std::string, std::string>* records, std::string* tail) {
  size_t at = sizeof(kMagic) - 1;
  while (at < text.size()) {
    const absl::string_view rest = text.substr(at);
    if (rest.find_first_not_of('\0') == absl::string_view::npos) {  // Grown by the file system, not written.
      *tail = "zeros";
      return at;
    }
    if (rest.size() < kHeaderBytes) {
      *tail = "the beginning of an entry";
      return at;
    }
    const uint32_t size = NumberAt(rest, 0);
    const absl::string_view bytes = rest.substr(kHeaderBytes, size);
    store::LogEntry entry;
    const bool size_is_good = Crc32c(rest.substr(0, 4)) == NumberAt(rest, 4);
    if (size_is_good && bytes.size() < size) {
      *tail = absl::StrCat("an entry that should have ", kHeaderBytes + size);
      return at;
    }
    if (!size_is_good || Crc32c(bytes) != NumberAt(rest, 8) ||
        !entry.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
      if (size_is_good && rest.size() == kHeaderBytes + size) {
        *tail = "the last entry, which is damaged";
        return at;  // Not all of it was written.
      }
      return absl::DataLossError(absl::StrCat("entry at byte ", at, " is damaged, and others follow"));
    }
    Apply(entry, records);
    at += kHeaderBytes + size;
  }
  return at;
}

}  // namespace

StateLog::StateLog(std::string folder, uint64_t compact_bytes)
    : folder_(std::move(folder)), path_(folder_ + "/log"), compact_bytes_(compact_bytes) {}

StateLog::~StateLog() {
  CloseLog();
  if (lock_ >= 0) close(lock_);
}

void StateLog::CloseLog() {
  if (log_ >= 0) close(std::exchange(log_, -1));
}

absl::StatusOr<std::unique_ptr<StateLog>> StateLog::Open(const std::string& folder, uint64_t compact_bytes) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) return SystemError(error.value(), absl::StrCat("cannot create ", folder));
  std::unique_ptr<StateLog> log(new StateLog(folder, compact_bytes));
  const std::string lock = folder + "/lock";
  log->lock_ = open(lock.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
  if (log->lock_ < 0) return SystemError(errno, absl::StrCat("cannot open ", lock));
  if (flock(log->lock_, LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return SystemError(errno, absl::StrCat("cannot lock ", lock));
    return absl::UnavailableError(absl::StrCat("another coordinator keeps its state in ", folder));
  }
  return log;
}

absl::StatusOr<std::map<std::string, std::string>> StateLog::Load() {
  CloseLog();
  records_.clear();
  size_ = live_bytes_ = 0;
  const absl::StatusOr<std::string> text = ReadFile(path_);
  if (absl::IsNotFound(text.status())) return records_;
  if (!text.ok()) return text.status();
  const absl::string_view magic(kMagic);
  // A new log is renamed into place complete: if this is not there it is another file.
  if (absl::string_view(*text).substr(0, magic.size()) != magic) {
    return absl::DataLossError(absl::StrCat(path_, " is no log of a coordinator"));
  }
  std::string tail;
  const absl::StatusOr<size_t> good = Replay(*text, &records_, &tail);
  if (!good.ok()) {
    records_.clear();
    return absl::DataLossError(absl::StrCat(path_, ": ", good.status().message()));
  }
  if (!tail.empty()) {
    spdlog::warn(
        "{}: dropped its last {} bytes, from byte {} on: {}. A process or a machine that dies while it writes leaves "
        "that; members tell again what they know",
        path_, text->size() - *good, *good, tail);
  }
  live_bytes_ = BytesOf(records_);
  log_ = open(path_.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC | O_NOFOLLOW);
  if (log_ < 0) return SystemError(errno, absl::StrCat("cannot write ", path_));
  if (ftruncate(log_, static_cast<off_t>(*good)) != 0) return SystemError(errno, absl::StrCat("cannot write ", path_));
  size_ = *good;
  return records_;
}

absl::Status StateLog::Write(const std::vector<StateChange>& changes) {
  store::LogEntry entry;
  bool durable = false;
  for (const StateChange& change : changes) {
    store::Change* written = entry.add_changes();
    written->set_key(change.key);
    written->set_removed(!change.value.has_value());
    if (change.value) written->set_value(*change.value);
    durable = durable || change.durable;
  }
  // records_ include changes that cannot be written now, so that the next rewrite of the log writes them.
  Apply(entry, &records_);
  const std::string framed = Framed(entry);
  if (log_ < 0) return Rewrite();
  if (size_ + framed.size() > compact_bytes_) {
    live_bytes_ = BytesOf(records_);
    if (size_ + framed.size() > kCompactRatio * live_bytes_) return Rewrite();
  }
  return Append(framed, durable);
}

absl::Status StateLog::Append(const std::string& entry, bool durable) {
  absl::string_view left = entry;
  int error = 0;
  while (!left.empty() && error == 0) {
    const ssize_t written = write(log_, left.data(), left.size());
    if (written >= 0) {
      left.remove_prefix(static_cast<size_t>(written));
    } else if (errno != EINTR) {
      error = errno;
    }
  }
  if (error == 0 && durable && fdatasync(log_) != 0) error = errno;
  if (error != 0) {
    // A part of it would hide whatever comes after it.
    (void)!ftruncate(log_, static_cast<off_t>(size_));
    CloseLog();
    return SystemError(error, absl::StrCat("cannot write ", path_));
  }
  size_ += entry.size();
  return absl::OkStatus();
}

absl::Status StateLog::Rewrite() {
  store::LogEntry entry;
  for (const auto& [key, value] : records_) {
    store::Change* change = entry.add_changes();
    change->set_key(key);
    change->set_value(value);
  }
  const std::string text = kMagic + (records_.empty() ? "" : Framed(entry));
  if (absl::Status status = WriteFileAtomically(path_, text); !status.ok()) {
    CloseLog();
    return status;
  }
  CloseLog();
  if (absl::Status status = SyncFolder(folder_); !status.ok()) return status;
  log_ = open(path_.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC | O_NOFOLLOW);
  if (log_ < 0) return SystemError(errno, absl::StrCat("cannot write ", path_));
  size_ = text.size();
  live_bytes_ = BytesOf(records_);
  return absl::OkStatus();
}

absl::StatusOr<std::string> StateLog::SetAside(const std::string& name) {
  CloseLog();
  const std::string aside = absl::StrCat(path_, ".", name);
  if (rename(path_.c_str(), aside.c_str()) != 0 && errno != ENOENT) {
    return SystemError(errno, absl::StrCat("cannot set ", path_, " aside"));
  }
  records_.clear();
  if (absl::Status status = Rewrite(); !status.ok()) return status;
  return aside;
}

}  // namespace skein
