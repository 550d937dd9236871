// SPDX-License-Identifier: Apache-2.0
#include "learner/ranks/gradient_reducer.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include <functional>
#include <stdexcept>

#include "learner/ranks/direct_sum.h"
#include "tests/learner/rank_threads.h"

namespace skein {
namespace {

constexpr int64_t kWidth = 64;
constexpr int64_t kLayers = 4;
constexpr int64_t kLayer = kWidth * kWidth;
constexpr int64_t kParameters = kLayers * kLayer;
constexpr double kLayerMb = kLayer * sizeof(float) / 1e6;

torch::Tensor Noise(torch::IntArrayRef sizes, uint64_t seed) {
  return torch::randn(sizes, at::make_generator<at::CPUGeneratorImpl>(seed));
}

// tanh(... tanh(x W0) ... W3), the same on every rank, with gradients that are views of one.
struct Chain {
  torch::Tensor gradient = torch::zeros({kParameters});
  std::vector<torch::Tensor> weights;

  Chain() {
    for (int64_t i = 0; i < kLayers; ++i) {
      weights.push_back(Noise({kWidth, kWidth}, static_cast<uint64_t>(i + 1)).div_(8).set_requires_grad(true));
      weights.back().mutable_grad() = gradient.narrow(0, i * kLayer, kLayer).view({kWidth, kWidth});
    }
  }

