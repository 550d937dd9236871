// SPDX-License-Identifier: Apache-2.0
#include "learner/collect/wire_batch.h"

#include <random>

#include "base/number/bfloat16.h"
#include "base/number/number_bounds.h"
#include "gtest/gtest.h"
#include "tests/learner/sample_batch.h"

namespace skein {
namespace {

Pieces Cut(const std::string& bytes, size_t piece_bytes) {
  Pieces pieces;
  for (size_t at = 0; at < bytes.size(); at += piece_bytes) {
    pieces.emplace_back(bytes.data() + at, std::min(piece_bytes, bytes.size() - at));
    pieces.emplace_back();  // An empty piece in between.
  }
  return pieces;
}

v1::CollectRequest SampleRequest() {
  v1::CollectRequest request;
  *request.mutable_batch() = MakeSampleBatch(MakeSampleShape({}), 5, {{0, 0, true}});
  request.mutable_batch()->set_actor_id("ada");
  request.mutable_batch()->mutable_stage_seconds()->set_wait(0.5);
  return request;
}

TEST(WireRequest, HoldsWhatProtobufReadsHoweverItIsCut) {
  const v1::CollectRequest request = SampleRequest();
  const std::string bytes = request.SerializeAsString();
  for (size_t piece_bytes = 1; piece_bytes <= bytes.size(); piece_bytes = piece_bytes * 2 + 1) {
    const Pieces pieces = Cut(bytes, piece_bytes);
    const auto parsed = WireRequest::Parse(pieces);
    ASSERT_TRUE(parsed.ok()) << parsed.status();
    ASSERT_TRUE(parsed->has_batch);
    v1::TrajectoryBatch whole = parsed->batch.header;
    for (const WireTensor& tensor : parsed->batch.tensors) {
      v1::Tensor* added = whole.add_tensors();
      *added = tensor.header;
      std::string data(tensor.bytes, '\0');
      PieceReader(tensor.data).Read(data.data(), data.size());
      added->set_data(data);
    }
    EXPECT_EQ(whole.SerializeAsString(), request.batch().SerializeAsString());
  }
}

TEST(FloatReader, ReadsRowsHoweverTheyAreCutAndTellsTheFirstBeyond) {
  constexpr size_t kRows = 10, kWidth = 9, kStride = 11;
  std::vector<float> values(kRows * kWidth);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  const std::string bytes(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
  for (size_t piece_bytes : {1, 3, 4, 6, 30, 64, 400}) {
    const Pieces pieces = Cut(bytes, piece_bytes);
    FloatReader reader({pieces, 0}, false);
    std::vector<float> read(kRows * kStride, -1);
    EXPECT_EQ(reader.ReadRows(2, kWidth, kStride, 50, read.data()), 2 * kWidth);
    EXPECT_EQ(reader.ReadRows(7, kWidth, kStride, 50, &read[2 * kStride]), 33u);  // 51, which comes 33 after 18.
    EXPECT_EQ(reader.ReadRows(1, kWidth, kStride, 89, &read[9 * kStride]), kWidth);
    for (size_t i = 0; i < read.size(); ++i) {
      const size_t row = i / kStride, column = i % kStride;
      EXPECT_EQ(read[i], column < kWidth ? values[row * kWidth + column] : -1) << piece_bytes;
    }
  }
}

TEST(FloatReader, ReadsNothingOfRowsThatHaveNothing) {
  const Pieces pieces = Cut("abcdefgh", 4);
  FloatReader reader({pieces, 0}, false);
  EXPECT_EQ(reader.ReadRows(3, 0, 0, 1, nullptr), 0u);
  EXPECT_EQ(reader.ReadRows(0, 3, 3, 1, nullptr), 0u);
}

TEST(FloatReader, TellsTheFirstBeyondOfNarrowOnes) {
  std::vector<float> values(3000, 1);
  values[1500] = values[2999] = 1e9f;
  std::vector<uint16_t> narrow(values.size());
  ToBfloat16(values.data(), values.size(), narrow.data());
  const std::string bytes(reinterpret_cast<const char*>(narrow.data()), narrow.size() * sizeof(uint16_t));
  const Pieces pieces = Cut(bytes, 101);
  for (size_t width : {3000, 30}) {
    FloatReader reader({pieces, 0}, true);
    std::vector<float> read(values.size());
    EXPECT_EQ(reader.ReadRows(read.size() / width, width, width, kNumberBound, read.data()), 1500u);
    EXPECT_EQ(read[1499], 1);
    EXPECT_EQ(read[2998], 1);
    EXPECT_GT(read[2999], 0.9e9f);
  }
}

TEST(WireRequest, ReadsSmallMessages) {
  v1::CollectRequest request;
  request.mutable_hello()->set_run_id("run");
  const std::string bytes = request.SerializeAsString();
  const Pieces pieces = Cut(bytes, 2);
  const auto parsed = WireRequest::Parse(pieces);
  ASSERT_TRUE(parsed.ok());
  EXPECT_FALSE(parsed->has_batch);
  EXPECT_EQ(parsed->other.hello().run_id(), "run");
  EXPECT_TRUE(WireRequest::Parse({}).ok());  // An empty message.
}

TEST(WireRequest, RefusesTwoMessagesInOne) {
  v1::CollectRequest goodbye;
  goodbye.mutable_goodbye()->set_env_steps_collected(1);
  const std::string bytes = SampleRequest().SerializeAsString() + goodbye.SerializeAsString();
  EXPECT_EQ(WireRequest::Parse(Cut(bytes, 100)).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(WireRequest, RefusesEveryTruncation) {
  const std::string bytes = SampleRequest().SerializeAsString();
  for (size_t size = 1; size < bytes.size(); ++size) {
    const std::string cut = bytes.substr(0, size);
    EXPECT_FALSE(WireRequest::Parse(Cut(cut, 64)).ok()) << size;
  }
}

TEST(WireRequest, RefusesALengthThatReachesBeyondTheMessage) {
  // Field 2, length 2^31 - 1, and nothing more; then a tensor that claims more than its batch has.
  const std::string huge("\x12\xff\xff\xff\xff\x07", 6), nested("\x12\x04\x52\x7f\x22\x7f", 6);
  for (const std::string& bytes : {huge, nested}) {
    EXPECT_EQ(WireRequest::Parse(Cut(bytes, 3)).status().code(), absl::StatusCode::kInvalidArgument);
  }
}

TEST(WireRequest, RefusesMoreTensorsThanAnybodyNeeds) {
  for (const int tensors : {64, 65}) {
    v1::CollectRequest request;
    for (int i = 0; i < tensors; ++i) request.mutable_batch()->add_tensors();
    EXPECT_EQ(WireRequest::Parse(Cut(request.SerializeAsString(), 10)).ok(), tensors == 64);
  }
}

// An extent of a shape is a byte on the wire and eight here, an unknown field two and sixteen.
TEST(WireRequest, RefusesHeadersLargerThanAnyNeedToBe) {
  for (const int extents : {100, 5000}) {
    v1::CollectRequest request = SampleRequest();
    for (int i = 0; i < extents; ++i) request.mutable_batch()->mutable_tensors(0)->add_shape(1);
    EXPECT_EQ(WireRequest::Parse(Cut(request.SerializeAsString(), 100)).ok(), extents == 100);
  }
  for (const int bytes : {100, 5000}) {
    v1::CollectRequest request = SampleRequest();
    request.mutable_batch()->set_actor_id(std::string(bytes, 'a'));
    EXPECT_EQ(WireRequest::Parse(Cut(request.SerializeAsString(), 100)).ok(), bytes == 100);
  }
  for (const int bytes : {1000, 70000}) {
    v1::CollectRequest request;
    request.mutable_hello()->set_run_id(std::string(bytes, 'r'));
    EXPECT_EQ(WireRequest::Parse(Cut(request.SerializeAsString(), 100)).ok(), bytes == 1000);
  }
}

TEST(WireRequest, IgnoresFieldsOfAVersionToComeAndRefusesWhatNoneHas) {
  // Field 1000 as varint, 64 bits, bytes and 32 bits.
  for (const std::string& field :
       {std::string("\xc0\x3e\x05", 3), std::string("\xc1\x3e\x01\x02\x03\x04\x05\x06\x07\x08", 10),
        std::string("\xc2\x3e\x02xy", 5), std::string("\xc5\x3e\x01\x02\x03\x04", 6)}) {
    EXPECT_TRUE(WireRequest::Parse(Cut(SampleRequest().SerializeAsString() + field, 50)).ok());
  }
  // Field 2 with a bit beyond the 32 of a tag, which is forgotten by who reads it carelessly.
  EXPECT_FALSE(WireRequest::Parse(Cut(std::string("\x92\x80\x80\x80\x80\x01\x00", 7), 50)).ok());
  const std::string group("\xc3\x3e\xc4\x3e", 4);
  EXPECT_FALSE(WireRequest::Parse(Cut(SampleRequest().SerializeAsString() + group, 50)).ok());
}

// Whatever bytes are changed, what is read lies within what was received (sanitizers watch).
TEST(WireRequest, StaysWithinWhatItWasGiven) {
  const FragmentShape shape = MakeSampleShape({});
  const std::string good = SampleRequest().SerializeAsString();
  std::mt19937 random(7);
  for (int round = 0; round < 3000; ++round) {
    std::string bytes = good;
    for (int i = 0; i < 3; ++i) bytes[random() % bytes.size()] = static_cast<char>(random());
    const Pieces pieces = Cut(bytes, 1 + random() % 100);
    const auto parsed = WireRequest::Parse(pieces);
    if (!parsed.ok() || !parsed->has_batch) continue;
    for (const WireTensor& tensor : parsed->batch.tensors) {
      ASSERT_LE(tensor.bytes, bytes.size());
      std::string data(tensor.bytes, '\0');
      PieceReader(tensor.data).Read(data.data(), data.size());
    }
    CheckedBatch checked;
    CheckBatch(parsed->batch, shape, &checked).IgnoreError();
  }
}

}  // namespace
}  // namespace skein
