// SPDX-License-Identifier: Apache-2.0
#include "base/telemetry/event_file.h"

#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <fstream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/process/no_links.h"
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

uint64_t LittleEndian(absl::string_view bytes) {
  uint64_t value = 0;
  for (size_t i = 0; i < bytes.size(); ++i) value |= uint64_t{static_cast<uint8_t>(bytes[i])} << (8 * i);
  return value;
}

bool ReadBytes(std::ifstream* file, size_t size, std::string* bytes) {
  bytes->resize(size);
  return static_cast<bool>(file->read(bytes->data(), static_cast<std::streamsize>(size)));
}

// Turned and moved, so that checksums of data that contain checksums stay good.
uint32_t Masked(uint32_t crc) { return ((crc >> 15) | (crc << 17)) + 0xa282ead8; }

constexpr uint64_t kMaxRecordBytes = uint64_t{64} << 20;

// Reads the next record. False: it is incomplete or damaged, or there is none.
bool ReadRecord(std::ifstream* file, std::string* record) {
  std::string header, checksum;
  if (!ReadBytes(file, 12, &header)) return false;
  const absl::string_view length = absl::string_view(header).substr(0, 8);
  if (LittleEndian(absl::string_view(header).substr(8)) != Masked(Crc32c(length))) return false;
  if (LittleEndian(length) > kMaxRecordBytes) return false;
  if (!ReadBytes(file, LittleEndian(length), record) || !ReadBytes(file, 4, &checksum)) return false;
  return LittleEndian(checksum) == Masked(Crc32c(*record));
}

}  // namespace

uint32_t Crc32c(absl::string_view bytes) {
  uint32_t crc = ~uint32_t{0};
  for (const char byte : bytes) crc = (crc >> 8) ^ kTable[(crc ^ static_cast<uint8_t>(byte)) & 0xff];
  return ~crc;
}

absl::StatusOr<std::unique_ptr<EventFile>> EventFile::Open(const std::string& path) {
  const auto fd = OpenForAppend(path);
  if (!fd.ok()) return fd.status();
  return std::unique_ptr<EventFile>(new EventFile(path, *fd));
}

absl::Status EventFile::Trim(const std::string& path, const std::function<bool(const std::string& record)>& keep) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return SystemError(errno, absl::StrCat("cannot read ", path));
  int64_t size = 0;
  for (std::string record; ReadRecord(&file, &record) && keep(record);) {
    size += static_cast<int64_t>(record.size()) + 16;
  }
  struct stat now = {};
  if (stat(path.c_str(), &now) != 0) return SystemError(errno, absl::StrCat("cannot look at ", path));
  if (now.st_size > size && truncate(path.c_str(), size) != 0) {
    return SystemError(errno, absl::StrCat("cannot cut ", path));
  }
  return absl::OkStatus();
}

EventFile::~EventFile() { close(fd_); }

absl::Status EventFile::Append(absl::string_view record) {
  std::string framed;
  framed.reserve(record.size() + 16);
  AppendLittleEndian(record.size(), 8, &framed);
  AppendLittleEndian(Masked(Crc32c(framed)), 4, &framed);
  framed.append(record.data(), record.size());
  AppendLittleEndian(Masked(Crc32c(record)), 4, &framed);
  const off_t size = lseek(fd_, 0, SEEK_END);
  absl::string_view left = framed;
  while (!left.empty()) {
    const ssize_t written = write(fd_, left.data(), left.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) {
      absl::Status error = SystemError(errno, absl::StrCat("cannot write ", path_));
      if (size < 0 || ftruncate(fd_, size) != 0) {
        return absl::Status(error.code(), absl::StrCat(std::string(error.message()), " and ends within a record"));
      }
      return error;
    }
    left.remove_prefix(static_cast<size_t>(written));
  }
  return absl::OkStatus();
}

absl::Status EventFile::Sync() {
  return fdatasync(fd_) == 0 ? absl::OkStatus() : SystemError(errno, absl::StrCat("cannot write ", path_));
}

}  // namespace skein