  // Of a rank's data. `after_layer` sees what leaves each layer.
  torch::Tensor Loss(const torch::Tensor& x,
                     const std::function<void(int64_t, torch::Tensor)>& after_layer = {}) const {
    torch::Tensor y = x;
    for (int64_t i = 0; i < kLayers; ++i) {
      y = torch::tanh(y.mm(weights[static_cast<size_t>(i)]));
      if (after_layer) after_layer(i, y);
    }
    return y.square().mean();
  }
};

torch::Tensor Data(int rank) { return Noise({8, kWidth}, static_cast<uint64_t>(100 + rank)); }

// The gradient of one rank's data by itself.
torch::Tensor GradientOf(int rank) {
  const Chain chain;
  chain.Loss(Data(rank)).backward();
  return chain.gradient;
}

void ExpectSum(const torch::Tensor& gradient, const std::vector<int>& ranks) {
  torch::Tensor sum = torch::zeros({kParameters});
  for (const int rank : ranks) sum += GradientOf(rank);
  EXPECT_TRUE(torch::allclose(gradient, sum, 1e-5, 1e-8));
}

void ExpectSameBits(Collective* collective, const torch::Tensor& gradient) {
  const auto all = collective->Gather(gradient);
  ASSERT_TRUE(all.ok()) << all.status();
  for (int64_t rank = 1; rank < collective->size(); ++rank) EXPECT_TRUE((*all)[rank].equal((*all)[0]));
}

TEST(GradientReducer, SumsTheRanksGradients) {
  RunRanks(3, [](Collective* collective) {
    Chain chain;
    GradientReducer reducer(collective, chain.gradient, chain.weights, {2.5 * kLayerMb, false});
    EXPECT_EQ(reducer.buckets(), 2u);  // Two layers each: a third would be too much.
    for (int step = 0; step < 2; ++step) {
      chain.gradient.zero_();
      reducer.Arm();
      chain.Loss(Data(collective->rank())).backward();
      ASSERT_TRUE(reducer.Finish().ok());
      ExpectSum(chain.gradient, {0, 1, 2});
      ExpectSameBits(collective, chain.gradient);
    }
    EXPECT_EQ(reducer.cost().all_reduces, 4);
    // Each of 4 bytes to two others, in two steps.
    EXPECT_EQ(reducer.cost().bytes_sent, kParameters * 4 * 2 * 2);
    EXPECT_GT(reducer.cost().exposed, absl::ZeroDuration());
    EXPECT_GE(reducer.cost().all_reducing, reducer.cost().exposed);
  });
}

TEST(GradientReducer, MakesABucketOfALargeParameter) {
  RunRanks(1, [](Collective* collective) {
    Chain chain;
    EXPECT_EQ(GradientReducer(collective, chain.gradient, chain.weights, {0.1 * kLayerMb, false}).buckets(), 4u);
    EXPECT_EQ(GradientReducer(collective, chain.gradient, chain.weights, {kLayerMb, false}).buckets(), 4u);
    EXPECT_EQ(GradientReducer(collective, chain.gradient, chain.weights, {4, false}).buckets(), 1u);
  });
}

TEST(GradientReducer, StartsBucketsWhileBackwardRuns) {
  RunRanks(2, [](Collective* collective) {
    Chain chain;
    GradientReducer reducer(collective, chain.gradient, chain.weights, {kLayerMb, false});
    std::vector<size_t> started(kLayers);  // When the gradient of what leaves a layer is there.
    reducer.Arm();
    const torch::Tensor loss = chain.Loss(Data(collective->rank()), [&](int64_t layer, torch::Tensor y) {
      y.register_hook([&started, &reducer, layer](const torch::Tensor& gradient) {
        started[static_cast<size_t>(layer)] = reducer.started();
        return gradient;
      });
    });
    loss.backward();
    EXPECT_EQ(started, (std::vector<size_t>{3, 2, 1, 0}));
    EXPECT_EQ(reducer.started(), 4u);
    ASSERT_TRUE(reducer.Finish().ok());
    EXPECT_EQ(reducer.started(), 0u);
    ExpectSum(chain.gradient, {0, 1});
  });
}

TEST(GradientReducer, StartsBucketsInOneOrderWhateverTheGraph) {
  RunRanks(2, [](Collective* collective) {
    Chain chain;
    GradientReducer reducer(collective, chain.gradient, chain.weights, {kLayerMb, false});
    // On rank 1 the first layer's gradient comes first and the last layer's never.
    reducer.Arm();
    if (collective->rank() == 0) {
      chain.Loss(Data(0)).backward();
    } else {
      torch::tanh(Data(1).mm(chain.weights[0])).square().mean().backward();
      EXPECT_EQ(reducer.started(), 0u);
    }
    ASSERT_TRUE(reducer.Finish().ok());
    ExpectSameBits(collective, chain.gradient);
    const auto last = chain.gradient.narrow(0, kParameters - kLayer, kLayer);
    EXPECT_TRUE(last.equal(GradientOf(0).narrow(0, kParameters - kLayer, kLayer)));
  });
}

TEST(GradientReducer, LeavesEarlierPassesToAccumulate) {
  RunRanks(2, [](Collective* collective) {
    Chain chain;
    GradientReducer reducer(collective, chain.gradient, chain.weights, {kLayerMb, false});
    chain.Loss(Data(collective->rank())).backward();
    EXPECT_EQ(reducer.started(), 0u);
    reducer.Arm();
    chain.Loss(Data(collective->rank() + 2)).backward();
    EXPECT_EQ(reducer.started(), 4u);
    ASSERT_TRUE(reducer.Finish().ok());
    ExpectSum(chain.gradient, {0, 1, 2, 3});
  });
}

TEST(GradientReducer, TakesARankWithoutRowsAlong) {
  for (const bool bf16 : {false, true}) {
    RunRanks(2, [bf16](Collective* collective) {
      Chain chain;
      GradientReducer reducer(collective, chain.gradient, chain.weights, {kLayerMb, bf16});
      if (collective->rank() == 0) {
        reducer.Arm();
        chain.Loss(Data(0)).backward();
      }
      ASSERT_TRUE(reducer.Finish().ok());
      const torch::Tensor alone = GradientOf(0);
      EXPECT_TRUE(chain.gradient.equal(bf16 ? alone.to(torch::kBFloat16).to(torch::kFloat32) : alone));
    });
  }
}

TEST(GradientReducer, KeepsWhatWasSummedBeforeAnInterruption) {
  for (const bool bf16 : {false, true}) {
    RunRanks(2, [bf16](Collective* collective) {
      Chain chain;
      GradientReducer reducer(collective, chain.gradient, chain.weights, {kLayerMb, bf16});
      reducer.Arm();
      if (collective->rank() == 0) {
        const torch::Tensor loss = chain.Loss(Data(0), [](int64_t layer, torch::Tensor y) {
          if (layer != 1) return;
          y.register_hook([](const torch::Tensor&) -> torch::Tensor { throw std::runtime_error("out of memory"); });
        });
        EXPECT_THROW(loss.backward(), std::runtime_error);
        EXPECT_EQ(reducer.started(), 2u);  // Layers 3 and 2.
        ASSERT_TRUE(reducer.Interrupt().ok());
        chain.gradient.zero_();
        reducer.Arm();
      }
      chain.Loss(Data(collective->rank())).backward();
      ASSERT_TRUE(reducer.Finish().ok());
      ExpectSameBits(collective, chain.gradient);
      EXPECT_EQ(reducer.cost().all_reduces, 4);
      if (!bf16) ExpectSum(chain.gradient, {0, 1});
    });
  }
}

TEST(GradientReducer, RoundsToBfloat16OnceBeforeAndOnceAfterTheSum) {
  RunRanks(2, [](Collective* collective) {
    Chain chain;
    GradientReducer reducer(collective, chain.gradient, chain.weights, {kLayerMb, true});
    reducer.Arm();
    chain.Loss(Data(collective->rank())).backward();
    ASSERT_TRUE(reducer.Finish().ok());
    ExpectSameBits(collective, chain.gradient);
    // |got - (a + b)| <= 2^-8 (|a| + |b|) for what went out, and 2^-8 of the rounded sum for what came back.
    const torch::Tensor zero = GradientOf(0), one = GradientOf(1);
    float worst = 0;
    for (int64_t i = 0; i < kParameters; ++i) {
      const float a = zero[i].item<float>(), b = one[i].item<float>(), got = chain.gradient[i].item<float>();
      const float sent = (std::abs(a) + std::abs(b)) / 256;
      worst = std::max(worst, std::abs(got - (a + b)) - sent - (std::abs(a + b) + sent) / 256);
    }
    EXPECT_LE(worst, 1e-9f);
    EXPECT_FALSE(chain.gradient.equal(zero + one));                  // It was compressed:
    EXPECT_EQ(reducer.cost().bytes_sent, kParameters * int64_t{2});  // to 2 bytes each.
  });
}

TEST(GradientReducer, SumsLargeBucketsToo) {
  RunRanks(2, [](Collective* collective) {
    const int64_t size = kDirectBytes;  // Four times as many bytes as the calling thread sums itself.
    const torch::Tensor gradient = torch::zeros({size});
    torch::Tensor parameter = torch::ones({size}).set_requires_grad(true);
    parameter.mutable_grad() = gradient;
    GradientReducer reducer(collective, gradient, {parameter}, {4, false});
    reducer.Arm();
    (parameter * static_cast<float>(collective->rank() + 1)).sum().backward();
    ASSERT_TRUE(reducer.Finish().ok());
    EXPECT_TRUE(gradient.equal(torch::full({size}, 3.0f)));  // 1 + 2
  });
}

TEST(GradientReducer, TakesItsHooksAway) {
  RunRanks(1, [](Collective* collective) {
    Chain chain;
    {
      GradientReducer reducer(collective, chain.gradient, chain.weights, {kLayerMb, false});
      reducer.Arm();
    }
    chain.Loss(Data(0)).backward();
    ExpectSum(chain.gradient, {0});
  });
}

TEST(GradientReducer, ReportsARankThatHasGone) {
  RunRanks(2, [](Collective* collective) {
    if (collective->rank() == 1) return;  // Its end closes.
    Chain chain;
    GradientReducer reducer(collective, chain.gradient, chain.weights, {kLayerMb, false});
    reducer.Arm();
    chain.Loss(Data(0)).backward();
    EXPECT_EQ(reducer.Finish().code(), absl::StatusCode::kUnavailable);
  });
}

}  // namespace
}  // namespace skein
