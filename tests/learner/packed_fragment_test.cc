// SPDX-License-Identifier: Apache-2.0
// What admission makes of fragments that travelled as bfloat16 or compressed, and of damaged ones.
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

SampleFragment NarrowFragment(const FragmentShape& shape) {
  SampleFragment fragment = MakeSampleFragment(shape, kOffset, kEnds);
  Narrow(fragment.Find("obs"));
  Narrow(fragment.Find("final_obs"));
  return fragment;
}

void ExpectRefused(const SampleFragment& fragment, const FragmentShape& shape, const std::string& message) {
  const absl::Status status = Admit(fragment, shape);
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

// What staging makes of a fragment that arrives in pieces.
std::unique_ptr<StagedColumns> Stage(const SampleFragment& fragment, const FragmentShape& shape, size_t piece_bytes) {
  const ReceivedFragment received(fragment, piece_bytes);
  const Schema schema = MakeSchema(shape);
  CheckedFragment checked;
  EXPECT_TRUE(CheckFragment(received.frame(), schema, &checked).ok());
  auto staged = std::make_unique<StagedColumns>(schema, 1);
  EXPECT_TRUE(staged->Place(0, 0, checked).ok());
  staged->Seal();
  return staged;
}

TEST(PackedFragment, IsPlacedAsItsValuesAre) {
  // Rows of 12 and, so that a row is read in parts, of 4,800 numbers.
  for (const int64_t O : {3, 1200}) {
    FragmentShape shape = MakeSampleShape({.T = 5, .E = 2, .A = 2, .O = O, .D = 2});
    const auto want = Stage(MakeSampleFragment(shape, kOffset, kEnds), shape, 50);
    for (const char* observed : {"obs", "final_obs"}) {
      const absl::Span<float> values = want->values<float>(observed);
      RoundToBfloat16(values.data(), values.size());
    }

    shape.obs_dtype = v1::DATA_TYPE_BFLOAT16;
    for (const bool compressed : {false, true}) {
      SampleFragment fragment = NarrowFragment(shape);
      for (SampleField& field : fragment.fields) {
        if (compressed) Compress(&field);
      }
      for (const size_t piece_bytes : {0, 1, 100}) {
        const auto got = Stage(fragment, shape, piece_bytes);
        for (size_t i = 0; i < got->all().size(); ++i) {
          EXPECT_EQ(got->all()[i].bytes, want->all()[i].bytes) << got->all()[i].field.name;
        }
      }
    }
  }
}

TEST(PackedFragment, OtherPrecisionThanTheRunsIsRefused) {
  const FragmentShape narrow = Shape(100, v1::DATA_TYPE_BFLOAT16);
  ExpectRefused(NarrowFragment(Shape()), Shape(), "fields.obs: dtype is DATA_TYPE_BFLOAT16, want DATA_TYPE_FLOAT32");
  ExpectRefused(MakeSampleFragment(narrow), narrow, "fields.obs: dtype is DATA_TYPE_FLOAT32, want DATA_TYPE_BFLOAT16");
  SampleFragment fragment = NarrowFragment(narrow);
  Narrow(fragment.Find("reward"));
  ExpectRefused(fragment, narrow, "fields.reward: dtype is DATA_TYPE_BFLOAT16, want DATA_TYPE_FLOAT32");
}

TEST(PackedFragment, NotFiniteIsRefusedAfterWidening) {
  const FragmentShape shape = Shape(100, v1::DATA_TYPE_BFLOAT16);
  for (const char* name : {"obs", "final_obs"}) {
    for (const uint16_t bad : {0x7f80, 0xff80, 0x7fc0}) {  // Infinity, its negative, NaN.
      SampleFragment fragment = NarrowFragment(shape);
      SetElement(fragment.Find(name), 4, bad);
      ExpectRefused(fragment, shape, std::string("fields.") + name + ": element 4 is not finite");
    }
  }
}

TEST(PackedFragment, OtherByteCountIsRefused) {
  const FragmentShape shape = Shape(100, v1::DATA_TYPE_BFLOAT16);
  SampleFragment fragment = NarrowFragment(shape);
  fragment.Find("obs")->data.push_back('\0');
  // 101 * 2 * 2 * 3 numbers of two bytes.
  ExpectRefused(fragment, shape, "fields.obs: has 2425 bytes, want 2424");
}

TEST(PackedFragment, AnUnknownCompressionIsRefused) {
  SampleFragment fragment = MakeSampleFragment(Shape());
  fragment.Find("obs")->compression = static_cast<v1::Compression>(9);
  ExpectRefused(fragment, Shape(), "fields.obs: compression is 9, want none or zstd");
  fragment.Find("obs")->compression = v1::COMPRESSION_NONE;
  EXPECT_TRUE(Admit(fragment, Shape()).ok());
}

TEST(PackedFragment, WhatClaimsToBeCompressedAndIsNotIsRefused) {
  for (const char* name : {"obs", "log_prob", "terminated", "env_state"}) {
    SampleFragment fragment = MakeSampleFragment(Shape());
    fragment.Find(name)->compression = v1::COMPRESSION_ZSTD;
    ExpectRefused(fragment, Shape(), std::string("fields.") + name + ": is no zstd frame");
    fragment.Find(name)->data.clear();
    ExpectRefused(fragment, Shape(), std::string("fields.") + name + ": is no zstd frame");
  }
}

// It is refused for what its first bytes say; the 128 MiB are never there.
TEST(PackedFragment, ABombIsRefused) {
  const std::string bomb = FrameOfZeros(size_t{128} << 20);
  EXPECT_LT(bomb.size(), 20000u);
  // 2001 x 2 x 2 x 3 floats, and 2000 x 2 flags, which are fewer bytes than the frame itself has.
  for (const auto& [name, message] : {std::pair{"obs", "its zstd frame holds 134217728 bytes, its shape"},
                                      {"truncated", " bytes compressed, want at most 4000"}}) {
    SampleFragment fragment = MakeSampleFragment(Shape(2000));
    fragment.Find(name)->data = bomb;
    fragment.Find(name)->compression = v1::COMPRESSION_ZSTD;
    ExpectRefused(fragment, Shape(2000), message);
  }
  // More steps to go with it do not help: the run has others.
  SampleFragment fragment = MakeSampleFragment(Shape());
  SampleField* obs = fragment.Find("obs");
  obs->data = bomb;
  obs->compression = v1::COMPRESSION_ZSTD;
  fragment.header.set_steps((int64_t{128} << 20) / (2 * 2 * 3 * 4));
  ExpectRefused(fragment, Shape(), "steps x group_envs is 2796202 x 2, want 100 x 2");
}

TEST(PackedFragment, EveryTruncationIsRefused) {
  SampleFragment good = MakeSampleFragment(Shape(40));
  Compress(good.Find("obs"));
  const std::string frame = good.Find("obs")->data;
  ASSERT_TRUE(Admit(good, Shape(40)).ok());
  for (size_t size = 0; size < frame.size(); ++size) {
    SampleFragment fragment = good;
    fragment.Find("obs")->data = frame.substr(0, size);
    ExpectRefused(fragment, Shape(40), "fields.obs: ");
  }
}

// Whatever bytes are changed, a fragment is refused or holds what it held (sanitizers watch).
TEST(PackedFragment, DamagedDataAreRefused) {
  const FragmentShape shape = Shape(100, v1::DATA_TYPE_BFLOAT16);
  SampleFragment good = NarrowFragment(shape);
  for (SampleField& field : good.fields) Compress(&field);
  const FragmentValues want(good, shape);
  std::mt19937 random(11);
  for (int round = 0; round < 1000; ++round) {
    SampleFragment fragment = good;
    std::string* data = &fragment.Find("obs")->data;
    for (int i = 0; i < 3; ++i) (*data)[random() % data->size()] = static_cast<char>(random());
    const absl::Status status = Admit(fragment, shape);
    if (status.ok()) {
      EXPECT_EQ(FragmentValues(fragment, shape).floats("obs"), want.floats("obs"));
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
  SampleFragment fragment = Serve(kAda, ticket);
  SampleField* obs = fragment.Find("obs");
  obs->data = FrameOfZeros(obs->data.size());
  obs->compression = v1::COMPRESSION_ZSTD;
  SampleFragment damaged = fragment;
  damaged.Find("obs")->data.pop_back();
  const v1::Receipt receipt = collector_.Receive(kAda, ReceivedFragment(damaged).frame(), 500);
  EXPECT_EQ(receipt.result(), v1::RECEIPT_RESULT_REJECTED);
  EXPECT_THAT(receipt.message(), HasSubstr("fields.obs: its zstd frame is damaged"));
  ExpectBalance();
  EXPECT_EQ(collector_.account().rejected(), kFragmentSteps);

  const v1::Ticket again = TakeTicket(0);
  fragment.header.set_ticket_id(again.id());
  fragment.header.set_sequence(2);
  fragment.header.set_env_steps_collected(2 * kFragmentSteps);
  EXPECT_EQ(collector_.Receive(kAda, ReceivedFragment(fragment).frame(), 500).result(), v1::RECEIPT_RESULT_ACCEPTED);
  EXPECT_EQ(MetricValue(registry_, "skein_learner_received_bytes_total"), 1000);
  // 72 bytes of zeros, 3 x 2 x 3 floats, in a frame.
  EXPECT_GT(MetricValue(registry_, "skein_learner_received_uncompressed_bytes_total"), 1000);
}

}  // namespace
}  // namespace skein
