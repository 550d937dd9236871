// SPDX-License-Identifier: Apache-2.0
#include "learner/sequence/line_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "tests/fit/text_file.h"

namespace skein {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

absl::StatusOr<std::vector<std::string>> ReadAll(const std::string& path) {
  auto reader = LineReader::Open(path);
  if (!reader.ok()) return reader.status();
  std::vector<std::string> lines;
  absl::string_view line;
  for (;;) {
    const auto more = (*reader)->Next(&line);
    if (!more.ok()) return more.status();
    if (!*more) return lines;
    lines.emplace_back(line);
  }
}

std::string BytesOf(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(LineReader, ReadsLinesWithAndWithoutEnd) {
  const std::string folder = FreshFolder("lines");
  EXPECT_THAT(*ReadAll(WriteText(folder + "/a", "1 2\n\n3\r\n4")), ElementsAre("1 2", "", "3", "4"));
  EXPECT_THAT(*ReadAll(WriteText(folder + "/b", "")), ElementsAre());
}

TEST(LineReader, SkipsAByteOrderMarkAndRefusesOtherLineEnds) {
  const std::string folder = FreshFolder("ends");
  EXPECT_THAT(*ReadAll(WriteText(folder + "/a",
                                 "\xEF\xBB\xBF"
                                 "1 2\r\n3\r\n")),
              ElementsAre("1 2", "3"));
  const auto old = ReadAll(WriteText(folder + "/b", "1 2\n3\r4\r"));
  EXPECT_EQ(old.status().code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(old.status().message(), HasSubstr("/b:2: a carriage return within the line"));
}

TEST(LineReader, ReadsWhatGzipCompressed) {
  const std::string folder = FreshFolder("gzip");
  std::string text;
  for (int i = 0; i < 200000; ++i) text += std::to_string(i) + "\n";  // Several buffers.
  const auto lines = ReadAll(WriteGzip(folder + "/a.gz", text));
  ASSERT_TRUE(lines.ok()) << lines.status();
  ASSERT_EQ(lines->size(), 200000);
  EXPECT_EQ(lines->back(), "199999");
}

TEST(LineReader, NamesTheLineAtWhichACompressedFileIsCutOff) {
  const std::string folder = FreshFolder("truncated");
  std::string text;
  for (int i = 0; i < 50000; ++i) text += std::to_string(i * 7919 % 100000) + " 5\n";
  const std::string path = WriteGzip(folder + "/a.gz", text);
  std::filesystem::resize_file(path, std::filesystem::file_size(path) / 2);
  const auto lines = ReadAll(path);
  EXPECT_EQ(lines.status().code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(lines.status().message()),
              testing::MatchesRegex(".*a\\.gz:[0-9]+: the compressed file ends here.*"));
}

TEST(LineReader, ReadsWhatWasCompressedInParts) {
  const std::string folder = FreshFolder("members");
  WriteGzip(folder + "/a.gz", "1 2\n3");
  WriteGzip(folder + "/b.gz", "4 5\n");
  const std::string first = BytesOf(folder + "/a.gz"), second = BytesOf(folder + "/b.gz");
  EXPECT_THAT(*ReadAll(WriteText(folder + "/both.gz", first + second)), ElementsAre("1 2", "34 5"));
  const std::string zeros(1000, '\0');
  EXPECT_THAT(*ReadAll(WriteText(folder + "/tape.gz", second + zeros)), ElementsAre("4 5"));
  for (size_t kept = 1; kept < second.size(); ++kept) {
    const auto lines = ReadAll(WriteText(folder + "/cut.gz", first + second.substr(0, kept)));
    EXPECT_THAT(std::string(lines.status().message()),
                testing::MatchesRegex(".*/cut\\.gz:[23]: the compressed file ends here.*"))
        << kept;
  }
}

TEST(LineReader, RefusesOtherDataBehindCompressedOnes) {
  const std::string folder = FreshFolder("behind");
  const std::string compressed = BytesOf(WriteGzip(folder + "/a.gz", "1 2\n"));
  const auto lines = ReadAll(WriteText(folder + "/b.gz", compressed + "3 4\n"));
  EXPECT_EQ(lines.status().code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(lines.status().message()), HasSubstr("/b.gz:2: other data follow the compressed ones"));
}

TEST(LineReader, ReadsWhatComesBeforeTheDamage) {
  const std::string folder = FreshFolder("before-damage");
  std::string bytes = BytesOf(WriteGzip(folder + "/a.gz", "1 2\n3 4\n"));
  bytes[bytes.size() - 8] ^= 1;  // The checksum's first byte.
  auto reader = LineReader::Open(WriteText(folder + "/a.gz", bytes));
  ASSERT_TRUE(reader.ok());
  absl::string_view line;
  for (const char* const want : {"1 2", "3 4"}) {
    ASSERT_TRUE((*reader)->Next(&line).value_or(false));
    EXPECT_EQ(line, want);
  }
  EXPECT_THAT(std::string((*reader)->Next(&line).status().message()),
              HasSubstr("/a.gz:3: the compressed file is damaged (incorrect data check)"));
}

TEST(LineReader, NoticesADamagedCompressedFile) {
  const std::string folder = FreshFolder("damaged");
  std::string text;
  for (int i = 0; i < 50000; ++i) text += std::to_string(i * 7919 % 100000) + " 5\n";
  const std::string path = WriteGzip(folder + "/a.gz", text);
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(static_cast<std::streamoff>(std::filesystem::file_size(path) / 2));
  file << "damage";
  file.close();
  const auto lines = ReadAll(path);
  EXPECT_EQ(lines.status().code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(lines.status().message()), HasSubstr("damaged"));
}

TEST(LineReader, NoticesThatTheFileChanges) {
  const std::string path = WriteText(FreshFolder("changes") + "/a", "1\n2\n");
  auto reader = LineReader::Open(path);
  ASSERT_TRUE(reader.ok());
  absl::string_view line;
  ASSERT_TRUE(*(*reader)->Next(&line));
  std::ofstream(path, std::ios::app) << "3\n4\n";
  absl::Status status;
  for (int i = 0; i < 5 && status.ok(); ++i) status = (*reader)->Next(&line).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(status.message()), HasSubstr("has changed while it was read"));
}

TEST(LineReader, RefusesWhatIsNoFile) {
  EXPECT_EQ(ReadAll(FreshFolder("none") + "/absent").status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(ReadAll(FreshFolder("none")).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(ReadAll("/dev/null").status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace skein
