// SPDX-License-Identifier: Apache-2.0
#include "policy/recurrent.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/policy/make_policy.h"
#include "tests/policy/simd_levels.h"

namespace skein {
namespace {

PolicySpec Spec(MemoryKind memory, int64_t memory_size = 5) {
  PolicySpec spec;
  spec.obs_size = 3;
  spec.action_size = 2;
  spec.memory = memory;
  spec.memory_size = memory_size;
  spec.hidden = {7};
  return spec;
}

std::vector<float> SomeObs(int64_t rows, int64_t size = 3) {
  std::vector<float> obs(static_cast<size_t>(rows * size));
  for (size_t i = 0; i < obs.size(); ++i) obs[i] = static_cast<float>(std::sin(1.3 * static_cast<double>(i)));
  return obs;
}

double Sigma(double x) { return 1 / (1 + std::exp(-x)); }

// Literally the formulas of torch.nn.GRUCell and torch.nn.LSTMCell, then the layers, in double; one row.
struct Oracle {
  PolicySpec spec;
  std::vector<std::vector<float>> values;

  // Row `row` of matrix `matrix` times x, plus its bias.
  double Affine(size_t matrix, size_t bias, int64_t row, const std::vector<double>& x) const {
    double sum = values[bias][static_cast<size_t>(row)];
    for (size_t k = 0; k < x.size(); ++k) sum += values[matrix][static_cast<size_t>(row) * x.size() + k] * x[k];
    return sum;
  }

