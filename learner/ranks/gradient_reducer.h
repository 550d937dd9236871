// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/types.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "learner/ranks/collective.h"

namespace torch::autograd {
struct Node;
}

namespace skein {

// Sums a flat gradient over the ranks, while backward still computes the rest of it.   Arm -> backward -> Finish
// The gradient is cut into buckets of whole parameters, from its end, which backward reaches first. When the last
// gradient of a bucket has been accumulated, its all-reduce starts; buckets start in the same order on all ranks,
// whatever order their gradients come in. Not thread-safe; between Arm and Finish the collective is this object's.
class GradientReducer {
 public:
  struct Options {
    double bucket_mb = 4;  // 10^6 bytes of float32; a larger parameter is a bucket of its own.
    // Gradients travel as bfloat16: half the bytes, each number and each sum off by at most 2^-8 of its size.
    bool bf16 = false;
  };
  // Since construction.
  struct Cost {
    int64_t all_reduces = 0;
    int64_t bytes_sent = 0;                              // By this rank, as Collective::bytes_sent.
    absl::Duration exposed = absl::ZeroDuration();       // In Finish.
    absl::Duration all_reducing = absl::ZeroDuration();  // From a minibatch's first start to its last end.
  };

  // `parameters` are leaves whose gradients are, in this order, all of `gradient`: float32 [P], contiguous. Hooks stay
  // on them until destruction. `collective` must outlive this.
  GradientReducer(Collective* collective, torch::Tensor gradient, const std::vector<torch::Tensor>& parameters,
                  const Options& options);
  ~GradientReducer();
  GradientReducer(const GradientReducer&) = delete;
  GradientReducer& operator=(const GradientReducer&) = delete;

  // Before the last backward pass of a minibatch; earlier ones only accumulate. Optional: Finish alone sums as well.
  void Arm();
  // The armed pass broke off and the gradient is computed once more from zero (e.g. for want of memory). What has
  // been started is whole and is kept: Arm again, or Finish. Errors as Collective's.
  absl::Status Interrupt();
  // Starts what has not started, waits for all, and leaves the sum over the ranks in the gradient. On a GPU: for the
  // current stream. Errors as Collective's.
  absl::Status Finish();

  size_t buckets() const { return buckets_.size(); }
  // Of this minibatch, so far.
  size_t started() const { return next_; }
  const Cost& cost() const { return cost_; }

 private:
  struct Bucket {
    torch::Tensor gradient;  // Its part, a view.
    size_t parameters;
    size_t missing;            // Parameters whose gradient backward has not accumulated yet.
    torch::Tensor travelling;  // What is summed: `gradient`, or a copy.
    std::unique_ptr<Collective::Work> work;
    bool kept;  // `travelling` has the sum, from before an interruption.
  };
  struct Hook {
    std::shared_ptr<torch::autograd::Node> node;
    uintptr_t key;
  };

  void OnAccumulated(size_t bucket);
  void StartNext();
  absl::Status WaitFor(Bucket* bucket);

  Collective& collective_;
  const bool bf16_;
  std::vector<Bucket> buckets_;  // In the order of starting.
  std::vector<Hook> hooks_;
  bool armed_ = false;
  size_t next_ = 0;  // Buckets before this one have started.
  absl::Time first_start_;
  Cost cost_;
};

}  // namespace skein
