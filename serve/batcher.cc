// SPDX-License-Identifier: Apache-2.0
#include "serve/batcher.h"

#include <utility>

namespace skein {

Batcher::Batcher(absl::Duration wait, size_t rows, std::function<void(std::vector<BatchJob>*)> compute)
    : wait_(wait), rows_(rows), compute_(std::move(compute)) {
  if (wait_ > absl::ZeroDuration()) thread_ = std::thread([this] { Run(); });
}

Batcher::~Batcher() {
  if (!thread_.joinable()) return;
  {
    absl::MutexLock lock(&mu_);
    stopping_ = true;
  }
  thread_.join();
}

void Batcher::Add(BatchJob job) {
  if (!thread_.joinable()) {
    std::vector<BatchJob> jobs;
    jobs.push_back(std::move(job));
    compute_(&jobs);
    return;
  }
  absl::MutexLock lock(&mu_);
  waiting_rows_ += job.rows;
  waiting_.push_back(std::move(job));
}

void Batcher::Run() {
  while (true) {
    std::vector<BatchJob> jobs;
    {
      absl::MutexLock lock(&mu_);
      mu_.Await(absl::Condition(this, &Batcher::HasWork));
      if (waiting_.empty()) return;
      mu_.AwaitWithTimeout(absl::Condition(this, &Batcher::IsComplete), wait_);
      jobs.swap(waiting_);
      waiting_rows_ = 0;
    }
    compute_(&jobs);
  }
}

}  // namespace skein
