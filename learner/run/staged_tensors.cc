// SPDX-License-Identifier: Apache-2.0
#include "learner/run/staged_tensors.h"

#include <torch/types.h>

#include <utility>

namespace skein {
namespace {

torch::ScalarType TorchType(v1::DataType dtype) {
  switch (dtype) {
    case v1::DATA_TYPE_FLOAT64:
      return torch::kFloat64;
    case v1::DATA_TYPE_INT64:
      return torch::kInt64;
    case v1::DATA_TYPE_INT32:
      return torch::kInt32;
    case v1::DATA_TYPE_UINT8:
      return torch::kUInt8;
    default:
      return torch::kFloat32;  // Also of what travels as bfloat16.
  }
}

}  // namespace

Batch MakeBatch(const Columns& columns) {
  Batch batch;
  for (const Columns::Column& column : columns.all()) {
    if (column.field.extent == Extent::kEpisode) continue;
    char* const memory = const_cast<char*>(column.bytes.data());
    torch::Tensor values = torch::from_blob(memory, columns.Dimensions(column), TorchType(column.field.dtype));
    if (column.field.bound == Bound::kFlag) values = values.to(torch::kBool);
    batch[column.field.name] = std::move(values);
  }
  return batch;
}

}  // namespace skein
