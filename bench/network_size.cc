// SPDX-License-Identifier: Apache-2.0
#include "bench/network_size.h"

#include <cstdlib>

namespace skein {
namespace {

constexpr uint32_t kWidest = 65536;  // As config.proto has it.
constexpr uint32_t kAligned = 8;     // Values of 16 bits that a GPU's matrix units take at once.
constexpr uint32_t kWide = 32 * kAligned;

int64_t LayerSize(int64_t inputs, int64_t outputs) { return (inputs + 1) * outputs; }

void SetWidth(uint32_t width, v1::ModelConfig* model) {
  for (uint32_t& layer : *model->mutable_hidden()) layer = width;
}

}  // namespace

int64_t CountParameters(const v1::ModelConfig& model, const EnvSpec& spec) {
  int64_t stack = 0, inputs = spec.obs_size;
  for (const int64_t width : model.hidden()) {
    stack += LayerSize(inputs, width);
    inputs = width;
  }
  const int64_t heads = LayerSize(inputs, spec.action_size) + LayerSize(inputs, 1);
  const int64_t log_std = spec.discrete ? 0 : spec.action_size;
  return (model.shared_trunk() ? 1 : 2) * stack + heads + log_std;
}

void FitHiddenLayers(int64_t parameters, const EnvSpec& spec, v1::ModelConfig* model) {
  if (model->hidden_size() == 0) {
    model->add_hidden(1);
    model->add_hidden(1);
  }
  uint32_t below = 1, above = kWidest;  // Widths with at most, and with more than, `parameters` parameters.
  while (above - below > 1) {
    const uint32_t middle = (below + above) / 2;
    SetWidth(middle, model);
    (CountParameters(*model, spec) <= parameters ? below : above) = middle;
  }
  SetWidth(above, model);
  const int64_t too_many = CountParameters(*model, spec) - parameters;
  SetWidth(below, model);
  const uint32_t nearest = too_many < std::abs(parameters - CountParameters(*model, spec)) ? above : below;
  SetWidth(nearest < kWide ? nearest : (nearest + kAligned / 2) / kAligned * kAligned, model);
}

}  // namespace skein