  // Moves `state` on and returns the head.
  std::vector<double> Step(const std::vector<double>& x, std::vector<double>* state) const {
    const int64_t H = spec.memory_size;
    const std::vector<double> h(state->begin(), state->begin() + H);
    const auto from_x = [&](int64_t gate, int64_t j) { return Affine(0, 2, gate * H + j, x); };
    const auto from_h = [&](int64_t gate, int64_t j) { return Affine(1, 3, gate * H + j, h); };
    for (int64_t j = 0; j < H; ++j) {
      if (spec.memory == MemoryKind::kGru) {
        const double r = Sigma(from_x(0, j) + from_h(0, j)), z = Sigma(from_x(1, j) + from_h(1, j));
        const double n = std::tanh(from_x(2, j) + r * from_h(2, j));
        (*state)[j] = (1 - z) * n + z * h[j];
      } else {
        const double i = Sigma(from_x(0, j) + from_h(0, j)), f = Sigma(from_x(1, j) + from_h(1, j));
        const double g = std::tanh(from_x(2, j) + from_h(2, j)), o = Sigma(from_x(3, j) + from_h(3, j));
        double& c = (*state)[H + j];
        c = f * c + i * g;
        (*state)[j] = o * std::tanh(c);
      }
    }
    std::vector<double> features(state->begin(), state->begin() + H);
    for (size_t layer = 0; layer <= spec.hidden.size(); ++layer) {
      const size_t matrix = 4 + 2 * layer;
      std::vector<double> out(values[matrix + 1].size());
      for (size_t j = 0; j < out.size(); ++j) {
        out[j] = Affine(matrix, matrix + 1, static_cast<int64_t>(j), features);
        if (layer < spec.hidden.size()) out[j] = std::tanh(out[j]);
      }
      features = out;
    }
    return features;
  }
};

// T steps of `rows` agents from zeros, `chunk` rows to a call. The heads, then the last states.
std::vector<float> RunSteps(const Policy& policy, int64_t steps, int64_t rows, int64_t chunk) {
  const int64_t S = policy.spec().state_size(), D = policy.spec().head_size(), O = policy.spec().obs_size;
  std::vector<float> state(static_cast<size_t>(rows * S)), heads(static_cast<size_t>(steps * rows * D));
  const std::vector<float> obs = SomeObs(steps * rows, O);
  for (int64_t t = 0; t < steps; ++t) {
    for (int64_t row = 0; row < rows; row += chunk) {
      const int64_t count = std::min(chunk, rows - row);
      policy.Act(obs.data() + (t * rows + row) * O, state.data() + row * S, count, heads.data() + (t * rows + row) * D,
                 state.data() + row * S);
    }
  }
  heads.insert(heads.end(), state.begin(), state.end());
  return heads;
}

TEST(Recurrent, IsWhatTheFormulasSay) {
  for (const SimdLevel level : SimdLevels()) {
    ActiveSimdLevel() = level;
    for (const MemoryKind memory : {MemoryKind::kGru, MemoryKind::kLstm}) {
      for (const int64_t size : {1, 5, 16, 33}) {  // Also with no padding, and over a vector's end.
        const Oracle oracle{Spec(memory, size), RandomParameters(Spec(memory, size))};
        const auto policy = MakePolicy(3, oracle.spec, oracle.values, Normalization::Identity(3));
        const int64_t S = oracle.spec.state_size();
        std::vector<float> state(static_cast<size_t>(S)), head(2);
        std::vector<double> want_state(state.begin(), state.end());
        const std::vector<float> obs = SomeObs(20);
        for (int64_t t = 0; t < 20; ++t) {
          policy->Act(obs.data() + 3 * t, state.data(), 1, head.data(), state.data());
          const auto want = oracle.Step({obs.begin() + 3 * t, obs.begin() + 3 * t + 3}, &want_state);
          for (size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(head[i], want[i], 2e-6) << "step " << t;
          for (size_t i = 0; i < want_state.size(); ++i) EXPECT_NEAR(state[i], want_state[i], 2e-6) << "step " << t;
        }
      }
    }
  }
  ActiveSimdLevel() = SimdLevels().back();
}

TEST(Recurrent, NormalisesWhatItReads) {
  const PolicySpec spec = Spec(MemoryKind::kGru);
  const auto values = RandomParameters(spec);
  const auto plain = MakePolicy(3, spec, values, Normalization::Identity(3));
  const auto scaled = MakePolicy(3, spec, values, {.mean = {1, 2, 3}, .inv_std = {2, 2, 2}});
  const std::vector<float> raw = {1.5f, 2, 2.5f}, normalised = {1, 0, -1}, zeros(5);
  std::vector<float> got(2), want(2), state(5);
  scaled->Act(raw.data(), zeros.data(), 1, got.data(), state.data());
  plain->Act(normalised.data(), zeros.data(), 1, want.data(), state.data());
  EXPECT_EQ(got, want);
}

// Equal to the bit, however many rows a call has.
TEST(Recurrent, ARowDoesNotDependOnTheOthers) {
  for (const MemoryKind memory : {MemoryKind::kGru, MemoryKind::kLstm}) {
    const auto policy = RandomPolicy(3, Spec(memory, 19));
    const std::vector<float> all = RunSteps(*policy, 9, 32, 32);
    for (const int64_t chunk : {1, 7, 13})
      EXPECT_EQ(RunSteps(*policy, 9, 32, chunk), all) << chunk << " rows to a call";
  }
}

TEST(Recurrent, RemembersWhatItSaw) {
  for (const MemoryKind memory : {MemoryKind::kGru, MemoryKind::kLstm}) {
    const auto policy = RandomPolicy(3, Spec(memory));
    const auto S = static_cast<size_t>(policy->spec().state_size());
    const std::vector<float> obs = SomeObs(1), zeros(S), other(S, 0.5f);
    std::vector<float> fresh(2), experienced(2), state(S);
    policy->Act(obs.data(), zeros.data(), 1, fresh.data(), state.data());
    policy->Act(obs.data(), other.data(), 1, experienced.data(), state.data());
    EXPECT_NE(fresh, experienced);
  }
}

TEST(Recurrent, TheNextStateMayTakeTheStatesPlace) {
  for (const MemoryKind memory : {MemoryKind::kGru, MemoryKind::kLstm}) {
    const auto policy = RandomPolicy(3, Spec(memory));
    const std::vector<float> obs = SomeObs(4);
    std::vector<float> state(static_cast<size_t>(4 * policy->spec().state_size()), 0.25f), next(state.size());
    std::vector<float> head(8), head_in_place(8);
    policy->Act(obs.data(), state.data(), 4, head.data(), next.data());
    policy->Act(obs.data(), state.data(), 4, head_in_place.data(), state.data());
    EXPECT_EQ(state, next);
    EXPECT_EQ(head_in_place, head);
  }
}

TEST(Recurrent, ManyUnitsInSaturationStayFinite) {
  for (const MemoryKind memory : {MemoryKind::kGru, MemoryKind::kLstm}) {
    const auto policy = RandomPolicy(3, Spec(memory, 40), 1, /*bound=*/1000);
    for (const float value : RunSteps(*policy, 50, 3, 3)) EXPECT_TRUE(std::isfinite(value));
  }
}

}  // namespace
}  // namespace skein
