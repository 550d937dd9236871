// SPDX-License-Identifier: Apache-2.0
#include "actor/request_bytes.h"

#include <vector>

#include "grpcpp/support/slice.h"
#include "gtest/gtest.h"
#include "tests/learner/sample_batch.h"

namespace skein {
namespace {

std::string Joined(const grpc::ByteBuffer& bytes) {
  std::vector<grpc::Slice> slices;
  EXPECT_TRUE(bytes.Dump(&slices).ok());
  std::string joined;
  for (const grpc::Slice& slice : slices) joined.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  return joined;
}

std::shared_ptr<v1::CollectRequest> MakeRequest(const SampleSizes& sizes) {
  auto request = std::make_shared<v1::CollectRequest>();
  v1::TrajectoryBatch& batch = *request->mutable_batch();
  batch = MakeSampleBatch(MakeSampleShape(sizes), 3, {{0, 1, true}, {1, 0, false}});
  batch.set_actor_id("ada");
  batch.set_generation(7);
  batch.set_first_env(12);
  batch.mutable_stage_seconds()->set_env_step(0.25);
  return request;
}

// A field that is added to the message must be set by MakeRequest, or it could be forgotten unnoticed.
TEST(BatchBytes, AreTriedWithEveryField) {
  const auto request = MakeRequest({});
  const v1::TrajectoryBatch& batch = request->batch();
  std::vector<const google::protobuf::FieldDescriptor*> set;
  batch.GetReflection()->ListFields(batch, &set);
  EXPECT_EQ(static_cast<int>(set.size()), batch.GetDescriptor()->field_count());
}

TEST(BatchBytes, AreTheMessage) {
  // Small tensors are copied, those of 4 KiB and more (obs: 201 x 2 x 3 floats) are shared.
  for (const int64_t steps : {2, 200}) {
    const auto request = MakeRequest({.T = steps});
    v1::CollectRequest read;
    ASSERT_TRUE(read.ParseFromString(Joined(BatchBytes(request))));
    EXPECT_EQ(read.SerializeAsString(), request->SerializeAsString());
  }
}

TEST(BatchBytes, AnEmptyBatchIsABatch) {
  auto request = std::make_shared<v1::CollectRequest>();
  request->mutable_batch();
  v1::CollectRequest read;
  ASSERT_TRUE(read.ParseFromString(Joined(BatchBytes(request))));
  EXPECT_TRUE(read.has_batch());
}

TEST(BatchBytes, ShareTheMemoryOfLargeTensorsAndKeepIt) {
  auto request = MakeRequest({.T = 200});
  const char* obs = FindTensor(request->mutable_batch(), "obs")->data().data();
  const std::string want = request->SerializeAsString();
  std::weak_ptr<v1::CollectRequest> alive = request;
  {
    const grpc::ByteBuffer bytes = BatchBytes(std::move(request));
    EXPECT_FALSE(alive.expired());
    std::vector<grpc::Slice> slices;
    ASSERT_TRUE(bytes.Dump(&slices).ok());
    int shared = 0;
    for (const grpc::Slice& slice : slices) shared += reinterpret_cast<const char*>(slice.begin()) == obs;
    EXPECT_EQ(shared, 1);
    v1::CollectRequest read, same;
    ASSERT_TRUE(read.ParseFromString(Joined(bytes)));
    ASSERT_TRUE(same.ParseFromString(want));
    EXPECT_EQ(read.SerializeAsString(), same.SerializeAsString());
  }
  EXPECT_TRUE(alive.expired());
}

TEST(RequestBytes, AreTheMessage) {
  v1::CollectRequest request;
  request.mutable_goodbye()->set_env_steps_collected(77);
  EXPECT_EQ(Joined(RequestBytes(request)), request.SerializeAsString());
}

}  // namespace
}  // namespace skein
