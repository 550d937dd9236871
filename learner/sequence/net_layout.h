// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace skein {

// A model of sequences: embedding, stacked LSTM (Hochreiter & Schmidhuber 1997, with forget gates), softmax over
// classes.
//   x = E[input]     i, f, o = sigma(W x + R h + b)_i,f,o     g = tanh(W x + R h + b)_g
//   c' = f c + i g   h' = o tanh(c')     p = softmax(U h' + u)
// The numbers of all parameters are one array; this is where each of them is. Layers' rows are in the order i, f, g, o.
struct NetLayout {
  struct Parameter {
    std::string name;
    int64_t offset = 0, rows = 0, columns = 0;  // Row-major.
    int64_t size() const { return rows * columns; }
  };
  struct Layer {
    Parameter input, recurrent, bias;  // W [4H, in], R [4H, H], b [1, 4H].
  };

  // embedding and hidden: multiples of 16.
  NetLayout(int64_t classes, int64_t embedding, int64_t hidden, int64_t layers);

  int64_t classes, embedding_size, hidden;
  int64_t outputs;      // classes, rounded up to a multiple of 16. Those beyond are no classes; they stay 0.
  Parameter embedding;  // E [classes, embedding_size].
  std::vector<Layer> layers;
  Parameter output, output_bias;  // U [outputs, H], u [1, outputs].
  int64_t size = 0;               // Of the array.

  std::vector<Parameter> parameters() const;  // By offset.
};

// Initial numbers, a function of the seed: weights uniform within 1 / sqrt(H), forget gates' bias 1, other biases 0,
// embedding normal with standard deviation 0.1; written to values[layout.size].
void InitializeNet(const NetLayout& layout, uint64_t seed, float* values);

}  // namespace skein
