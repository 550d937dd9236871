// SPDX-License-Identifier: Apache-2.0
// What admission makes of batches that travelled as bfloat16 or compressed, and of damaged ones.
#include <zstd.h>

#include <limits>
#include <random>
#include <string>

#include "base/number/bfloat16.h"
#include "base/number/tensor_packing.h"
#include "gmock/gmock.h"
#include "learner/collect/batch_assembler.h"
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

v1::TrajectoryBatch NarrowBatch(const FragmentShape& shape) {
  v1::TrajectoryBatch batch = MakeSampleBatch(shape, kOffset, kEnds);
  Narrow(FindTensor(&batch, "obs"));
  Narrow(FindTensor(&batch, "final_obs"));
  return batch;
}

absl::Status Check(const v1::TrajectoryBatch& batch, const FragmentShape& shape) {
  const ReceivedBatch received(batch, 7);
  CheckedBatch checked;
  if (absl::Status s = CheckBatch(received.wire(), shape, &checked); !s.ok()) return s;
  StagedBatch staged(shape, 1);
  return staged.Place(0, 0, checked);
}

void ExpectRefused(const v1::TrajectoryBatch& batch, const FragmentShape& shape, const std::string& message) {
  const absl::Status status = Check(batch, shape);
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

TEST(PackedBatch, IsPlacedAsItsValuesAre) {
  // Rows of 12 and, so that a row is read in parts, of 4,800 numbers.
  for (const int64_t O : {3, 1200}) {
    FragmentShape shape = MakeSampleShape({.T = 5, .E = 2, .A = 2, .O = O, .D = 2});
    const v1::TrajectoryBatch plain = MakeSampleBatch(shape, kOffset, kEnds);
    StagedBatch want(shape, 1);
    const ReceivedBatch received(plain, 50);
    CheckedBatch checked;
    ASSERT_TRUE(CheckBatch(received.wire(), shape, &checked).ok());
    ASSERT_TRUE(want.Place(0, 0, checked).ok());
    want.Seal();
    RoundToBfloat16(want.obs.data(), want.obs.size());
    RoundToBfloat16(want.final_obs.data(), want.final_obs.size());

    shape.obs_dtype = v1::DATA_TYPE_BFLOAT16;
    for (const bool compressed : {false, true}) {
      v1::TrajectoryBatch batch = NarrowBatch(shape);
      for (v1::Tensor& tensor : *batch.mutable_tensors()) {
        if (compressed) Compress(&tensor);
      }
      for (const size_t piece_bytes : {0, 1, 100}) {
        const ReceivedBatch narrow(batch, piece_bytes);
        CheckedBatch narrow_checked;
        ASSERT_TRUE(CheckBatch(narrow.wire(), shape, &narrow_checked).ok());
        StagedBatch got(shape, 1);
        ASSERT_TRUE(got.Place(0, 0, narrow_checked).ok());
        got.Seal();
        EXPECT_EQ(got.obs, want.obs);
        EXPECT_EQ(got.action, want.action);
        EXPECT_EQ(got.log_prob, want.log_prob);
        EXPECT_EQ(got.reward, want.reward);
        EXPECT_EQ(got.final_obs, want.final_obs);
        EXPECT_EQ(got.truncated, want.truncated);
      }
    }
  }
}

TEST(PackedBatch, OtherPrecisionThanTheRunsIsRefused) {
  const FragmentShape narrow = Shape(100, v1::DATA_TYPE_BFLOAT16);
  ExpectRefused(NarrowBatch(Shape()), Shape(), "tensors.obs: dtype is DATA_TYPE_BFLOAT16, want DATA_TYPE_FLOAT32");
  ExpectRefused(MakeSampleBatch(narrow), narrow, "tensors.obs: dtype is DATA_TYPE_FLOAT32, want DATA_TYPE_BFLOAT16");
  v1::TrajectoryBatch batch = NarrowBatch(narrow);
  Narrow(FindTensor(&batch, "reward"));
  ExpectRefused(batch, narrow, "tensors.reward: dtype is DATA_TYPE_BFLOAT16, want DATA_TYPE_FLOAT32");
}

TEST(PackedBatch, NotFiniteIsRefusedAfterWidening) {
  const FragmentShape shape = Shape(100, v1::DATA_TYPE_BFLOAT16);
  for (const char* name : {"obs", "final_obs"}) {
    for (const uint16_t bad : {0x7f80, 0xff80, 0x7fc0}) {  // Infinity, its negative, NaN.
      v1::TrajectoryBatch batch = NarrowBatch(shape);
      SetElement(FindTensor(&batch, name), 4, bad);
      ExpectRefused(batch, shape, std::string("tensors.") + name + ": element 4 is not finite");
    }
  }
}

TEST(PackedBatch, OtherByteCountIsRefused) {
  const FragmentShape shape = Shape(100, v1::DATA_TYPE_BFLOAT16);
  v1::TrajectoryBatch batch = NarrowBatch(shape);
  FindTensor(&batch, "obs")->mutable_data()->push_back('\0');
  // 101 * 2 * 2 * 3 numbers of two bytes.
  ExpectRefused(batch, shape, "tensors.obs: has 2425 bytes, its shape and dtype want 2424");
}

TEST(PackedBatch, AnUnknownCompressionIsRefused) {
  v1::TrajectoryBatch batch = MakeSampleBatch(Shape());
  FindTensor(&batch, "obs")->set_compression(static_cast<v1::Compression>(9));
  ExpectRefused(batch, Shape(), "tensors.obs: compression is 9, want none or zstd");
  FindTensor(&batch, "obs")->set_compression(v1::COMPRESSION_NONE);
  EXPECT_TRUE(Check(batch, Shape()).ok());
}

TEST(PackedBatch, WhatClaimsToBeCompressedAndIsNotIsRefused) {
  for (const char* name : {"obs", "log_prob", "terminated", "env_state"}) {
    v1::TrajectoryBatch batch = MakeSampleBatch(Shape());
    FindTensor(&batch, name)->set_compression(v1::COMPRESSION_ZSTD);
    ExpectRefused(batch, Shape(), std::string("tensors.") + name + ": is no zstd frame");
    FindTensor(&batch, name)->clear_data();
    ExpectRefused(batch, Shape(), std::string("tensors.") + name + ": is no zstd frame");
  }
}

// It is refused for what its first bytes say; the 128 MiB are never there.
TEST(PackedBatch, ABombIsRefused) {
  const std::string bomb = FrameOfZeros(size_t{128} << 20);
  EXPECT_LT(bomb.size(), 20000u);
  for (const char* name : {"obs", "truncated"}) {
    v1::TrajectoryBatch batch = MakeSampleBatch(Shape());
    FindTensor(&batch, name)->set_data(bomb);
    FindTensor(&batch, name)->set_compression(v1::COMPRESSION_ZSTD);
    ExpectRefused(batch, Shape(), std::string("tensors.") + name + ": its zstd frame holds 134217728 bytes, its shape");
  }
  // As large a shape to go with it does not help: the run's is another one.
  v1::TrajectoryBatch batch = MakeSampleBatch(Shape());
  v1::Tensor* obs = FindTensor(&batch, "obs");
  obs->set_data(bomb);
  obs->set_compression(v1::COMPRESSION_ZSTD);
  obs->set_shape(0, (int64_t{128} << 20) / (2 * 2 * 3 * 4));
  ExpectRefused(batch, Shape(), "tensors.obs: shape is [");
}

TEST(PackedBatch, EveryTruncationIsRefused) {
  v1::TrajectoryBatch good = MakeSampleBatch(Shape(40));
  Compress(FindTensor(&good, "obs"));
  const std::string frame = FindTensor(&good, "obs")->data();
  ASSERT_TRUE(Check(good, Shape(40)).ok());
  for (size_t size = 0; size < frame.size(); ++size) {
    v1::TrajectoryBatch batch = good;
    FindTensor(&batch, "obs")->set_data(frame.substr(0, size));
    ExpectRefused(batch, Shape(40), "tensors.obs: ");
  }
}

// Whatever bytes are changed, a batch is refused or holds what it held (sanitizers watch).
TEST(PackedBatch, DamagedDataAreRefused) {
  const FragmentShape shape = Shape(100, v1::DATA_TYPE_BFLOAT16);
  v1::TrajectoryBatch good = NarrowBatch(shape);
  for (v1::Tensor& tensor : *good.mutable_tensors()) Compress(&tensor);
  const BatchValues want(good, shape);
  std::mt19937 random(11);
  for (int round = 0; round < 1000; ++round) {
    v1::TrajectoryBatch batch = good;
    std::string* data = FindTensor(&batch, "obs")->mutable_data();
    for (int i = 0; i < 3; ++i) (*data)[random() % data->size()] = static_cast<char>(random());
    const absl::Status status = Check(batch, shape);
    if (status.ok()) {
      EXPECT_EQ(BatchValues(batch, shape).obs, want.obs);
    } else {
      EXPECT_THAT(std::string(status.message()), HasSubstr("tensors.obs: "));
    }
  }
}

// As the collector sees it: rejected, with a receipt that says why, counted, and the ticket comes again.
class PackedCollectorTest : public CollectorTest {};

TEST_F(PackedCollectorTest, RejectsWhatCannotBeDecompressedAndTakesItsReplacement) {
  collector_.OpenIteration(1);
  const v1::Ticket ticket = TakeTicket(0);
  v1::TrajectoryBatch batch = Serve(kAda, ticket);
  v1::Tensor* obs = FindTensor(&batch, "obs");
  obs->set_data(FrameOfZeros(obs->data().size()));
  obs->set_compression(v1::COMPRESSION_ZSTD);
  v1::TrajectoryBatch damaged = batch;
  FindTensor(&damaged, "obs")->mutable_data()->pop_back();
  const v1::Receipt receipt = collector_.Receive(kAda, ReceivedBatch(damaged).wire(), 500);
  EXPECT_EQ(receipt.result(), v1::RECEIPT_RESULT_REJECTED);
  EXPECT_THAT(receipt.message(), HasSubstr("tensors.obs: its zstd frame is damaged"));
  ExpectBalance();
  EXPECT_EQ(collector_.account().rejected(), kBlockSteps);

  const v1::Ticket again = TakeTicket(0);
  batch.set_ticket_id(again.id());
  batch.set_sequence(2);
  batch.set_env_steps_collected(2 * kBlockSteps);
  EXPECT_EQ(collector_.Receive(kAda, ReceivedBatch(batch).wire(), 500).result(), v1::RECEIPT_RESULT_ACCEPTED);
  EXPECT_EQ(MetricValue(registry_, "skein_learner_received_bytes_total"), 1000);
  // 72 bytes of zeros, 3 x 2 x 3 floats, in a frame.
  EXPECT_GT(MetricValue(registry_, "skein_learner_received_uncompressed_bytes_total"), 1000);
}

}  // namespace
}  // namespace skein
