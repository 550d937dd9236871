// SPDX-License-Identifier: Apache-2.0
#include "trajectory/frame.h"

#include <algorithm>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/old_hello.h"

namespace skein {
namespace {

using testing::HasSubstr;

Pieces Cut(const std::string& bytes, size_t piece_bytes) {
  Pieces pieces;
  for (size_t at = 0; at < bytes.size(); at += piece_bytes) {
    pieces.emplace_back(bytes.data() + at, std::min(piece_bytes, bytes.size() - at));
    pieces.emplace_back();  // An empty piece in between.
  }
  return pieces;
}

v1::FragmentHeader SampleHeader() {
  v1::FragmentHeader header;
  header.set_actor_id("ada");
  header.set_sequence(7);
  header.mutable_stage_seconds()->set_wait(0.5);
  header.add_fields()->set_name("obs");
  return header;
}

void ExpectRefused(const std::string& bytes, const std::string& message) {
  const absl::Status status = ReadFrame(Cut(bytes, 3)).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr(message));
}

TEST(Frame, IsReadWhereItLiesHoweverItIsCut) {
  const std::string block = "0123456789abcdef";
  const std::string bytes = FrameHead(SampleHeader()) + block;
  for (size_t piece_bytes = 1; piece_bytes <= bytes.size(); ++piece_bytes) {
    const Pieces pieces = Cut(bytes, piece_bytes);
    const auto frame = ReadFrame(pieces);
    ASSERT_TRUE(frame.ok()) << frame.status();
    EXPECT_EQ(frame->header.fragment().SerializeAsString(), SampleHeader().SerializeAsString());
    ASSERT_EQ(frame->block_bytes, block.size());
    std::string read(block.size(), '\0');
    PieceReader(frame->block).Read(read.data(), read.size());
    EXPECT_EQ(read, block);
    const char* const first = frame->block.Run().data();
    EXPECT_TRUE(std::any_of(pieces.begin(), pieces.end(), [first](const auto& piece) {
      return first >= piece.data() && first < piece.data() + piece.size();
    }));
  }
}

TEST(Frame, CarriesSmallMessages) {
  v1::CollectRequest request;
  request.mutable_hello()->set_run_id("run");
  const std::string bytes = FrameHead(request);
  const Pieces pieces = Cut(bytes, 2);
  const auto frame = ReadFrame(pieces);
  ASSERT_TRUE(frame.ok()) << frame.status();
  EXPECT_EQ(frame->header.hello().run_id(), "run");
  EXPECT_EQ(frame->block_bytes, 0u);
  EXPECT_TRUE(ReadFrame(Cut(FrameHead(v1::CollectRequest()), 5)).ok());  // An empty message.
}

TEST(Frame, BeginsAsWritten) {
  // Magic, version, 4 bytes of size, then field 3 (goodbye) with field 1 = 77.
  v1::CollectRequest request;
  request.mutable_goodbye()->set_env_steps_collected(77);
  EXPECT_EQ(FrameHead(request), std::string("SKF\x02\x04\x00\x00\x00\x1a\x02\x08\x4d", 12));
}

TEST(Frame, RefusesWhatIsNone) {
  ExpectRefused("", "message: is no frame");
  ExpectRefused("SKF", "message: is no frame");
  ExpectRefused("GET / HTTP/1.1\r\n\r\n", "message: is no frame");
  ExpectRefused(std::string(500, '\xff'), "message: is no frame");
  ExpectRefused(std::string("SKF\x03\x00\x00\x00\x00", 8), "message: is a frame of version 3, want 2");
}

TEST(Frame, RefusesEveryTruncationOfItsHeader) {
  const std::string bytes = FrameHead(SampleHeader());
  for (size_t size = 0; size < bytes.size(); ++size) ExpectRefused(bytes.substr(0, size), "message: ");
}

TEST(Frame, RefusesAHeaderThatIsDamagedOrReachesBeyondTheMessage) {
  ExpectRefused(std::string("SKF\x02\x05\x00\x00\x00\x1a\x02\x08\x4d", 12), "is cut off within its header");
  ExpectRefused(std::string("SKF\x02\xff\xff\xff\xff\x1a\x02\x08\x4d", 12), "header has 4294967295 bytes");
  ExpectRefused(std::string("SKF\x02\x04\x00\x00\x00\x1a\x7f\x08\x4d", 12), "its header is damaged");
  ExpectRefused(std::string("SKF\x02\x01\x00\x00\x00\x1b", 9), "its header is damaged");  // A group without end.
}

TEST(Frame, RefusesAHeaderLargerThanAnyNeedsToBe) {
  v1::CollectRequest request;
  for (const size_t bytes : {size_t{1000}, kMaxHeaderBytes + 1}) {
    request.mutable_hello()->set_run_id(std::string(bytes, 'r'));
    EXPECT_EQ(ReadFrame(Cut(FrameHead(request), 100)).ok(), bytes == 1000);
  }
}

TEST(Frame, RefusesABlockWithoutAFragment) {
  v1::CollectRequest request;
  request.mutable_goodbye()->set_env_steps_collected(1);
  ExpectRefused(FrameHead(request) + "x", "has a block of fields and no fragment");
}

TEST(Frame, IgnoresHeaderFieldsOfAVersionToCome) {
  // Field 1000 as varint, 64 bits, bytes and 32 bits.
  const std::string known = v1::CollectRequest().SerializeAsString();
  for (const std::string& field :
       {std::string("\xc0\x3e\x05", 3), std::string("\xc1\x3e\x01\x02\x03\x04\x05\x06\x07\x08", 10),
        std::string("\xc2\x3e\x02xy", 5), std::string("\xc5\x3e\x01\x02\x03\x04", 6)}) {
    std::string bytes("SKF\x02", 4);
    bytes += static_cast<char>(field.size());
    EXPECT_TRUE(ReadFrame(Cut(bytes + std::string(3, '\0') + field, 50)).ok());
  }
}

TEST(Frame, ThatIsMissingLeavesTheHelloOfTheProtocolBefore) {
  const std::string bytes = OldHello();
  EXPECT_FALSE(ReadFrame(Cut(bytes, 4)).ok());
  const auto hello = HelloWithoutFrame(Cut(bytes, 4));
  ASSERT_TRUE(hello);
  EXPECT_EQ(hello->protocol_major(), 1u);
  EXPECT_EQ(hello->protocol_minor(), 0u);
  EXPECT_EQ(hello->actor_id(), "ada");
  EXPECT_FALSE(HelloWithoutFrame(Cut("GET / HTTP/1.1\r\n\r\n", 4)));
  EXPECT_FALSE(HelloWithoutFrame(Cut(FrameHead(SampleHeader()), 4)));
}

}  // namespace
}  // namespace skein
