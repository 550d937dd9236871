// SPDX-License-Identifier: Apache-2.0
#include "learner/sequence/lstm_pass.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <vector>

#include "learner/sequence/key_names.h"

namespace skein {
namespace {

using Numbers = std::vector<double>;

// The model of net_layout.h in double, one sequence and one number at a time: the sum of -log p over keys and end.
double LiteralLoss(const NetLayout& layout, const Numbers& values, const std::vector<uint32_t>& keys, bool cut) {
  const auto at = [&](const NetLayout::Parameter& p, int64_t row, int64_t column) {
    return values[static_cast<size_t>(p.offset + row * p.columns + column)];
  };
  const auto sigma = [](double x) { return 1 / (1 + std::exp(-x)); };
  const int64_t units = layout.hidden;
  std::vector<Numbers> h(layout.layers.size(), Numbers(static_cast<size_t>(units), 0)), c = h;
  double loss = 0;
  const size_t steps = keys.size() + (cut ? 0 : 1);
  for (size_t t = 0; t < steps; ++t) {
    const uint32_t input = t == 0 ? Vocabulary::kStart : keys[t - 1];
    const uint32_t target = t < keys.size() ? keys[t] : Vocabulary::kEnd;
    Numbers x;
    for (int64_t e = 0; e < layout.embedding_size; ++e) x.push_back(at(layout.embedding, input, e));
    for (size_t l = 0; l < layout.layers.size(); ++l) {
      const NetLayout::Layer& layer = layout.layers[l];
      Numbers next_h(static_cast<size_t>(units)), next_c(static_cast<size_t>(units));
      for (int64_t u = 0; u < units; ++u) {
        double z[4];
        for (int64_t gate = 0; gate < 4; ++gate) {
          const int64_t row = gate * units + u;
          z[gate] = at(layer.bias, 0, row);
          for (size_t k = 0; k < x.size(); ++k) z[gate] += at(layer.input, row, static_cast<int64_t>(k)) * x[k];
          for (int64_t k = 0; k < units; ++k) z[gate] += at(layer.recurrent, row, k) * h[l][static_cast<size_t>(k)];
        }
        const auto i = static_cast<size_t>(u);
        next_c[i] = sigma(z[1]) * c[l][i] + sigma(z[0]) * std::tanh(z[2]);
        next_h[i] = sigma(z[3]) * std::tanh(next_c[i]);
      }
      h[l] = next_h;
      c[l] = next_c;
      x = next_h;
    }
    Numbers logits;
    for (int64_t k = 0; k < layout.classes; ++k) {
      double sum = at(layout.output_bias, 0, k);
      for (int64_t u = 0; u < units; ++u) sum += at(layout.output, k, u) * x[static_cast<size_t>(u)];
      logits.push_back(sum);
    }
    double total = 0;
    for (const double logit : logits) total += std::exp(logit);
    loss += std::log(total) - logits[target];
  }
  return loss;
}

struct Example {
  NetLayout layout{7, 16, 16, 2};
  std::vector<float> values;
  Sequences sequences;
  std::vector<uint32_t> all;

