// SPDX-License-Identifier: Apache-2.0
#include "learner/network/policy_snapshot.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "policy/snapshot.h"
#include "tests/learner/torch_policy.h"

namespace skein {
namespace {

using testing::HasSubstr;

ActorCriticOptions SmallOptions(bool discrete = false) {
  ActorCriticOptions options;
  options.obs_size = 3;
  options.action_size = 2;
  options.discrete = discrete;
  options.hidden = {5, 4};
  options.policy_head_scale = 1;
  return options;
}

ObsScale SomeScale() { return {torch::tensor({1.0f, -2.0f, 0.5f}), torch::tensor({2.0f, 0.25f, 1.0f})}; }

torch::Tensor SomeObs(int64_t rows) { return (torch::arange(rows * 3, torch::kFloat32) * 1.3).sin().view({rows, 3}); }

v1::PolicySnapshot SomeSnapshot() { return MakeSnapshot(7, ActorCritic(SmallOptions(), 1), SomeScale()); }

// Index of "log_std" and of "obs_normalizer.mean" in SomeSnapshot().
constexpr int kLogStd = 6, kMean = 7;

// ReadSnapshot of a snapshot that was changed after its digest was computed; `sealed` computes it again.
absl::Status LoadStatus(v1::PolicySnapshot snapshot, bool sealed = true) {
  if (sealed) snapshot.set_digest(SnapshotDigest(snapshot));
  return ReadSnapshot(snapshot, SmallOptions()).status();
}

void ExpectInvalid(const absl::Status& status, const std::string& part) {
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr(part));
}

TEST(MakeActorCriticOptions, TakesSizesFromTheSpecAndTheRestFromTheConfig) {
  EnvSpec spec;
  spec.obs_size = 17;
  spec.action_size = 6;
  spec.discrete = true;
  spec.global_state_size = 30;
  v1::ModelConfig config;
  config.add_hidden(32);
  config.add_hidden(16);
  config.set_activation(v1::ACTIVATION_ELU);
  config.set_init_gain(1.25);
  config.set_policy_head_scale(0.5);
  config.set_init_log_std(-1);
  config.set_central_critic(true);
  const ActorCriticOptions options = MakeActorCriticOptions(config, spec);
  EXPECT_EQ(options.obs_size, 17);
  EXPECT_EQ(options.action_size, 6);
  EXPECT_TRUE(options.discrete);
  EXPECT_EQ(options.critic_input_size, 47);  // An observation and the global state.
  EXPECT_EQ(options.hidden, (std::vector<int64_t>{32, 16}));
  EXPECT_EQ(options.activation, ActivationKind::kElu);
  EXPECT_FALSE(options.shared_trunk);
  EXPECT_EQ(options.init_gain, 1.25);
  EXPECT_EQ(options.policy_head_scale, 0.5);
  EXPECT_EQ(options.init_log_std, -1);
}

TEST(MakeActorCriticOptions, ASharedTrunkRulesOutACentralCritic) {
  EnvSpec spec;
  spec.global_state_size = 30;
  v1::ModelConfig config;
  config.set_central_critic(true);
  config.set_shared_trunk(true);
  const ActorCriticOptions options = MakeActorCriticOptions(config, spec);
  EXPECT_TRUE(options.shared_trunk);
  EXPECT_EQ(options.critic_input_size, 0);
}

TEST(Policy, HeadNormalisesRawObservationsWithoutGradients) {
  const auto network = std::make_shared<ActorCritic>(SmallOptions(), 1);
  const auto policy = PolicyOf(3, *network, SomeScale());
  const torch::Tensor head = Head(*policy, SomeObs(4));
  EXPECT_EQ(policy->version(), 3u);
  EXPECT_FALSE(head.requires_grad());
  EXPECT_EQ(head.scalar_type(), torch::kFloat32);
  EXPECT_TRUE(head.allclose(network->PolicyHead(SomeScale().Apply(SomeObs(4))), 1e-5, 1e-6));
}

TEST(Policy, HeadOfAnyNetworkIsTheNetworks) {
  for (const bool shared_trunk : {false, true}) {
    for (const std::vector<int64_t>& hidden : {std::vector<int64_t>{}, {40}, {33, 64, 17}}) {
      ActorCriticOptions options = SmallOptions();
      options.hidden = hidden;
      options.shared_trunk = shared_trunk;
      options.activation = ActivationKind::kElu;
      const auto network = std::make_shared<ActorCritic>(options, 1);
      for (const int64_t rows : {0, 1, 19}) {
        EXPECT_TRUE(Head(*PolicyOf(3, *network, SomeScale()), SomeObs(rows))
                        .allclose(network->PolicyHead(SomeScale().Apply(SomeObs(rows))), 1e-5, 1e-6));
      }
    }
  }
}

TEST(Policy, HeadOfARowDoesNotDependOnTheOthers) {
  ActorCriticOptions options = SmallOptions();
  options.hidden = {64, 32};
  const auto policy = PolicyOf(3, ActorCritic(options, 1), SomeScale());
  const torch::Tensor all = Head(*policy, SomeObs(23));
  for (int64_t i = 0; i < 23; ++i) EXPECT_TRUE(Head(*policy, SomeObs(23).narrow(0, i, 1)).equal(all.narrow(0, i, 1)));
}

TEST(Policy, HeadAgreesBetweenThreads) {
  const auto policy = PolicyOf(3, ActorCritic(SmallOptions(), 1), SomeScale());
  const torch::Tensor want = Head(*policy, SomeObs(4));
  std::vector<torch::Tensor> got(4);
  std::vector<std::thread> threads;
  for (torch::Tensor& head : got) {
    threads.emplace_back([&] {
      for (int i = 0; i < 20; ++i) head = Head(*policy, SomeObs(4));
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const torch::Tensor& head : got) EXPECT_TRUE(head.equal(want));
}

TEST(Policy, SurvivesTheSnapshot) {
  const auto network = std::make_shared<ActorCritic>(SmallOptions(), 1);
  const auto published = PolicyOf(7, *network, SomeScale());
  const auto received = ReadSnapshot(MakeSnapshot(7, *network, SomeScale()), SmallOptions());
  ASSERT_TRUE(received.ok()) << received.status();
  EXPECT_EQ((*received)->version(), 7u);
  EXPECT_TRUE(Head(**received, SomeObs(4)).equal(Head(*published, SomeObs(4))));
  EXPECT_EQ((*received)->log_std(), published->log_std());
}

TEST(Policy, ADiscreteOneSurvivesTheSnapshot) {
  const auto network = std::make_shared<ActorCritic>(SmallOptions(true), 1);
  const auto received = ReadSnapshot(MakeSnapshot(7, *network, SomeScale()), SmallOptions(true));
  ASSERT_TRUE(received.ok()) << received.status();
  EXPECT_TRUE((*received)->log_std().empty());
  EXPECT_TRUE(Head(**received, SomeObs(4)).equal(Head(*PolicyOf(7, *network, SomeScale()), SomeObs(4))));
}

v1::TransportConfig Transport(v1::Precision precision, v1::Compression compression) {
  v1::TransportConfig transport;
  transport.set_policy_precision(precision);
  transport.set_policy_compression(compression);
  return transport;
}

ActorCriticOptions WideOptions() {
  ActorCriticOptions options = SmallOptions();
  options.hidden = {64, 64};
  return options;
}

TEST(Policy, CompressedOneIsTheSame) {
  const auto network = std::make_shared<ActorCritic>(WideOptions(), 1);
  const v1::PolicySnapshot plain = MakeSnapshot(7, *network, SomeScale());
  const v1::PolicySnapshot snapshot =
      MakeSnapshot(7, *network, SomeScale(), Transport(v1::PRECISION_FP32, v1::COMPRESSION_ZSTD));
  EXPECT_LT(snapshot.ByteSizeLong(), plain.ByteSizeLong());
  const auto received = ReadSnapshot(snapshot, WideOptions());
  ASSERT_TRUE(received.ok()) << received.status();
  EXPECT_TRUE(Head(**received, SomeObs(4)).equal(Head(*PolicyOf(7, *network, SomeScale()), SomeObs(4))));
}

// The policy that acts is then the one with rounded matrices, to the bit.
TEST(Policy, NarrowOneHasRoundedMatricesAndTheRestExact) {
  const auto network = std::make_shared<ActorCritic>(WideOptions(), 1);
  for (const v1::Compression compression : {v1::COMPRESSION_NONE, v1::COMPRESSION_ZSTD}) {
    const v1::PolicySnapshot snapshot =
        MakeSnapshot(7, *network, SomeScale(), Transport(v1::PRECISION_BF16, compression));
    const auto rounded = std::make_shared<ActorCritic>(WideOptions(), 1);
    {
      torch::NoGradGuard no_grad;
      for (const auto& [name, parameter] : rounded->PolicyParameters()) {
        if (parameter.dim() > 1) torch::Tensor(parameter).copy_(parameter.to(torch::kBFloat16));
      }
    }
    const auto received = ReadSnapshot(snapshot, WideOptions());
    ASSERT_TRUE(received.ok()) << received.status();
    EXPECT_TRUE(Head(**received, SomeObs(4)).equal(Head(*PolicyOf(7, *rounded, SomeScale()), SomeObs(4))));
    EXPECT_FALSE(Head(**received, SomeObs(4)).equal(Head(*PolicyOf(7, *network, SomeScale()), SomeObs(4))));
    EXPECT_EQ((*received)->log_std(), Floats(network->log_std()));
    // 3 x 64 + 64 x 64 + 64 x 2 numbers of two bytes less each; names and the rest stay.
    const size_t saved = 2 * (3 * 64 + 64 * 64 + 64 * 2);
    const size_t plain = MakeSnapshot(7, *network, SomeScale()).ByteSizeLong();
    const bool whole = compression == v1::COMPRESSION_NONE;
    EXPECT_NEAR(snapshot.ByteSizeLong(), plain - saved, whole ? 10 : 4000);
  }
}

TEST(Policy, DamagedCompressedDataAreRefused) {
  const ActorCritic network(WideOptions(), 1);
  const v1::PolicySnapshot good =
      MakeSnapshot(7, network, SomeScale(), Transport(v1::PRECISION_BF16, v1::COMPRESSION_ZSTD));
  const int large = 2;  // The 64 x 64 matrix.
  ASSERT_EQ(good.tensors(large).compression(), v1::COMPRESSION_ZSTD);
  const auto load = [&](const auto& spoil, bool sealed = true) {
    v1::PolicySnapshot snapshot = good;
    spoil(snapshot.mutable_tensors(large));
    if (sealed) snapshot.set_digest(SnapshotDigest(snapshot));
    return ReadSnapshot(snapshot, WideOptions()).status();
  };
  const auto flip = [](v1::Tensor* tensor) { (*tensor->mutable_data())[tensor->data().size() / 2] ^= 1; };
  EXPECT_EQ(load(flip, false).code(), absl::StatusCode::kDataLoss);
  ExpectInvalid(load(flip), "its zstd frame is damaged");
  ExpectInvalid(load([](v1::Tensor* tensor) { tensor->mutable_data()->pop_back(); }), "its zstd frame is damaged");
  ExpectInvalid(load([](v1::Tensor* tensor) { tensor->set_data("no frame"); }), "is no zstd frame");
  ExpectInvalid(load([](v1::Tensor* tensor) { tensor->set_dtype(v1::DATA_TYPE_FLOAT32); }),
                "holds 8192 bytes, its shape and dtype want 16384");
  ExpectInvalid(load([](v1::Tensor* tensor) { tensor->clear_compression(); }), "bytes, want 8192");
}

TEST(Policy, ReceivedOneDoesNotFollowTheLearnersNetwork) {
  const auto network = std::make_shared<ActorCritic>(SmallOptions(), 1);
  const v1::PolicySnapshot snapshot = MakeSnapshot(7, *network, SomeScale());
  const torch::Tensor want = Head(*PolicyOf(7, *network, SomeScale()), SomeObs(4)).clone();
  {
    torch::NoGradGuard no_grad;
    for (torch::Tensor& parameter : network->parameters()) parameter.add_(1);
  }
  const auto received = ReadSnapshot(snapshot, SmallOptions());
  ASSERT_TRUE(received.ok()) << received.status();
  EXPECT_TRUE(Head(**received, SomeObs(4)).equal(want));
}

TEST(MakeSnapshot, HoldsPolicyParametersThenTheNormaliser) {
  const ActorCritic network(SmallOptions(), 1);
  const v1::PolicySnapshot snapshot = MakeSnapshot(7, network, SomeScale());
  const auto parameters = network.PolicyParameters();
  ASSERT_EQ(snapshot.tensors_size(), static_cast<int>(parameters.size()) + 2);
  for (size_t i = 0; i < parameters.size(); ++i) EXPECT_EQ(snapshot.tensors(i).name(), parameters[i].first);
  EXPECT_EQ(snapshot.tensors(kLogStd).name(), "log_std");
  EXPECT_EQ(snapshot.tensors(kMean).name(), "obs_normalizer.mean");
  EXPECT_EQ(snapshot.tensors(kMean + 1).name(), "obs_normalizer.inv_std");
}

TEST(MakeSnapshot, DigestDependsOnWeightsNotOnVersion) {
  const ActorCritic network(SmallOptions(), 1), other(SmallOptions(), 2);
  const uint64_t digest = MakeSnapshot(7, network, SomeScale()).digest();
  EXPECT_EQ(MakeSnapshot(8, network, SomeScale()).digest(), digest);
  EXPECT_NE(MakeSnapshot(7, other, SomeScale()).digest(), digest);
  EXPECT_NE(MakeSnapshot(7, network, ObsScale::Identity(3)).digest(), digest);
}

TEST(SnapshotDigest, OfNothingIsThatOfTheEmptyString) {
  // XXH3_64bits of no bytes, from the reference implementation's test vectors.
  EXPECT_EQ(SnapshotDigest({}), 0x2D06800538D394C2u);
}

TEST(ReadSnapshot, RefusesAChangedByte) {
  v1::PolicySnapshot snapshot = SomeSnapshot();
  (*snapshot.mutable_tensors(2)->mutable_data())[5] ^= 1;
  const absl::Status status = LoadStatus(snapshot, /*sealed=*/false);
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(status.message()), HasSubstr("policy version 7: got digest"));
}

TEST(ReadSnapshot, RefusesAMissingTensor) {
  v1::PolicySnapshot in_the_middle = SomeSnapshot();
  in_the_middle.mutable_tensors()->DeleteSubrange(1, 1);
  ExpectInvalid(LoadStatus(in_the_middle), "tensors[1] policy.0.bias: missing, got \"policy.1.weight\"");
  v1::PolicySnapshot at_the_end = SomeSnapshot();
  at_the_end.mutable_tensors()->RemoveLast();
  ExpectInvalid(LoadStatus(at_the_end), "tensors[8] obs_normalizer.inv_std: missing");
  ExpectInvalid(LoadStatus({}), "tensors[0] policy.0.weight: missing");
}

TEST(ReadSnapshot, RefusesASuperfluousTensor) {
  v1::PolicySnapshot snapshot = SomeSnapshot();
  *snapshot.add_tensors() = snapshot.tensors(0);
  ExpectInvalid(LoadStatus(snapshot), "tensors[9]: superfluous, got 10 tensors, want 9");
}

TEST(ReadSnapshot, RefusesAnotherShapeDtypeOrSize) {
  v1::PolicySnapshot shape = SomeSnapshot();
  shape.mutable_tensors(kLogStd)->set_shape(0, 3);
  ExpectInvalid(LoadStatus(shape), "tensors[6] log_std: got shape [3], want [2]");
  v1::PolicySnapshot dtype = SomeSnapshot();
  dtype.mutable_tensors(kLogStd)->set_dtype(v1::DATA_TYPE_INT32);
  ExpectInvalid(LoadStatus(dtype), "tensors[6] log_std: got DATA_TYPE_INT32, want DATA_TYPE_FLOAT32");
  v1::PolicySnapshot size = SomeSnapshot();
  size.mutable_tensors(kLogStd)->mutable_data()->pop_back();
  ExpectInvalid(LoadStatus(size), "tensors[6] log_std: got 7 bytes, want 8");
}

TEST(ReadSnapshot, RefusesANetworkOfAnotherKind) {
  const v1::PolicySnapshot discrete = MakeSnapshot(7, ActorCritic(SmallOptions(true), 1), SomeScale());
  ExpectInvalid(LoadStatus(discrete), "tensors[6] log_std: missing");
}

TEST(ReadSnapshot, RefusesValuesThatAreNotFinite) {
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    for (const int index : {0, kLogStd, kMean}) {
      v1::PolicySnapshot snapshot = SomeSnapshot();
      v1::Tensor* wire = snapshot.mutable_tensors(index);
      wire->mutable_data()->replace(4, 4, std::string(reinterpret_cast<const char*>(&bad), 4));
      ExpectInvalid(LoadStatus(snapshot), wire->name() + ": has a value that is not finite");
    }
  }
}

}  // namespace
}  // namespace skein
