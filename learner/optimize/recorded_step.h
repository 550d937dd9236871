// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/types.h>

#include <functional>
#include <memory>
#include <vector>

#include "learner/optimize/step_graph.h"

namespace skein {

// Work that is repeated on the same tensors, recorded once and replayed.   tensors -> work -> the same tensors
// The first few times are warm-ups; they do the work like all others. If recording fails, the work goes on without, and
// a warning says so. The tensors that are there when it is recorded are written to from then on. Not thread-safe.
class RecordedStep {
 public:
  using Tensors = std::function<std::vector<torch::Tensor*>()>;

  // `tensors` gives the addresses of all tensors that one repetition leaves to the next, always in the same order.
  // `work` may put new ones in their place, and so may the caller between two repetitions; after a replay they are the
  // first ones again, with the new values. What `work` writes elsewhere stays at the same place from the recording on.
  // recorder: null: nothing is recorded.
  RecordedStep(std::unique_ptr<Recorder> recorder, std::function<void()> work, Tensors tensors);

  // Does the work once. Throws what `work` throws, but not while it is recorded, and what Recorder::Replay throws.
  void Run();
  // Drops the recording. To be called when something else has changed that `work` reads.
  void Forget();

  bool recorded() const { return !places_.empty(); }

 private:
  void Record();
  // Puts the recording's tensors in place of others that are there now, with their values.
  void CopyReplaced();

  std::unique_ptr<Recorder> recorder_;
  const std::function<void()> work_;
  const Tensors tensors_;
  std::vector<torch::Tensor> places_;  // What the recording reads and writes; empty: there is none.
  int warm_ups_ = 0;
};

}  // namespace skein
