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

// Sums a flat gradient over the ranks while backward still computes the rest of it.   Arm -> backward -> Finish
// The gradient is divided into buckets of whole parameters, from its end, which backward reaches first. When the last
// gradient of a bucket has been accumulated, its all-reduce starts. Buckets start in the same order on all ranks,
// in whatever order their gradients come. Not thread-safe; between Arm and Finish only this may use the collective.
class GradientReducer {
 public:
  struct Options {
    double bucket_mb = 4;  // 10^6 bytes of float32; a larger parameter is a bucket of its own.
    // Gradients are sent as bfloat16: half the bytes; each number and each sum has a relative error of at most 2^-8.
    bool bf16 = false;
  };
  // Totals since construction.
  struct Cost {
    int64_t all_reduces = 0;
    int64_t bytes_sent = 0;                              // By this rank, as Collective::bytes_sent.
    absl::Duration exposed = absl::ZeroDuration();       // Time in Finish: not hidden behind backward.
    absl::Duration all_reducing = absl::ZeroDuration();  // From each minibatch's first start to the end of Finish.
  };

  // `parameters`: leaves whose gradients, in this order, make up `gradient`: float32 [P], contiguous. This keeps hooks
  // on them until destruction. `collective` must outlive this.
  GradientReducer(Collective* collective, torch::Tensor gradient, const std::vector<torch::Tensor>& parameters,
                  const Options& options);
  ~GradientReducer();
  GradientReducer(const GradientReducer&) = delete;
  GradientReducer& operator=(const GradientReducer&) = delete;

  // Call before the last backward pass of a minibatch; earlier passes only accumulate. Optional: Finish alone sums too.
  void Arm();
  // The armed pass failed (e.g. out of memory) and the gradient will be computed again from zero. Buckets whose
  // all-reduce has started are complete; their sums are kept. Then Arm again, or Finish. Errors as Collective's.
  absl::Status Interrupt();
  // Starts the remaining all-reduces, waits for all, and leaves the sum over the ranks in the gradient (on a GPU: for
  // use by the current stream). Errors as Collective's.
  absl::Status Finish();

  size_t buckets() const { return buckets_.size(); }
  // Buckets of this minibatch whose all-reduce has started.
  size_t started() const { return next_; }
  const Cost& cost() const { return cost_; }

 private:
  struct Bucket {
    torch::Tensor gradient;  // A view of its part of the gradient.
    size_t parameters;
    size_t missing;            // Parameters whose gradient backward has not accumulated yet.
    torch::Tensor travelling;  // The tensor that is summed: `gradient`, or a copy.
    std::unique_ptr<Collective::Work> work;
    bool kept;  // `travelling` has the sum from before Interrupt.
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
