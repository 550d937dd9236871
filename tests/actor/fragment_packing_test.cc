// SPDX-License-Identifier: Apache-2.0
#include "actor/fragment_packing.h"

#include <string>

#include "base/number/bfloat16.h"
#include "gtest/gtest.h"
#include "tests/learner/sample_fragment.h"

namespace skein {
namespace {

const std::vector<SampleEnd> kEnds = {{0, 1, true}, {1, 0, false}, {7, 0, true}};

constexpr float kOffset = 1000;  // From 256 on, bfloat16 has no odd numbers.

FragmentShape Shape(v1::DataType obs_dtype = v1::DATA_TYPE_FLOAT32) {
  FragmentShape shape = MakeSampleShape({.T = 300, .E = 2, .A = 2, .O = 3, .D = 2, .G = 5});
  shape.obs_dtype = obs_dtype;
  return shape;
}

v1::TransportConfig Transport(v1::Precision precision, v1::Compression compression) {
  v1::TransportConfig transport;
  transport.set_trajectory_precision(precision);
  transport.set_trajectory_compression(compression);
  return transport;
}

Fragment Packed(const v1::TransportConfig& transport) {
  Fragment fragment = MakeSampleFragment(Shape(), kOffset, kEnds).ToFragment();
  PackFragment(MakeSchema(Shape()), transport, &fragment);
  return fragment;
}

TEST(PackFragment, DoesNothingUnlessItIsAskedTo) {
  Fragment fragment = MakeSampleFragment(Shape(), kOffset, kEnds).ToFragment();
  const std::string header = fragment.header.SerializeAsString();
  const auto block = fragment.block;
  PackFragment(MakeSchema(Shape()), {}, &fragment);
  PackFragment(MakeSchema(Shape()), Transport(v1::PRECISION_FP32, v1::COMPRESSION_NONE), &fragment);
  EXPECT_EQ(fragment.header.SerializeAsString(), header);
  EXPECT_EQ(fragment.block, block);  // The same memory.
  EXPECT_EQ(fragment.saved_bytes, 0u);
}

TEST(PackFragment, RoundsWhatIsObservedAndNothingElse) {
  const Fragment plain = Packed({}), fragment = Packed(Transport(v1::PRECISION_BF16, v1::COMPRESSION_NONE));
  const FragmentValues want(plain, Shape()), got(fragment, Shape(v1::DATA_TYPE_BFLOAT16));
  int observed = 0;
  for (const Field& field : MakeSchema(Shape()).fields) {
    const v1::Tensor before = FindField(plain, field.name), after = FindField(fragment, field.name);
    if (field.observed) {
      ++observed;
      EXPECT_EQ(after.dtype(), v1::DATA_TYPE_BFLOAT16);
      EXPECT_EQ(after.data().size() * 2, before.data().size());
      const auto values = want.floats(field.name);
      std::vector<float> rounded(values.begin(), values.end());
      RoundToBfloat16(rounded.data(), rounded.size());
      EXPECT_EQ(got.floats(field.name), absl::MakeConstSpan(rounded)) << field.name;
    } else {
      EXPECT_EQ(after.SerializeAsString(), before.SerializeAsString()) << field.name;
    }
  }
  EXPECT_EQ(observed, 4);
}

TEST(PackFragment, CompressionChangesNoValue) {
  for (const v1::Precision precision : {v1::PRECISION_FP32, v1::PRECISION_BF16}) {
    const Fragment plain = Packed(Transport(precision, v1::COMPRESSION_NONE));
    const Fragment fragment = Packed(Transport(precision, v1::COMPRESSION_ZSTD));
    for (const v1::FieldHead& head : fragment.header.fields()) {
      if (head.name() == "obs") {
        EXPECT_EQ(head.compression(), v1::COMPRESSION_ZSTD);
      } else if (head.name() == "truncated") {
        EXPECT_EQ(head.compression(), v1::COMPRESSION_UNSPECIFIED);  // 600 bytes.
      }
    }
    EXPECT_LT(fragment.block->size(), plain.block->size());
    const bool narrow = precision == v1::PRECISION_BF16;
    const FragmentShape shape = Shape(narrow ? v1::DATA_TYPE_BFLOAT16 : v1::DATA_TYPE_FLOAT32);
    const FragmentValues want(plain, shape), got(fragment, shape);
    for (const auto& [name, values] : want.all()) EXPECT_EQ(got.all().at(name), values) << name;
    // Actor and learner count the same.
    EXPECT_EQ(got.saved_bytes(), fragment.saved_bytes);
    EXPECT_EQ(want.saved_bytes(), plain.saved_bytes);
  }
}

}  // namespace
}  // namespace skein
