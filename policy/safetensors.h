// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "skein/v1/tensor.pb.h"

// The safetensors format: 8-byte little-endian header length, JSON header, tensor bytes.
// https://github.com/huggingface/safetensors (format section of its README).
namespace skein {

// Bytes of a file with these tensors in this order and string metadata. Equal input gives equal bytes. Tensor data
// begin at a multiple of 8 bytes. REQUIRES: names are distinct UTF-8, none is "__metadata__"; tensors are consistent
// and not compressed, of a dtype below.
std::string EncodeSafetensors(absl::Span<const v1::Tensor> tensors,
                              const std::map<std::string, std::string>& metadata = {});

// Tensors in order of their offsets. A declared size is checked against the input's size before anything is allocated
// from it. DataLoss: the message says what is wrong and where: header length, JSON, dtype, offsets that overlap or
// leave gaps. dtypes: F32, F64, I64, I32, U8. `metadata`, unless null, receives the file's string metadata.
absl::StatusOr<std::vector<v1::Tensor>> DecodeSafetensors(absl::string_view bytes,
                                                          std::map<std::string, std::string>* metadata = nullptr);

}  // namespace skein
