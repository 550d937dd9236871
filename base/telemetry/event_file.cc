// SPDX-License-Identifier: Apache-2.0
#include "base/telemetry/event_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/process/system_error.h"

namespace skein {
namespace {

constexpr uint32_t kPolynomial = 0x82f63b78;  // Bits reversed.

constexpr std::array<uint32_t, 256> MakeTable() {
  std::array<uint32_t, 256> table{};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? kPolynomial : 0);
    table[byte] = crc;
  }
  return table;
}

constexpr std::array<uint32_t, 256> kTable = MakeTable();

void AppendLittleEndian(uint64_t value, int bytes, std::string* to) {
  for (int i = 0; i < bytes; ++i) to->push_back(static_cast<char>(value >> (8 * i)));
}

// Turned and moved, so that checksums of data that contain checksums stay good.
uint32_t Masked(uint32_t crc) { return ((crc >> 15) | (crc << 17)) + 0xa282ead8; }

}  // namespace

uint32_t Crc32c(absl::string_view bytes) {
  uint32_t crc = ~uint32_t{0};
  for (const char byte : bytes) crc = (crc >> 8) ^ kTable[(crc ^ static_cast<uint8_t>(byte)) & 0xff];
  return ~crc;
}

absl::StatusOr<std::unique_ptr<EventFile>> EventFile::Open(const std::string& path) {
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (fd < 0) return SystemError(errno, absl::StrCat("cannot create ", path));
  struct stat now = {};
  if (fstat(fd, &now) != 0) {
    const int error = errno;
    close(fd);
    return SystemError(error, absl::StrCat("cannot look at ", path));
  }
  return std::unique_ptr<EventFile>(new EventFile(path, fd, now.st_size));
}

EventFile::~EventFile() { close(fd_); }

absl::Status EventFile::Append(absl::string_view record) {
  std::string framed;
  framed.reserve(record.size() + 16);
  AppendLittleEndian(record.size(), 8, &framed);
  AppendLittleEndian(Masked(Crc32c(framed)), 4, &framed);
  framed.append(record.data(), record.size());
  AppendLittleEndian(Masked(Crc32c(record)), 4, &framed);
  absl::string_view left = framed;
  while (!left.empty()) {
    const ssize_t written = write(fd_, left.data(), left.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) {
      absl::Status error = SystemError(errno, absl::StrCat("cannot write ", path_));
      if (ftruncate(fd_, size_) != 0) {
        return absl::Status(error.code(), absl::StrCat(std::string(error.message()), " and ends within a record"));
      }
      return error;
    }
    left.remove_prefix(static_cast<size_t>(written));
  }
  size_ += static_cast<int64_t>(framed.size());
  return absl::OkStatus();
}

}  // namespace skein
