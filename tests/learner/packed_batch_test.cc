// SPDX-License-Identifier: Apache-2.0
// What admission makes of batches that travelled as bfloat16 or compressed, and of damaged ones.
#include <zstd.h>

#include <limits>
#include <random>
#include <string>

#include "base/number/bfloat16.h"
#include "base/number/tensor_packing.h"
#include "gmock/gmock.h"
#include "learner/collect/staged_columns.h"
#include "tests/learner/collector_fixture.h"

namespace skein {
namespace {

using testing::HasSubstr;

const std::vector<SampleEnd> kEnds = {{0, 1, true}, {1, 0, false}};

constexpr float kOffset = 1000;  // From 256 on, bfloat16 has no odd numbers.

FragmentShape Shape(int64_t T = 100, v1::DataType obs_dtype = v1::DATA_TYPE_FLOAT32) {
  FragmentShape shape = MakeSampleShape({.T = T, .E = 2, .A = 2, .O = 3, .D = 2});
  shape.obs_dtype = obs_dtype;
  return shape;
}

SampleBatch NarrowBatch(const FragmentShape& shape) {
  SampleBatch batch = MakeSampleBatch(shape, kOffset, kEnds);
  Narrow(batch.Find("obs"));
  Narrow(batch.Find("final_obs"));
  return batch;
}

void ExpectRefused(const SampleBatch& batch, const FragmentShape& shape, const std::string& message) {
  const absl::Status status = Admit(batch, shape);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr(message));
}

// A frame of `size` zeros.
std::string FrameOfZeros(size_t size) {
  const std::string zeros(size, '\0');
  std::string frame(ZSTD_compressBound(size), '\0');
  frame.resize(ZSTD_compress(frame.data(), frame.size(), zeros.data(), size, 1));
  return frame;
}

// What staging makes of a batch that arrives in pieces.
std::unique_ptr<StagedColumns> Stage(const SampleBatch& batch, const FragmentShape& shape, size_t piece_bytes) {
  const ReceivedBatch received(batch, piece_bytes);
  const Schema schema = MakeSchema(shape);
  CheckedFragment checked;
  EXPECT_TRUE(CheckFragment(received.frame(), schema, &checked).ok());
  auto staged = std::make_unique<StagedColumns>(schema, 1);
  EXPECT_TRUE(staged->Place(0, 0, checked).ok());
  staged->Seal();
  return staged;
}

TEST(PackedBatch, IsPlacedAsItsValuesAre) {
  // Rows of 12 and, so that a row is read in parts, of 4,800 numbers.
  for (const int64_t O : {3, 1200}) {
    FragmentShape shape = MakeSampleShape({.T = 5, .E = 2, .A = 2, .O = O, .D = 2});
    const auto want = Stage(MakeSampleBatch(shape, kOffset, kEnds), shape, 50);
    for (const char* observed : {"obs", "final_obs"}) {
      const absl::Span<float> values = want->values<float>(observed);
      RoundToBfloat16(values.data(), values.size());
    }

    shape.obs_dtype = v1::DATA_TYPE_BFLOAT16;
    for (const bool compressed : {false, true}) {
      SampleBatch batch = NarrowBatch(shape);
      for (SampleField& field : batch.fields) {
        if (compressed) Compress(&field);
      }
      for (const size_t piece_bytes : {0, 1, 100}) {
        const auto got = Stage(batch, shape, piece_bytes);
        for (size_t i = 0; i < got->all().size(); ++i) {
          EXPECT_EQ(got->all()[i].bytes, want->all()[i].bytes) << got->all()[i].field.name;
        }
      }
    }
  }
}

TEST(PackedBatch, OtherPrecisionThanTheRunsIsRefused) {
  const FragmentShape narrow = Shape(100, v1::DATA_TYPE_BFLOAT16);
  ExpectRefused(NarrowBatch(Shape()), Shape(), "fields.obs: dtype is DATA_TYPE_BFLOAT16, want DATA_TYPE_FLOAT32");
  ExpectRefused(MakeSampleBatch(narrow), narrow, "fields.obs: dtype is DATA_TYPE_FLOAT32, want DATA_TYPE_BFLOAT16");
  SampleBatch batch = NarrowBatch(narrow);
  Narrow(batch.Find("reward"));
  ExpectRefused(batch, narrow, "fields.reward: dtype is DATA_TYPE_BFLOAT16, want DATA_TYPE_FLOAT32");
}

TEST(PackedBatch, NotFiniteIsRefusedAfterWidening) {
  const FragmentShape shape = Shape(100, v1::DATA_TYPE_BFLOAT16);
  for (const char* name : {"obs", "final_obs"}) {
    for (const uint16_t bad : {0x7f80, 0xff80, 0x7fc0}) {  // Infinity, its negative, NaN.
      SampleBatch batch = NarrowBatch(shape);
      SetElement(batch.Find(name), 4, bad);
      ExpectRefused(batch, shape, std::string("fields.") + name + ": element 4 is not finite");
    }
  }
}

TEST(PackedBatch, OtherByteCountIsRefused) {
  const FragmentShape shape = Shape(100, v1::DATA_TYPE_BFLOAT16);
  SampleBatch batch = NarrowBatch(shape);
  batch.Find("obs")->data.push_back('\0');
  // 101 * 2 * 2 * 3 numbers of two bytes.
  ExpectRefused(batch, shape, "fields.obs: has 2425 bytes, want 2424");
}

TEST(PackedBatch, AnUnknownCompressionIsRefused) {
  SampleBatch batch = MakeSampleBatch(Shape());
  batch.Find("obs")->compression = static_cast<v1::Compression>(9);
  ExpectRefused(batch, Shape(), "fields.obs: compression is 9, want none or zstd");
  batch.Find("obs")->compression = v1::COMPRESSION_NONE;
  EXPECT_TRUE(Admit(batch, Shape()).ok());
}

TEST(PackedBatch, WhatClaimsToBeCompressedAndIsNotIsRefused) {
  for (const char* name : {"obs", "log_prob", "terminated", "env_state"}) {
    SampleBatch batch = MakeSampleBatch(Shape());
    batch.Find(name)->compression = v1::COMPRESSION_ZSTD;
    ExpectRefused(batch, Shape(), std::string("fields.") + name + ": is no zstd frame");
    batch.Find(name)->data.clear();
    ExpectRefused(batch, Shape(), std::string("fields.") + name + ": is no zstd frame");
  }
}

// It is refused for what its first bytes say; the 128 MiB are never there.
TEST(PackedBatch, ABombIsRefused) {
  const std::string bomb = FrameOfZeros(size_t{128} << 20);
  EXPECT_LT(bomb.size(), 20000u);
  // 2001 x 2 x 2 x 3 floats, and 2000 x 2 flags, which are fewer bytes than the frame itself has.
  for (const auto& [name, message] : {std::pair{"obs", "its zstd frame holds 134217728 bytes, its shape"},
                                      {"truncated", " bytes compressed, want at most 4000"}}) {
    SampleBatch batch = MakeSampleBatch(Shape(2000));
    batch.Find(name)->data = bomb;
    batch.Find(name)->compression = v1::COMPRESSION_ZSTD;
    ExpectRefused(batch, Shape(2000), message);
  }
  // More steps to go with it do not help: the run has others.
  SampleBatch batch = MakeSampleBatch(Shape());
  SampleField* obs = batch.Find("obs");
  obs->data = bomb;
  obs->compression = v1::COMPRESSION_ZSTD;
  batch.header.set_steps((int64_t{128} << 20) / (2 * 2 * 3 * 4));
  ExpectRefused(batch, Shape(), "steps x group_envs is 2796202 x 2, want 100 x 2");
}

TEST(PackedBatch, EveryTruncationIsRefused) {
  SampleBatch good = MakeSampleBatch(Shape(40));
  Compress(good.Find("obs"));
  const std::string frame = good.Find("obs")->data;
  ASSERT_TRUE(Admit(good, Shape(40)).ok());
  for (size_t size = 0; size < frame.size(); ++size) {
    SampleBatch batch = good;
    batch.Find("obs")->data = frame.substr(0, size);
    ExpectRefused(batch, Shape(40), "fields.obs: ");
  }
}

// Whatever bytes are changed, a batch is refused or holds what it held (sanitizers watch).
TEST(PackedBatch, DamagedDataAreRefused) {
  const FragmentShape shape = Shape(100, v1::DATA_TYPE_BFLOAT16);
  SampleBatch good = NarrowBatch(shape);
  for (SampleField& field : good.fields) Compress(&field);
  const BatchValues want(good, shape);
  std::mt19937 random(11);
  for (int round = 0; round < 1000; ++round) {
    SampleBatch batch = good;
    std::string* data = &batch.Find("obs")->data;
    for (int i = 0; i < 3; ++i) (*data)[random() % data->size()] = static_cast<char>(random());
    const absl::Status status = Admit(batch, shape);
    if (status.ok()) {
      EXPECT_EQ(BatchValues(batch, shape).floats("obs"), want.floats("obs"));
    } else {
      EXPECT_THAT(std::string(status.message()), HasSubstr("fields.obs: "));
    }
  }
}

// As the collector sees it: rejected, with a receipt that says why, counted, and the ticket comes again.
class PackedCollectorTest : public CollectorTest {};

TEST_F(PackedCollectorTest, RejectsWhatCannotBeDecompressedAndTakesItsReplacement) {
  collector_.OpenIteration(1);
  const v1::Ticket ticket = TakeTicket(0);
  SampleBatch batch = Serve(kAda, ticket);
  SampleField* obs = batch.Find("obs");
  obs->data = FrameOfZeros(obs->data.size());
  obs->compression = v1::COMPRESSION_ZSTD;
  SampleBatch damaged = batch;
  damaged.Find("obs")->data.pop_back();
  const v1::Receipt receipt = collector_.Receive(kAda, ReceivedBatch(damaged).frame(), 500);
  EXPECT_EQ(receipt.result(), v1::RECEIPT_RESULT_REJECTED);
  EXPECT_THAT(receipt.message(), HasSubstr("fields.obs: its zstd frame is damaged"));
  ExpectBalance();
  EXPECT_EQ(collector_.account().rejected(), kBlockSteps);

  const v1::Ticket again = TakeTicket(0);
  batch.header.set_ticket_id(again.id());
  batch.header.set_sequence(2);
  batch.header.set_env_steps_collected(2 * kBlockSteps);
  EXPECT_EQ(collector_.Receive(kAda, ReceivedBatch(batch).frame(), 500).result(), v1::RECEIPT_RESULT_ACCEPTED);
  EXPECT_EQ(MetricValue(registry_, "skein_learner_received_bytes_total"), 1000);
  // 72 bytes of zeros, 3 x 2 x 3 floats, in a frame.
  EXPECT_GT(MetricValue(registry_, "skein_learner_received_uncompressed_bytes_total"), 1000);
}

}  // namespace
}  // namespace skein
