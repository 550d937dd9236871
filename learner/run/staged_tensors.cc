// SPDX-License-Identifier: Apache-2.0
#include "learner/run/staged_tensors.h"

#include <torch/types.h>

#include <utility>

#include "learner/network/tensor_codec.h"

namespace skein {

Batch MakeBatch(const Columns& columns) {
  Batch batch;
  for (const Columns::Column& column : columns.all()) {
    if (column.field.extent == Extent::kEpisode) continue;
    char* const memory = const_cast<char*>(column.bytes.data());
    torch::Tensor values = torch::from_blob(memory, columns.Dimensions(column), *TorchType(column.field.dtype));
    if (column.field.bound == Bound::kFlag) values = values.to(torch::kBool);
    batch[column.field.name] = std::move(values);
  }
  return batch;
}

}  // namespace skein
