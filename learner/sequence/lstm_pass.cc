// SPDX-License-Identifier: Apache-2.0
#include "learner/sequence/lstm_pass.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "policy/dense_kernels.h"

namespace skein {
namespace {

// out [rows, columns] = a [rows, inner] b [inner, columns] + init, all without gaps; init_row as in MatrixProduct.
void Product(int64_t rows, int64_t inner, int64_t columns, const float* a, const float* b, const float* init,
             int64_t init_row, float* out) {
  Multiply({rows, inner, columns, a, inner, 1, b, columns, init, init_row, out, columns});
}

// out [a_columns, b_columns] += a^T b: a [rows, a_columns], b [rows, b_columns]. In pieces of rows that fit into the
// cache, because a is read by columns.
void AddProductOfTransposed(int64_t rows, int64_t a_columns, int64_t b_columns, const float* a, const float* b,
                            float* out) {
  constexpr int64_t kRows = 64;
  for (int64_t first = 0; first < rows; first += kRows) {
    const int64_t count = std::min(kRows, rows - first);
    Multiply({a_columns, count, b_columns, a + first * a_columns, 1, a_columns, b + first * b_columns, b_columns, out,
              b_columns, out, b_columns});
  }
}

void AddColumnSums(int64_t rows, int64_t columns, const float* a, float* out) {
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < columns; ++j) out[j] += a[i * columns + j];
  }
}

// The memory of an earlier, longer pass is used again.
float* Room(size_t size, AlignedFloats* floats) {
  if (floats->size() < size) floats->resize(size);
  return floats->data();
}
size_t Size(int64_t a, int64_t b) { return static_cast<size_t>(a * b); }

}  // namespace

NetWeights::NetWeights(const NetLayout* layout)
    : layout_(*layout),
      class_gates_(Size(layout->classes, 4 * layout->hidden)),
      input_t_(layout->layers.size()),
      recurrent_t_(layout->layers.size()),
      output_t_(Size(layout->hidden, layout->outputs)) {
  for (size_t l = 0; l < layout->layers.size(); ++l) {
    input_t_[l].resize(Size(layout->layers[l].input.columns, 4 * layout->hidden));
    recurrent_t_[l].resize(Size(layout->hidden, 4 * layout->hidden));
  }
}

void NetWeights::Update(const float* values) {
  values_ = values;
  const int64_t gates = 4 * layout_.hidden;
  for (size_t l = 0; l < layout_.layers.size(); ++l) {
    const NetLayout::Layer& layer = layout_.layers[l];
    Transpose(values + layer.input.offset, gates, layer.input.columns, input_t_[l].data(), gates);
    Transpose(values + layer.recurrent.offset, gates, layout_.hidden, recurrent_t_[l].data(), gates);
  }
  Transpose(values + layout_.output.offset, layout_.outputs, layout_.hidden, output_t_.data(), layout_.outputs);
  Product(layout_.classes, layout_.embedding_size, gates, values + layout_.embedding.offset, input_t_[0].data(),
          values + layout_.layers[0].bias.offset, 0, class_gates_.data());
}

