// SPDX-License-Identifier: Apache-2.0
#include "policy/feed_forward.h"

#include <utility>

namespace skein {

FeedForward::FeedForward(uint64_t version, const PolicySpec& spec, absl::Span<const std::vector<float>> layers,
                         std::vector<float> log_std, Normalization normalization)
    : Policy(version, spec, std::move(log_std), std::move(normalization)),
      parameters_(layers.begin(), layers.end()),
      layers_(spec, layers) {}

std::shared_ptr<const Policy> FeedForward::Perturbed(const Direction& direction, double scale) const {
  std::vector<std::vector<float>> moved = parameters_;
  MoveAlong(direction, scale, SearchedParameters(spec()), absl::MakeSpan(moved));
  return std::make_shared<const FeedForward>(version(), spec(), moved, log_std(), normalization());
}

void FeedForward::Act(const float* obs, const float*, int64_t rows, float* head, float*) const {
  thread_local AlignedFloats input;
  const int64_t size = spec().obs_size;
  MakeRoom(rows * size, &input);
  normalization().Apply(obs, rows, input.data());
  layers_.Forward(input.data(), size, rows, head);
}

}  // namespace skein
