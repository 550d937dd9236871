// SPDX-License-Identifier: Apache-2.0
#include "policy/snapshot.h"

#include <xxhash.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "policy/tensor_check.h"

namespace skein {
namespace {

std::string FieldName(size_t i, const std::string& name) { return absl::StrCat("tensors[", i, "] ", name); }

// Names, order, dtypes and shapes.
absl::Status CheckLayout(const v1::PolicySnapshot& snapshot, const std::vector<ParameterSpec>& want) {
  for (size_t i = 0; i < want.size(); ++i) {
    const auto& [name, shape] = want[i];
    const std::string field = FieldName(i, name);
    if (static_cast<int>(i) >= snapshot.tensors_size())
      return absl::InvalidArgumentError(absl::StrCat(field, ": missing"));
    const v1::Tensor& tensor = snapshot.tensors(static_cast<int>(i));
    if (tensor.name() != name) {
      return absl::InvalidArgumentError(absl::StrCat(field, ": missing, got \"", tensor.name().substr(0, 128), "\""));
    }
    const bool narrow = tensor.dtype() == v1::DATA_TYPE_BFLOAT16;
    const absl::Status status =
        CheckTensor(tensor, field, narrow ? v1::DATA_TYPE_BFLOAT16 : v1::DATA_TYPE_FLOAT32, shape);
    if (!status.ok()) return status;
  }
  if (static_cast<size_t>(snapshot.tensors_size()) > want.size()) {
    return absl::InvalidArgumentError(absl::StrCat("tensors[", want.size(), "]: superfluous, got ",
                                                   snapshot.tensors_size(), " tensors, want ", want.size()));
  }
  return absl::OkStatus();
}

}  // namespace

uint64_t SnapshotDigest(const v1::PolicySnapshot& snapshot) {
  XXH3_state_t* state = XXH3_createState();
  XXH3_64bits_reset(state);
  for (const v1::Tensor& tensor : snapshot.tensors()) {
    XXH3_64bits_update(state, tensor.name().data(), tensor.name().size());
    XXH3_64bits_update(state, tensor.data().data(), tensor.data().size());
  }
  const uint64_t digest = XXH3_64bits_digest(state);
  XXH3_freeState(state);
  return digest;
}

absl::StatusOr<std::shared_ptr<const Policy>> ReadSnapshot(const v1::PolicySnapshot& snapshot, const PolicySpec& spec) {
  std::vector<ParameterSpec> layout = PolicyParameters(spec);
  layout.push_back({kNormalizerMean, {spec.obs_size}});
  layout.push_back({kNormalizerInvStd, {spec.obs_size}});
  if (absl::Status status = CheckLayout(snapshot, layout); !status.ok()) return status;
  if (const uint64_t digest = SnapshotDigest(snapshot); digest != snapshot.digest()) {
    return absl::DataLossError(absl::StrCat("policy version ", snapshot.version(), ": got digest ",
                                            absl::Hex(digest, absl::kZeroPad16), ", want ",
                                            absl::Hex(snapshot.digest(), absl::kZeroPad16)));
  }
  std::vector<std::vector<float>> values;
  for (size_t i = 0; i < layout.size(); ++i) {
    const std::string field = FieldName(i, layout[i].name);
    absl::StatusOr<std::vector<float>> decoded = DecodeFloats(snapshot.tensors(static_cast<int>(i)), field);
    if (!decoded.ok()) return decoded.status();
    if (!std::all_of(decoded->begin(), decoded->end(), [](float value) { return std::isfinite(value); }))
      return absl::InvalidArgumentError(absl::StrCat(field, ": has a value that is not finite"));
    values.push_back(*std::move(decoded));
  }
  Normalization normalization;
  normalization.inv_std = std::move(values.back());
  values.pop_back();
  normalization.mean = std::move(values.back());
  values.pop_back();
  return MakePolicy(snapshot.version(), spec, values, std::move(normalization));
}

}  // namespace skein
