// SPDX-License-Identifier: Apache-2.0
#include "actor/frame_bytes.h"

#include <memory>
#include <vector>

#include "grpcpp/support/slice.h"
#include "gtest/gtest.h"
#include "tests/learner/sample_fragment.h"

namespace skein {
namespace {

std::string Joined(const grpc::ByteBuffer& bytes) {
  std::vector<grpc::Slice> slices;
  EXPECT_TRUE(bytes.Dump(&slices).ok());
  std::string joined;
  for (const grpc::Slice& slice : slices) joined.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  return joined;
}

SampleFragment FilledFragment(int64_t steps) {
  SampleFragment fragment = MakeSampleFragment(MakeSampleShape({.T = steps}), 3, {{0, 1, true}, {1, 0, false}});
  fragment.header.set_actor_id("ada");
  fragment.header.set_generation(7);
  fragment.header.set_first_env(12);
  fragment.header.set_restarted_episodes(3);
  fragment.header.set_failed_episodes(2);
  fragment.header.set_env_steps(6);
  fragment.header.mutable_stage_seconds()->set_env_step(0.25);
  return fragment;
}

TEST(FrameBytes, AreTheFrame) {
  for (const int64_t steps : {2, 200}) {
    const SampleFragment fragment = FilledFragment(steps);
    EXPECT_TRUE(Joined(FrameBytes(fragment.ToFragment())) == fragment.Bytes());
  }
}

// A field that is added to the header must be set by FilledFragment, or it could be forgotten unnoticed.
TEST(FrameBytes, KeepEveryFieldOfTheHeader) {
  const Fragment fragment = FilledFragment(2).ToFragment();
  std::vector<const google::protobuf::FieldDescriptor*> set;
  fragment.header.GetReflection()->ListFields(fragment.header, &set);
  EXPECT_EQ(static_cast<int>(set.size()), fragment.header.GetDescriptor()->field_count());
  const ReceivedFragment received(Joined(FrameBytes(fragment)), 100);
  EXPECT_EQ(received.frame().header.fragment().SerializeAsString(), fragment.header.SerializeAsString());
  EXPECT_EQ(received.frame().block_bytes, fragment.block->size());
}

TEST(FrameBytes, OfNoFieldsAreAFragment) {
  Fragment fragment;
  fragment.block = std::make_shared<const std::string>();
  const ReceivedFragment received(Joined(FrameBytes(fragment)), 0);
  EXPECT_TRUE(received.frame().header.has_fragment());
}

TEST(FrameBytes, ShareTheBlocksMemoryAndKeepIt) {
  Fragment fragment = FilledFragment(200).ToFragment();
  const std::string want = FrameHead(fragment.header) + *fragment.block;
  const char* const block = fragment.block->data();
  const std::weak_ptr<const std::string> alive = fragment.block;
  {
    const grpc::ByteBuffer bytes = FrameBytes(fragment);
    fragment = {};
    EXPECT_FALSE(alive.expired());
    std::vector<grpc::Slice> slices;
    ASSERT_TRUE(bytes.Dump(&slices).ok());
    ASSERT_EQ(slices.size(), 2u);
    EXPECT_EQ(reinterpret_cast<const char*>(slices[1].begin()), block);
    EXPECT_TRUE(Joined(bytes) == want);
  }
  EXPECT_TRUE(alive.expired());
}

TEST(FrameBytes, OfASmallMessageAreItsFrame) {
  v1::CollectRequest request;
  request.mutable_goodbye()->set_env_steps_collected(77);
  EXPECT_EQ(Joined(FrameBytes(request)), FrameHead(request));
}

}  // namespace
}  // namespace skein