  explicit Example(const std::vector<std::vector<uint32_t>>& keys, const std::vector<uint8_t>& cut = {}) {
    values.resize(static_cast<size_t>(layout.size));
    InitializeNet(layout, 3, values.data());
    for (float& value : values) value *= 2;  // Far from the linear part.
    for (size_t i = 0; i < keys.size(); ++i) {
      sequences.classes.insert(sequences.classes.end(), keys[i].begin(), keys[i].end());
      sequences.begins.push_back(static_cast<uint32_t>(sequences.classes.size()));
      sequences.cut.push_back(cut.empty() ? 0 : cut[i]);
      all.push_back(static_cast<uint32_t>(i));
    }
  }
  Numbers Doubles() const { return Numbers(values.begin(), values.end()); }
};

const std::vector<std::vector<uint32_t>>& Keys() {
  static const auto* const keys =
      new std::vector<std::vector<uint32_t>>{{2, 3, 4}, {5}, {2, 3, 4}, {6, 6, 6, 6, 1, 2}, {2, 3, 4}, {3, 2}};
  return *keys;
}

TEST(LstmPass, HasTheLossOfTheLiteralModel) {
  const Example example(Keys(), {0, 0, 0, 0, 0, 1});
  const SequenceBatch batch = MakeBatch(example.sequences, example.all, 1);
  EXPECT_EQ(batch.rows.size(), 4);  // Three of the six are equal.
  EXPECT_EQ(batch.sequences, 6);
  EXPECT_EQ(batch.steps, 3 * 4 + 2 + 7 + 2);  // The last one has no end.
  double want = 0;
  for (size_t i = 0; i < Keys().size(); ++i) {
    want += LiteralLoss(example.layout, example.Doubles(), Keys()[i], i == 5);
  }
  NetWeights weights(&example.layout);
  weights.Update(example.values.data());
  LstmPass pass(&example.layout);
  EXPECT_NEAR(pass.Forward(weights, PackRows(batch, 0, 4)), want, 1e-4);
}

TEST(LstmPass, HasTheGradientOfTheLiteralModel) {
  const Example example(Keys(), {0, 0, 0, 0, 0, 1});
  const SequenceBatch batch = MakeBatch(example.sequences, example.all, 1);
  NetWeights weights(&example.layout);
  weights.Update(example.values.data());
  LstmPass pass(&example.layout);
  const PackedSteps steps = PackRows(batch, 0, 4);
  std::vector<float> gradient(example.values.size());
  pass.Forward(weights, steps);
  pass.Backward(weights, steps, 0.5f, gradient.data());
  // By finite differences, of every 7th number of each parameter.
  constexpr double kStep = 1e-5;
  for (const NetLayout::Parameter& parameter : example.layout.parameters()) {
    for (int64_t i = 0; i < parameter.size(); i += 7) {
      Numbers values = example.Doubles();
      const auto at = static_cast<size_t>(parameter.offset + i);
      double difference = 0;
      for (const double sign : {1.0, -1.0}) {
        values[at] = static_cast<double>(example.values[at]) + sign * kStep;
        for (size_t k = 0; k < Keys().size(); ++k) {
          difference += sign * LiteralLoss(example.layout, values, Keys()[k], k == 5);
        }
      }
      EXPECT_NEAR(gradient[at], 0.5 * difference / (2 * kStep), 2e-4) << parameter.name << " " << i;
    }
  }
}

TEST(LstmPass, IsNotChangedByLongerNeighboursToTheBit) {
  const Example alone({{2, 3, 4}, {3, 2}});
  const Example beside({{2, 3, 4}, {3, 2}, {6, 5, 4, 3, 2, 6, 5, 4, 3, 2, 6, 5}, {4, 4, 4, 4, 4}});
  std::vector<std::vector<float>> probabilities;
  for (const Example* example : {&alone, &beside}) {
    const SequenceBatch batch = MakeBatch(example->sequences, example->all, 1);
    NetWeights weights(&example->layout);
    weights.Update(example->values.data());
    LstmPass pass(&example->layout);
    const auto rows = static_cast<uint32_t>(batch.rows.size());
    const PackedSteps steps = PackRows(batch, 0, rows);
    pass.Forward(weights, steps);
    const uint32_t row = rows - 2;  // {2, 3, 4} is the last but one in either.
    std::vector<float> of_row;
    for (uint32_t t = 0; t < batch.rows.steps(row); ++t) {
      const float* const p = pass.probabilities(steps.offsets[t] + row);
      of_row.insert(of_row.end(), p, p + example->layout.classes);
    }
    probabilities.push_back(of_row);
  }
  EXPECT_EQ(probabilities[0], probabilities[1]);
}

TEST(SequenceBatch, CountsEachSequenceOnceInItsParts) {
  const Example example(Keys());
  for (const uint32_t parts : {1u, 2u, 3u, 8u}) {
    const SequenceBatch batch = MakeBatch(example.sequences, example.all, parts);
    EXPECT_EQ(batch.parts.size(), parts + 1);
    EXPECT_EQ(batch.parts.front(), 0);
    EXPECT_EQ(batch.parts.back(), batch.rows.size());
    EXPECT_TRUE(std::is_sorted(batch.parts.begin(), batch.parts.end()));
    EXPECT_EQ(std::accumulate(batch.weights.begin(), batch.weights.end(), 0u), 6u);
  }
}

}  // namespace
}  // namespace skein