void LstmPass::ForwardLayer(const NetWeights& weights, const PackedSteps& steps, size_t l) {
  const int64_t units = layout_.hidden, gates = 4 * units, places = steps.places();
  Layer& layer = layers_[l];
  float* const gate = Room(Size(places, gates), &layer.gates);
  float* const cell = Room(Size(places, units), &layer.cell);
  float* const squashed = Room(Size(places, units), &layer.squashed);
  float* const output = Room(Size(places, units), &layer.output);
  if (l == 0) {
    for (int64_t i = 0; i < places; ++i) {
      const float* const row = weights.class_gates_.data() + steps.input[static_cast<size_t>(i)] * gates;
      std::memcpy(gate + i * gates, row, static_cast<size_t>(gates) * sizeof(float));
    }
  } else {
    Product(places, units, gates, layers_[l - 1].output.data(), weights.input_t_[l].data(),
            weights.values_ + layout_.layers[l].bias.offset, 0, gate);
  }
  for (size_t t = 0; t < steps.counts.size(); ++t) {
    const int64_t begin = steps.offsets[t], count = steps.counts[t];
    float* const now = gate + begin * gates;
    if (t > 0) {
      Product(count, units, gates, output + steps.offsets[t - 1] * units, weights.recurrent_t_[l].data(), now, gates,
              now);
    }
    for (int64_t row = 0; row < count; ++row) {
      float* const i = now + row * gates;
      const float* const f = i + units;
      float* const g = i + 2 * units;
      float* const o = i + 3 * units;
      Sigmoid(i, 2 * units);
      Activate(ActivationKind::kTanh, g, units);
      Sigmoid(o, units);
      float* const c = cell + (begin + row) * units;
      float* const s = squashed + (begin + row) * units;
      float* const h = output + (begin + row) * units;
      if (t > 0) {
        const float* const before = cell + (steps.offsets[t - 1] + row) * units;
        for (int64_t u = 0; u < units; ++u) s[u] = c[u] = f[u] * before[u] + i[u] * g[u];
      } else {
        for (int64_t u = 0; u < units; ++u) s[u] = c[u] = i[u] * g[u];
      }
      Activate(ActivationKind::kTanh, s, units);
      for (int64_t u = 0; u < units; ++u) h[u] = o[u] * s[u];
    }
  }
}

size_t LstmPass::BytesOfAPlace(const NetLayout& layout) {
  const auto of_a_layer = static_cast<size_t>(7 * layout.hidden);  // Gates, cell, squashed, output.
  return sizeof(float) * (static_cast<size_t>(layout.outputs) + of_a_layer * layout.layers.size());
}

double LstmPass::Forward(const NetWeights& weights, const PackedSteps& steps) {
  for (size_t l = 0; l < layers_.size(); ++l) ForwardLayer(weights, steps, l);
  const int64_t places = steps.places(), outputs = layout_.outputs, classes = layout_.classes;
  float* const probability = Room(Size(places, outputs), &probabilities_);
  Product(places, layout_.hidden, outputs, layers_.back().output.data(), weights.output_t_.data(),
          weights.values_ + layout_.output_bias.offset, 0, probability);
  double loss = 0;
  for (int64_t i = 0; i < places; ++i) {
    float* const row = probability + i * outputs;
    const float greatest = *std::max_element(row, row + classes);
    const double of_target = row[steps.target[static_cast<size_t>(i)]] - greatest;
    float sum = 0;
    for (int64_t j = 0; j < classes; ++j) sum += row[j] = std::exp(row[j] - greatest);
    for (int64_t j = 0; j < classes; ++j) row[j] /= sum;
    std::fill(row + classes, row + outputs, 0.0f);
    loss += steps.weight[static_cast<size_t>(i)] * (std::log(static_cast<double>(sum)) - of_target);
  }
  return loss;
}

void LstmPass::Backward(const NetWeights& weights, const PackedSteps& steps, float scale, float* gradient) {
  const int64_t places = steps.places(), outputs = layout_.outputs, units = layout_.hidden;
  float* const probability = probabilities_.data();  // Becomes the derivative by the logits: weight (p - target).
  for (int64_t i = 0; i < places; ++i) {
    float* const row = probability + i * outputs;
    row[steps.target[static_cast<size_t>(i)]] -= 1;
    const float weight = scale * steps.weight[static_cast<size_t>(i)];
    for (int64_t j = 0; j < outputs; ++j) row[j] *= weight;
  }
  AddProductOfTransposed(places, outputs, units, probability, layers_.back().output.data(),
                         gradient + layout_.output.offset);
  AddColumnSums(places, outputs, probability, gradient + layout_.output_bias.offset);
  Product(places, outputs, units, probability, weights.values_ + layout_.output.offset, nullptr, 0,
          Room(Size(places, units), &delta_));
  for (size_t l = layers_.size(); l-- > 0;) BackwardLayer(weights, steps, l, gradient);
}

