// SPDX-License-Identifier: Apache-2.0
#include "learner/sequence/batch_stream.h"

#include <algorithm>
#include <utility>

#include "base/process/clock.h"
#include "learner/sequence/read_memory.h"

namespace skein {

// A window in memory.
struct BatchStream::Window {
  Sequences sequences;
  std::vector<std::vector<uint32_t>> batches;
  uint64_t left = 0;  // Batches that no thread has begun yet.
};

BatchStream::BatchStream(const SequenceStore* store, const Options& options)
    : store_(*store),
      options_(options),
      windows_(OrderEpoch(store->blocks(options.part), options.order)),
      claimed_(options.first_batch),
      consumed_(options.first_batch),
      loading_(windows_.size(), 0) {
  batches_ = BatchesOf(windows_, options_.order.batch_size);
  for (uint32_t i = 0; i < options_.readers; ++i) threads_.emplace_back([this] { Run(); });
}

BatchStream::~BatchStream() {
  {
    const absl::MutexLock lock(&mu_);
    stopping_ = true;
  }
  for (std::thread& thread : threads_) thread.join();
}

absl::Duration BatchStream::working() const {
  const absl::MutexLock lock(&mu_);
  return working_;
}

bool BatchStream::MayPrepare() const {
  return stopping_ || !failure_.ok() || claimed_ >= batches_ || claimed_ < consumed_ + options_.prefetch;
}

absl::StatusOr<std::shared_ptr<BatchStream::Window>> BatchStream::Load(const EpochWindow& place) const {
  auto window = std::make_shared<Window>();
  for (const BlockPlace& block : place.blocks) {
    if (absl::Status s = store_.Read(options_.part, block, &window->sequences); !s.ok()) return s;
  }
  std::vector<uint32_t> steps(window->sequences.size());
  for (size_t i = 0; i < steps.size(); ++i) steps[i] = window->sequences.steps(i);
  window->batches = OrderWindow(steps, place.number, options_.order);
  return window;
}

void BatchStream::Run() {
  mu_.Lock();
  while (PrepareOne()) {
  }
  mu_.Unlock();
}

bool BatchStream::PrepareOne() {
  mu_.Await(absl::Condition(this, &BatchStream::MayPrepare));
  if (stopping_ || !failure_.ok() || claimed_ >= batches_) return false;
  const uint64_t number = claimed_++;
  const auto after = std::upper_bound(windows_.begin(), windows_.end(), number,
                                      [](uint64_t n, const EpochWindow& w) { return n < w.first_batch; });
  const EpochWindow& place = *std::prev(after);
  // The thread that comes first reads the window, the others wait.
  if (loading_[place.number] == 0) {
    loading_[place.number] = 1;
    mu_.Unlock();
    const absl::Duration begin = MonotonicNow();
    auto window = WithinMemory([&] { return Load(place); });
    const absl::Duration took = MonotonicNow() - begin;
    mu_.Lock();
    working_ += took;
    if (!window.ok()) {
      failure_.Update(window.status());
      return false;
    }
    const uint64_t before = std::max(options_.first_batch, place.first_batch) - place.first_batch;
    (*window)->left = (*window)->batches.size() - before;
    loaded_[place.number] = *std::move(window);
  }
  const auto there = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return stopping_ || !failure_.ok() || loaded_.count(place.number) > 0;
  };
  mu_.Await(absl::Condition(&there));
  if (stopping_ || !failure_.ok()) return false;
  const std::shared_ptr<Window> window = loaded_[place.number];
  if (--window->left == 0) loaded_.erase(place.number);
  mu_.Unlock();
  const absl::Duration begin = MonotonicNow();
  auto batch = WithinMemory([&]() -> absl::StatusOr<std::unique_ptr<SequenceBatch>> {
    return std::make_unique<SequenceBatch>(
        MakeBatch(window->sequences, window->batches[number - place.first_batch], options_.parts));
  });
  const absl::Duration took = MonotonicNow() - begin;
  mu_.Lock();
  working_ += took;
  if (!batch.ok()) {
    failure_.Update(batch.status());
    return false;
  }
  (*batch)->number = number;
  ready_[number] = *std::move(batch);
  return true;
}

absl::StatusOr<std::unique_ptr<SequenceBatch>> BatchStream::Next() {
  const absl::Duration begin = MonotonicNow();
  const absl::MutexLock lock(&mu_);
  const auto there = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return !failure_.ok() || consumed_ >= batches_ || ready_.count(consumed_) > 0;
  };
  mu_.Await(absl::Condition(&there));
  waited_ += MonotonicNow() - begin;
  if (!failure_.ok()) return failure_;
  if (consumed_ >= batches_) return nullptr;
  auto batch = std::move(ready_[consumed_]);
  ready_.erase(consumed_++);
  return batch;
}

}  // namespace skein
