// SPDX-License-Identifier: Apache-2.0
#include "base/telemetry/event_file.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <string>
#include <vector>

#include "base/process/file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace skein {
namespace {

using testing::ElementsAre;

std::string NewPath(const std::string& name) {
  const std::string path = testing::TempDir() + "event_file_test." + name + "." + std::to_string(getpid());
  unlink(path.c_str());
  return path;
}

// Reads a file as TFRecord is defined, byte by byte. `ok`: all of it is whole records whose checksums are right.
struct Read {
  std::vector<std::string> records;
  bool ok = false;
};

uint64_t Number(const std::string& text, size_t at, size_t bytes) {
  uint64_t number = 0;
  for (size_t i = 0; i < bytes; ++i) number |= uint64_t{static_cast<uint8_t>(text[at + i])} << (8 * i);
  return number;
}

bool ChecksumIs(const std::string& text, size_t at, const std::string& of) {
  const auto masked = static_cast<uint32_t>(Number(text, at, 4)) - 0xa282ead8u;
  return ((masked << 15) | (masked >> 17)) == Crc32c(of);
}

Read ReadRecords(const std::string& path) {
  Read read;
  const std::string text = ReadFile(path).value_or("");
  size_t at = 0;
  while (at + 12 <= text.size()) {
    const uint64_t size = Number(text, at, 8);
    if (!ChecksumIs(text, at + 8, text.substr(at, 8)) || at + 16 + size > text.size()) return read;
    read.records.push_back(text.substr(at + 12, size));
    if (!ChecksumIs(text, at + 12 + size, read.records.back())) return read;
    at += 16 + size;
  }
  read.ok = at == text.size();
  return read;
}

// RFC 3720, B.4, and the customary check value of the polynomial.
TEST(Crc32c, HasTheKnownValues) {
  EXPECT_EQ(Crc32c(""), 0u);
  EXPECT_EQ(Crc32c("123456789"), 0xe3069283u);
  EXPECT_EQ(Crc32c(std::string(32, '\0')), 0x8a9136aau);
  EXPECT_EQ(Crc32c(std::string(32, '\xff')), 0x62a8ab43u);
  std::string rising;
  for (char byte = 0; byte < 32; ++byte) rising.push_back(byte);
  EXPECT_EQ(Crc32c(rising), 0x46dd794eu);
}

TEST(EventFile, WhatIsAppendedCanBeRead) {
  const std::string path = NewPath("read");
  const std::string long_record(100000, 'x');
  {
    auto file = EventFile::Open(path);
    ASSERT_TRUE(file.ok()) << file.status();
    EXPECT_TRUE((*file)->Append("first").ok());
    EXPECT_THAT(ReadRecords(path).records, ElementsAre("first"));  // At once.
    EXPECT_TRUE((*file)->Append("").ok());
    EXPECT_TRUE((*file)->Append(long_record).ok());
  }
  const Read read = ReadRecords(path);
  EXPECT_TRUE(read.ok);
  EXPECT_THAT(read.records, ElementsAre("first", "", long_record));
  unlink(path.c_str());
}

TEST(EventFile, AnOpenedFileGoesOnAtItsEnd) {
  const std::string path = NewPath("end");
  for (const char* record : {"one", "two"}) {
    auto file = EventFile::Open(path);
    ASSERT_TRUE(file.ok()) << file.status();
    EXPECT_TRUE((*file)->Append(record).ok());
  }
  const Read read = ReadRecords(path);
  EXPECT_TRUE(read.ok);
  EXPECT_THAT(read.records, ElementsAre("one", "two"));
  unlink(path.c_str());
}

TEST(EventFile, AFolderThatIsNotThereIsAnError) {
  const auto file = EventFile::Open(NewPath("folder") + "/none/file");
  EXPECT_EQ(file.status().code(), absl::StatusCode::kNotFound) << file.status();
}

// A limit on the size of files is a disk that is full in the midst of a record.
TEST(EventFile, ARecordThatFailsLeavesWholeRecords) {
  const std::string path = NewPath("full");
  auto file = EventFile::Open(path);
  ASSERT_TRUE(file.ok()) << file.status();
  ASSERT_TRUE((*file)->Append("before").ok());  // 16 + 6 = 22 bytes.
  const auto handler = signal(SIGXFSZ, SIG_IGN);
  rlimit limit = {};
  getrlimit(RLIMIT_FSIZE, &limit);
  const rlimit small = {100, limit.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const absl::Status status = (*file)->Append(std::string(1000, 'x'));
  setrlimit(RLIMIT_FSIZE, &limit);
  signal(SIGXFSZ, handler);
  EXPECT_FALSE(status.ok());
  EXPECT_TRUE((*file)->Append("after").ok());
  const Read read = ReadRecords(path);
  EXPECT_TRUE(read.ok);
  EXPECT_THAT(read.records, ElementsAre("before", "after"));
  unlink(path.c_str());
}

// Cut off at each byte, as a crash may leave it.
TEST(EventFile, TrimRemovesARecordThatIsCutOff) {
  const std::string path = NewPath("cut");
  {
    const auto file = EventFile::Open(path);
    ASSERT_TRUE(file.ok()) << file.status();
    for (const char* record : {"first", "second", "third"}) ASSERT_TRUE((*file)->Append(record).ok());
  }
  const std::string whole = ReadFile(path).value_or("");
  const std::vector<std::string> all = {"first", "second", "third"};
  const std::vector<size_t> ends = {16 + 5, 32 + 11, 48 + 16};
  for (size_t size = 0; size <= whole.size(); ++size) {
    ASSERT_TRUE(WriteFileSynced(path, whole.substr(0, size)).ok());
    ASSERT_TRUE(EventFile::Trim(path, [](const std::string&) { return true; }).ok());
    const Read read = ReadRecords(path);
    EXPECT_TRUE(read.ok) << size;
    const auto complete = std::count_if(ends.begin(), ends.end(), [size](size_t end) { return end <= size; });
    EXPECT_EQ(read.records, std::vector<std::string>(all.begin(), all.begin() + complete)) << size;
  }
}

TEST(EventFile, TrimRemovesADamagedRecordAndWhatIsNotWanted) {
  const std::string path = NewPath("damaged");
  {
    const auto file = EventFile::Open(path);
    ASSERT_TRUE(file.ok()) << file.status();
    for (const char* record : {"first", "second", "third"}) ASSERT_TRUE((*file)->Append(record).ok());
    // Records follow the cut, wherever the file ended before.
    ASSERT_TRUE(EventFile::Trim(path, [](const std::string& record) { return record != "third"; }).ok());
    ASSERT_TRUE((*file)->Append("fourth").ok());
  }
  EXPECT_THAT(ReadRecords(path).records, ElementsAre("first", "second", "fourth"));
  std::string text = ReadFile(path).value_or("");
  text[16 + 5 + 13] ^= 1;  // Within "second".
  ASSERT_TRUE(WriteFileSynced(path, text).ok());
  ASSERT_TRUE(EventFile::Trim(path, [](const std::string&) { return true; }).ok());
  EXPECT_THAT(ReadRecords(path).records, ElementsAre("first"));
  EXPECT_TRUE(absl::IsNotFound(EventFile::Trim(NewPath("none"), [](const std::string&) { return true; })));
}

}  // namespace
}  // namespace skein