void LstmPass::BackwardLayer(const NetWeights& weights, const PackedSteps& steps, size_t l, float* gradient) {
  const int64_t units = layout_.hidden, gates = 4 * units, places = steps.places();
  const NetLayout::Layer& at = layout_.layers[l];
  Layer& layer = layers_[l];
  const int64_t first = steps.counts.front();
  float* const carried = Room(Size(first, units), &carried_);            // dL/dh of the step before, from this one.
  float* const cell_carried = Room(Size(first, units), &cell_carried_);  // dL/dc.
  std::fill(cell_carried, cell_carried + first * units, 0.0f);
  for (size_t t = steps.counts.size(); t-- > 0;) {
    const int64_t begin = steps.offsets[t], count = steps.counts[t];
    const int64_t longer = t + 1 < steps.counts.size() ? steps.counts[t + 1] : 0;  // Rows that go on.
    for (int64_t row = 0; row < count; ++row) {
      float* const i = layer.gates.data() + (begin + row) * gates;
      float* const f = i + units;
      float* const g = i + 2 * units;
      float* const o = i + 3 * units;
      const float* const s = layer.squashed.data() + (begin + row) * units;
      const float* const from_above = delta_.data() + (begin + row) * units;
      const float* const from_later = carried + row * units;
      float* const c_later = cell_carried + row * units;
      const float* const before = t > 0 ? layer.cell.data() + (steps.offsets[t - 1] + row) * units : nullptr;
      const bool goes_on = row < longer;
      for (int64_t u = 0; u < units; ++u) {
        const float dh = goes_on ? from_above[u] + from_later[u] : from_above[u];
        const float dc = dh * o[u] * (1 - s[u] * s[u]) + c_later[u];
        const float iu = i[u], fu = f[u], gu = g[u], ou = o[u];
        c_later[u] = dc * fu;
        i[u] = dc * gu * iu * (1 - iu);
        f[u] = before == nullptr ? 0 : dc * before[u] * fu * (1 - fu);
        g[u] = dc * iu * (1 - gu * gu);
        o[u] = dh * s[u] * ou * (1 - ou);
      }
    }
    if (t > 0) {
      Product(count, gates, units, layer.gates.data() + begin * gates, weights.values_ + at.recurrent.offset, nullptr,
              0, carried);
    }
  }
  // R: the rows of step t - 1 that go on to step t are those of step t.
  const int64_t later = places - first;
  if (later > 0) {
    float* const earlier = Room(Size(later, units), &earlier_);
    for (size_t t = 1; t < steps.counts.size(); ++t) {
      std::memcpy(earlier + (steps.offsets[t] - first) * units, layer.output.data() + steps.offsets[t - 1] * units,
                  Size(steps.counts[t], units) * sizeof(float));
    }
    AddProductOfTransposed(later, gates, units, layer.gates.data() + first * gates, earlier,
                           gradient + at.recurrent.offset);
  }
  if (l > 0) {
    AddColumnSums(places, gates, layer.gates.data(), gradient + at.bias.offset);
    AddProductOfTransposed(places, gates, units, layer.gates.data(), layers_[l - 1].output.data(),
                           gradient + at.input.offset);
    Product(places, gates, units, layer.gates.data(), weights.values_ + at.input.offset, nullptr, 0, delta_.data());
    return;
  }
  // All places with one class have one input.
  float* const of_class = Room(Size(layout_.classes, gates), &class_delta_);
  std::fill(of_class, of_class + layout_.classes * gates, 0.0f);
  for (int64_t i = 0; i < places; ++i) {
    float* const row = of_class + steps.input[static_cast<size_t>(i)] * gates;
    const float* const place = layer.gates.data() + i * gates;
    for (int64_t j = 0; j < gates; ++j) row[j] += place[j];
  }
  AddColumnSums(layout_.classes, gates, of_class, gradient + at.bias.offset);
  AddProductOfTransposed(layout_.classes, gates, layout_.embedding_size, of_class,
                         weights.values_ + layout_.embedding.offset, gradient + at.input.offset);
  float* const embedding = gradient + layout_.embedding.offset;
  Product(layout_.classes, gates, layout_.embedding_size, of_class, weights.values_ + at.input.offset, embedding,
          layout_.embedding_size, embedding);
}

}  // namespace skein
