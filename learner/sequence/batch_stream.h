// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "learner/sequence/epoch_order.h"
#include "learner/sequence/sequence_batch.h"
#include "learner/sequence/sequence_store.h"

namespace skein {

// The batches of one epoch in their order, prepared ahead by threads of its own.
//   OrderEpoch -> threads: SequenceStore::Read, MakeBatch -> Next ... -> nullptr
// In memory are `prefetch` batches and the windows that they come from: at most two, unless windows have fewer batches.
// Threads prepare; Next() is for one thread.
class BatchStream {
 public:
  struct Options {
    Part part = Part::kTrain;
    EpochOptions order;
    uint32_t parts = 1;
    uint32_t readers = 1;      // Threads.
    uint32_t prefetch = 4;     // Batches ready or under way, at most.
    uint64_t first_batch = 0;  // Where to begin, for an epoch that is continued.
  };
  // `store` must outlive this.
  BatchStream(const SequenceStore* store, const Options& options);
  ~BatchStream();  // Waits for the threads, at most as long as one of them reads.

  // The next batch; null after the last one. Errors as SequenceStore::Read; ResourceExhausted: no memory for what is
  // read ahead.
  absl::StatusOr<std::unique_ptr<SequenceBatch>> Next();

  uint64_t batches() const { return batches_; }      // Of the whole epoch.
  absl::Duration waited() const { return waited_; }  // In Next, for batches that were not ready.
  absl::Duration working() const;                    // Of all threads, reading and preparing.

 private:
  struct Window;
  void Run() ABSL_LOCKS_EXCLUDED(mu_);
  // false: there is no more to do.
  bool PrepareOne() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::StatusOr<std::shared_ptr<Window>> Load(const EpochWindow& place) const;
  bool MayPrepare() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const SequenceStore& store_;
  const Options options_;
  const std::vector<EpochWindow> windows_;
  uint64_t batches_ = 0;
  absl::Duration waited_;

  mutable absl::Mutex mu_;
  uint64_t claimed_ ABSL_GUARDED_BY(mu_);   // Next batch that no thread prepares yet.
  uint64_t consumed_ ABSL_GUARDED_BY(mu_);  // Next batch that Next() returns.
  std::map<uint64_t, std::unique_ptr<SequenceBatch>> ready_ ABSL_GUARDED_BY(mu_);
  std::map<uint32_t, std::shared_ptr<Window>> loaded_ ABSL_GUARDED_BY(mu_);
  std::vector<uint8_t> loading_ ABSL_GUARDED_BY(mu_);  // By window.
  absl::Status failure_ ABSL_GUARDED_BY(mu_);
  absl::Duration working_ ABSL_GUARDED_BY(mu_);
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;
  std::vector<std::thread> threads_;
};

}  // namespace skein
