// SPDX-License-Identifier: Apache-2.0
#include <iterator>
#include <string>

#include "base/number/tensor_packing.h"
#include "tests/fuzz/targets.h"

namespace skein::fuzz {

bool FuzzTensorPacking(absl::string_view input) {
  constexpr v1::DataType kTypes[] = {v1::DATA_TYPE_FLOAT32, v1::DATA_TYPE_FLOAT64, v1::DATA_TYPE_INT64,
                                     v1::DATA_TYPE_INT32,   v1::DATA_TYPE_UINT8,   v1::DATA_TYPE_BFLOAT16};
  if (input.size() < 2) return false;
  const auto first = static_cast<unsigned char>(input[0]);
  const v1::DataType dtype = kTypes[(first & 15) % std::size(kTypes)];
  const auto element = static_cast<size_t>(ElementSize(dtype));
  if (first >> 4 == 0) {
    std::string content(static_cast<unsigned char>(input[1]) * element, '\0');
    return Decompress({input.data() + 2, input.size() - 2}, dtype, content.size(), content.data()).ok();
  }
  v1::Tensor tensor;
  tensor.set_dtype(dtype);
  tensor.set_data(std::string(input.substr(1, (input.size() - 1) / element * element)));
  const std::string before = tensor.data();
  if (dtype == v1::DATA_TYPE_FLOAT32 && first >> 4 == 2) {
    Narrow(&tensor);
    Check(tensor.data().size() * 2 == before.size(), "a bfloat16 is half a float32");
    return true;
  }
  Compress(&tensor);
  if (tensor.compression() != v1::COMPRESSION_ZSTD) return false;
  Check(tensor.data().size() < before.size(), "compressed is smaller");
  std::string after(before.size(), '\0');
  Check(Decompress(tensor.data(), dtype, after.size(), after.data()).ok() && after == before,
        "compression loses nothing");
  return true;
}

}  // namespace skein::fuzz
