// SPDX-License-Identifier: Apache-2.0
#include "export/portable_actor.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "env/clip_action.h"

namespace skein {
namespace {

using Kind = TransformOptions::Kind;

// One row of a transform. older: [count - 1, O], read unless `reset`, and written.
void Stack(const Transform& transform, const std::vector<float>& obs, bool reset, float* older,
           std::vector<float>* stacked) {
  const size_t size = obs.size(), kept = static_cast<size_t>(transform.options.count - 1) * size;
  if (reset) {
    for (size_t i = 0; i < kept; i += size) std::copy(obs.begin(), obs.end(), older + i);
  }
  stacked->assign(older, older + kept);
  stacked->insert(stacked->end(), obs.begin(), obs.end());
  std::copy_n(stacked->begin() + static_cast<std::ptrdiff_t>(size), kept, older);
}

}  // namespace

PortableActor::PortableActor(PortablePolicy portable, std::shared_ptr<const Policy> policy)
    : portable_(std::move(portable)),
      policy_(std::move(policy)),
      state_size_(portable_.state_size()),
      std_(portable_.Std()) {}

void PortableActor::Head(const float* observation, const uint8_t* reset, int64_t rows, float* state,
                         float* head) const {
  const int64_t seen = portable_.spec.obs_size, memory = policy_->spec().state_size(), stacks = state_size_ - memory;
  thread_local std::vector<float> obs, memories, row, next;
  obs.resize(static_cast<size_t>(rows * seen));
  memories.resize(static_cast<size_t>(rows * memory));
  for (int64_t r = 0; r < rows; ++r) {
    const float* const own = observation + r * observation_size();
    float* older = state + r * state_size_;
    row.assign(own, own + observation_size());
    for (const Transform& transform : portable_.transforms) {
      if (transform.options.kind == Kind::kHide) {
        next.clear();
        for (const int column : transform.kept) next.push_back(row[static_cast<size_t>(column)]);
        row.swap(next);
      } else if (transform.options.kind == Kind::kStack) {
        Stack(transform, row, reset[r] != 0, older, &next);
        older += static_cast<int64_t>(transform.options.count - 1) * static_cast<int64_t>(row.size());
        row.swap(next);
      }
    }
    std::copy(row.begin(), row.end(), obs.begin() + r * seen);
    float* const kept = memories.data() + r * memory;
    if (reset[r] != 0) {
      std::fill_n(kept, memory, 0.0f);
    } else {
      std::copy_n(state + r * state_size_ + stacks, memory, kept);
    }
  }
  policy_->Act(obs.data(), memories.data(), rows, head, memories.data());
  for (int64_t r = 0; r < rows; ++r) {
    std::copy_n(memories.data() + r * memory, memory, state + r * state_size_ + stacks);
  }
}

void PortableActor::ActOne(const float* head, const float* noise, float* action) const {
  const EnvSpec& spec = portable_.spec;
  if (spec.discrete) {
    const int64_t choices = head_size();
    int64_t picked = std::max_element(head, head + choices) - head;
    if (noise != nullptr) {
      const double top = head[picked];
      double left = 0;
      for (int64_t c = 0; c < choices; ++c) left += std::exp(head[c] - top);
      left *= *noise;
      for (picked = 0; picked < choices - 1 && (left -= std::exp(head[picked] - top)) >= 0;) ++picked;
    }
    *action = static_cast<float>(picked);
    return;
  }
  for (int i = 0; i < spec.action_size; ++i) {
    const float acted = noise == nullptr ? head[i] : head[i] + std_[i] * noise[i];
    action[i] = spec.clip_actions ? ClipAction(acted, spec.action_low[i], spec.action_high[i]) : acted;
  }
  TransformAction(portable_.transforms, action);
}

void PortableActor::Action(const float* head, const float* noise, int64_t rows, float* action) const {
  const int64_t size = action_size();
  for (int64_t r = 0; r < rows; ++r) {
    ActOne(head + r * head_size(), noise == nullptr ? nullptr : noise + r * size, action + r * size);
  }
}

}  // namespace skein
