// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

// Joins requests that arrive at about the same time into one batch.
namespace skein {

struct ServedPolicy;

// One request on its way through a batch.
struct BatchJob {
  size_t rows = 0;
  std::vector<float> observations;  // [R, O]
  std::vector<uint8_t> resets;      // [R]
  std::vector<float>* state;        // [R, S], of its session, or its own.
  bool sample = false;
  uint32_t number = 0;  // Of the request; its noise follows from it.
  // Called by what computes, with the policy that it computed with.
  std::function<void(std::vector<float> actions, std::shared_ptr<const ServedPolicy> policy)> done;
};

// Puts requests together that come within a short time.   Add -> batch -> compute
// Without a time to wait each is computed on the thread that adds it. Thread-safe.
class Batcher {
 public:
  // `compute` is called with at least one job. A batch is complete with `rows` rows or more.
  Batcher(absl::Duration wait, size_t rows, std::function<void(std::vector<BatchJob>*)> compute);
  // Computes what has been added.
  ~Batcher();

  void Add(BatchJob job) ABSL_LOCKS_EXCLUDED(mu_);

 private:
  void Run() ABSL_LOCKS_EXCLUDED(mu_);
  bool IsComplete() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) { return stopping_ || waiting_rows_ >= rows_; }
  bool HasWork() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) { return stopping_ || !waiting_.empty(); }

  const absl::Duration wait_;
  const size_t rows_;
  const std::function<void(std::vector<BatchJob>*)> compute_;
  absl::Mutex mu_;
  std::vector<BatchJob> waiting_ ABSL_GUARDED_BY(mu_);
  size_t waiting_rows_ ABSL_GUARDED_BY(mu_) = 0;
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;
  std::thread thread_;  // Only with a time to wait.
};

}  // namespace skein
