// SPDX-License-Identifier: Apache-2.0
#include "actor/batch_packing.h"

#include <set>
#include <string>

#include "actor/request_bytes.h"
#include "base/number/bfloat16.h"
#include "base/number/tensor_packing.h"
#include "grpcpp/support/slice.h"
#include "gtest/gtest.h"
#include "tests/learner/sample_batch.h"

namespace skein {
namespace {

const std::vector<SampleEnd> kEnds = {{0, 1, true}, {1, 0, false}, {7, 0, true}};

constexpr float kOffset = 1000;  // From 256 on, bfloat16 has no odd numbers.

FragmentShape Shape(v1::DataType obs_dtype = v1::DATA_TYPE_FLOAT32) {
  FragmentShape shape = MakeSampleShape({.T = 300, .E = 2, .A = 2, .O = 3, .D = 2});
  shape.obs_dtype = obs_dtype;
  return shape;
}

v1::TransportConfig Transport(v1::Precision precision, v1::Compression compression) {
  v1::TransportConfig transport;
  transport.set_trajectory_precision(precision);
  transport.set_trajectory_compression(compression);
  return transport;
}

std::vector<float> Rounded(std::vector<float> values) {
  RoundToBfloat16(values.data(), values.size());
  return values;
}

TEST(PackBatch, DoesNothingUnlessItIsAskedTo) {
  v1::TrajectoryBatch batch = MakeSampleBatch(Shape(), kOffset, kEnds);
  const std::string before = batch.SerializeAsString();
  const char* obs = FindTensor(&batch, "obs")->data().data();
  PackBatch({}, &batch);
  PackBatch(Transport(v1::PRECISION_FP32, v1::COMPRESSION_NONE), &batch);
  EXPECT_TRUE(batch.SerializeAsString() == before);
  EXPECT_EQ(FindTensor(&batch, "obs")->data().data(), obs);  // The same memory.
}

TEST(PackBatch, RoundsObservationsAndNothingElse) {
  const v1::TrajectoryBatch plain = MakeSampleBatch(Shape(), kOffset, kEnds);
  v1::TrajectoryBatch batch = plain;
  PackBatch(Transport(v1::PRECISION_BF16, v1::COMPRESSION_NONE), &batch);
  const std::set<std::string> narrow = {"obs", "final_obs"};
  for (int i = 0; i < batch.tensors_size(); ++i) {
    if (narrow.count(batch.tensors(i).name()) > 0) {
      EXPECT_EQ(batch.tensors(i).dtype(), v1::DATA_TYPE_BFLOAT16);
      EXPECT_EQ(batch.tensors(i).data().size() * 2, plain.tensors(i).data().size());
    } else {
      EXPECT_EQ(batch.tensors(i).SerializeAsString(), plain.tensors(i).SerializeAsString());
    }
  }
  const BatchValues want(plain, Shape()), got(batch, Shape(v1::DATA_TYPE_BFLOAT16));
  EXPECT_EQ(got.obs, Rounded(want.obs));
  EXPECT_EQ(got.final_obs, Rounded(want.final_obs));
  EXPECT_EQ(got.reward, want.reward);
}

TEST(PackBatch, CompressionChangesNoValue) {
  for (const v1::Precision precision : {v1::PRECISION_FP32, v1::PRECISION_BF16}) {
    v1::TrajectoryBatch plain = MakeSampleBatch(Shape(), kOffset, kEnds);
    v1::TrajectoryBatch batch = plain;
    PackBatch(Transport(precision, v1::COMPRESSION_NONE), &plain);
    PackBatch(Transport(precision, v1::COMPRESSION_ZSTD), &batch);
    EXPECT_EQ(FindTensor(&batch, "obs")->compression(), v1::COMPRESSION_ZSTD);
    EXPECT_EQ(FindTensor(&batch, "truncated")->compression(), v1::COMPRESSION_UNSPECIFIED);  // 600 bytes.
    EXPECT_LT(batch.ByteSizeLong(), plain.ByteSizeLong());
    const bool narrow = precision == v1::PRECISION_BF16;
    const FragmentShape shape = Shape(narrow ? v1::DATA_TYPE_BFLOAT16 : v1::DATA_TYPE_FLOAT32);
    const BatchValues want(plain, shape), got(batch, shape);
    EXPECT_EQ(got.obs, want.obs);
    EXPECT_EQ(got.action, want.action);
    EXPECT_EQ(got.log_prob, want.log_prob);
    EXPECT_EQ(got.reward, want.reward);
    EXPECT_EQ(got.final_obs, want.final_obs);
    EXPECT_EQ(got.env_state.data(), want.env_state.data());
    // Actor and learner count the same.
    EXPECT_EQ(got.saved_bytes, SavedBytes(batch.tensors()));
    EXPECT_EQ(want.saved_bytes, SavedBytes(plain.tensors()));
  }
}

TEST(PackBatch, WhatItPacksIsSentAsItIs) {
  auto request = std::make_shared<v1::CollectRequest>();
  *request->mutable_batch() = MakeSampleBatch(Shape(), kOffset, kEnds);
  request->mutable_batch()->mutable_stage_seconds()->set_build(0.5);
  PackBatch(Transport(v1::PRECISION_BF16, v1::COMPRESSION_ZSTD), request->mutable_batch());
  std::vector<grpc::Slice> slices;
  ASSERT_TRUE(BatchBytes(request).Dump(&slices).ok());
  std::string joined;
  for (const grpc::Slice& slice : slices) joined.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  v1::CollectRequest read;
  ASSERT_TRUE(read.ParseFromString(joined));
  EXPECT_TRUE(read.SerializeAsString() == request->SerializeAsString());
}

}  // namespace
}  // namespace skein
