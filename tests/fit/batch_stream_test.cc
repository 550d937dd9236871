// SPDX-License-Identifier: Apache-2.0
#include "learner/sequence/batch_stream.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <new>
#include <string>

#include "learner/sequence/fit_settings.h"
#include "learner/sequence/read_memory.h"
#include "tests/fit/text_file.h"

namespace skein {
namespace {

constexpr int kLines = 20000;

// Line i has the key i, and i % 5 more of it.
const SequenceStore& Store() {
  static const auto* const store = [] {
    const std::string folder = FreshFolder("stream");
    std::string text;
    for (int i = 0; i < kLines; ++i) {
      for (int k = 0; k <= i % 5; ++k) text += std::to_string(i) + " ";
      text += "\n";
    }
    WriteText(folder + "/a", text);
    const auto config = LoadFitConfig("", {"data.files=" + folder + "/a", "data.holdout=0", "model.vocabulary=20000"});
    return SequenceStore::Open(*config, folder + "/data", [](double) { return true; })->release();
  }();
  return *store;
}

BatchStream::Options OptionsOf(uint32_t readers, uint32_t prefetch, uint64_t first_batch = 0) {
  BatchStream::Options options;
  options.order = {7, 3, 4096, 256, true};
  options.parts = 2;
  options.readers = readers;
  options.prefetch = prefetch;
  options.first_batch = first_batch;
  return options;
}

std::vector<std::vector<uint32_t>> Classes(BatchStream* stream) {
  std::vector<std::vector<uint32_t>> all;
  for (;;) {
    auto batch = stream->Next();
    EXPECT_TRUE(batch.ok()) << batch.status();
    if (!batch.ok() || *batch == nullptr) return all;
    all.push_back((*batch)->rows.classes);
  }
}

TEST(BatchStream, UsesEachSequenceOnce) {
  BatchStream stream(&Store(), OptionsOf(3, 5));
  std::map<uint32_t, int> seen;
  uint64_t sequences = 0, number = 0;
  for (;;) {
    auto batch = stream.Next();
    ASSERT_TRUE(batch.ok());
    if (*batch == nullptr) break;
    EXPECT_EQ((*batch)->number, number++);
    sequences += (*batch)->sequences;
    const Sequences& rows = (*batch)->rows;
    for (size_t i = 0; i < rows.size(); ++i) {
      ++seen[rows.classes[rows.begins[i]]];
      // Lengths differ little within a batch.
      EXPECT_LE(rows.steps(0) - rows.steps(i), 1u);
    }
  }
  EXPECT_EQ(sequences, kLines);
  EXPECT_EQ(seen.size(), kLines);
  for (const auto& [key, count] : seen) EXPECT_EQ(count, 1) << key;
  EXPECT_EQ(number, stream.batches());
}

TEST(BatchStream, HasAnOrderThatThreadsDoNotChange) {
  BatchStream one(&Store(), OptionsOf(1, 1)), many(&Store(), OptionsOf(5, 16));
  const auto want = Classes(&one);
  EXPECT_EQ(Classes(&many), want);
  BatchStream::Options other = OptionsOf(2, 4);
  other.order.epoch = 4;
  BatchStream next_epoch(&Store(), other);
  EXPECT_NE(Classes(&next_epoch), want);
}

TEST(BatchStream, BeginsInTheMiddle) {
  BatchStream whole(&Store(), OptionsOf(2, 4));
  const auto all = Classes(&whole);
  for (const uint64_t first : {uint64_t{1}, uint64_t{17}, uint64_t{40}, uint64_t{all.size()}}) {
    BatchStream rest(&Store(), OptionsOf(2, 4, first));
    EXPECT_EQ(Classes(&rest),
              std::vector<std::vector<uint32_t>>(all.begin() + static_cast<std::ptrdiff_t>(first), all.end()));
  }
}

TEST(BatchStream, CanBeGivenUpAtAnyTime) {
  for (const uint32_t readers : {1u, 4u}) {
    BatchStream stream(&Store(), OptionsOf(readers, 8));
    ASSERT_TRUE(stream.Next().ok());
  }
}

TEST(BatchStream, GoesThroughWindowsSmallerThanABatch) {
  BatchStream::Options options = OptionsOf(4, 8);
  options.order.window = 1;
  BatchStream stream(&Store(), options);
  size_t sequences = 0;
  for (const auto& batch : Classes(&stream)) sequences += batch.empty() ? 0 : 1;
  EXPECT_EQ(sequences, stream.batches());
}

TEST(BatchStream, LackOfMemoryIsAnErrorThatSaysWhatToLower) {
  const auto read = WithinMemory([]() -> absl::StatusOr<int> { throw std::bad_alloc(); });
  EXPECT_EQ(read.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(read.status().message()), testing::HasSubstr("lower data.window"));
  EXPECT_EQ(*WithinMemory([]() -> absl::StatusOr<int> { return 3; }), 3);
}

}  // namespace
}  // namespace skein
