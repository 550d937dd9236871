// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "skein/v1/tensor.pb.h"

namespace skein {

// A tensor message of the values, in row-major order. REQUIRES: Value is the type of `dtype`.
template <typename Value>
v1::Tensor MakeTensor(const std::string& name, v1::DataType dtype, const std::vector<int64_t>& shape,
                      const std::vector<Value>& values) {
  v1::Tensor tensor;
  tensor.set_name(name);
  tensor.set_dtype(dtype);
  tensor.mutable_shape()->Assign(shape.begin(), shape.end());
  tensor.set_data(values.data(), values.size() * sizeof(Value));
  return tensor;
}

}  // namespace skein
