// SPDX-License-Identifier: Apache-2.0
#include "actor/fragment_packing.h"

#include <memory>
#include <string>
#include <utility>

#include "base/number/tensor_packing.h"

namespace skein {

void PackFragment(const Schema& schema, const v1::TransportConfig& transport, Fragment* fragment) {
  const bool narrows = transport.trajectory_precision() == v1::PRECISION_BF16;
  const bool compresses = transport.trajectory_compression() == v1::COMPRESSION_ZSTD;
  if (!narrows && !compresses) return;
  auto packed = std::make_shared<std::string>();
  size_t at = 0;
  for (size_t i = 0; i < schema.fields.size(); ++i) {
    v1::FieldHead& head = *fragment->header.mutable_fields(static_cast<int>(i));
    v1::Tensor tensor;
    tensor.set_dtype(head.dtype());
    tensor.set_data(fragment->block->data() + at, head.bytes());
    at += static_cast<size_t>(AlignField(static_cast<int64_t>(head.bytes())));
    if (narrows && schema.fields[i].observed) Narrow(&tensor);
    if (compresses) Compress(&tensor);
    fragment->saved_bytes += head.bytes() - tensor.data().size();
    head.set_dtype(tensor.dtype());
    head.set_compression(tensor.compression());
    head.set_bytes(tensor.data().size());
    *packed += tensor.data();
    packed->resize(static_cast<size_t>(AlignField(static_cast<int64_t>(packed->size()))));
  }
  fragment->block = std::move(packed);
}

}  // namespace skein
