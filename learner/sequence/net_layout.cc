// SPDX-License-Identifier: Apache-2.0
#include "learner/sequence/net_layout.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "base/number/philox.h"
#include "policy/dense_kernels.h"

namespace skein {

NetLayout::NetLayout(int64_t class_count, int64_t embedding_columns, int64_t units, int64_t layer_count)
    : classes(class_count), embedding_size(embedding_columns), hidden(units), outputs(Padded(class_count)) {
  const auto add = [this](std::string name, int64_t rows, int64_t columns) {
    Parameter parameter{std::move(name), size, rows, columns};
    size += parameter.size();
    return parameter;
  };
  embedding = add("embedding", classes, embedding_size);
  for (int64_t l = 0; l < layer_count; ++l) {
    Layer layer;
    layer.input = add(absl::StrCat("lstm.", l, ".input"), 4 * hidden, l == 0 ? embedding_size : hidden);
    layer.recurrent = add(absl::StrCat("lstm.", l, ".recurrent"), 4 * hidden, hidden);
    layer.bias = add(absl::StrCat("lstm.", l, ".bias"), 1, 4 * hidden);
    layers.push_back(std::move(layer));
  }
  output = add("output.weight", outputs, hidden);
  output_bias = add("output.bias", 1, outputs);
}

std::vector<NetLayout::Parameter> NetLayout::parameters() const {
  std::vector<Parameter> all = {embedding};
  for (const Layer& layer : layers) all.insert(all.end(), {layer.input, layer.recurrent, layer.bias});
  all.insert(all.end(), {output, output_bias});
  return all;
}

void InitializeNet(const NetLayout& layout, uint64_t seed, float* values) {
  const double bound = 1 / std::sqrt(static_cast<double>(layout.hidden));
  uint64_t index = 0;
  const auto random = [&] { return RandomStream(seed, RandomPurpose::kInit, index++, 0); };
  const auto uniform = [&](const NetLayout::Parameter& parameter, int64_t rows) {
    RandomStream stream = random();
    for (int64_t i = 0; i < rows * parameter.columns; ++i) {
      values[parameter.offset + i] = static_cast<float>(stream.Uniform(-bound, bound));
    }
  };
  std::fill(values, values + layout.size, 0.0f);
  RandomStream stream = random();
  for (int64_t i = 0; i < layout.embedding.size(); ++i) {
    values[layout.embedding.offset + i] = static_cast<float>(0.1 * stream.Normal());
  }
  for (const NetLayout::Layer& layer : layout.layers) {
    uniform(layer.input, layer.input.rows);
    uniform(layer.recurrent, layer.recurrent.rows);
    float* const bias = values + layer.bias.offset;
    std::fill(bias + layout.hidden, bias + 2 * layout.hidden, 1.0f);
  }
  uniform(layout.output, layout.classes);
}

}  // namespace skein
