// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "bench/temporary_folder.h"
#include "learner/sequence/batch_stream.h"
#include "learner/sequence/sequence_store.h"
#include "skein/v1/fit.pb.h"

// Data for measurements of `skein fit`.   a file, or made-up sequences -> FitData -> BatchLoop -> batches
namespace skein {

// So many batches are used again and again.
inline constexpr uint32_t kFitBatches = 32;

// Writes `count` sequences of `length` keys 0 .. vocabulary-1 each to `path`, one a line. No two are equal: the first
// keys are the sequence's number, the others random, a function of `seed`. InvalidArgument: there are not so many.
// Others as WriteFileSynced.
absl::Status WriteDistinctSequences(uint32_t vocabulary, uint32_t length, uint64_t count, uint64_t seed,
                                    const std::string& path);

// The sequences of a measurement, in a temporary folder that ends with this object.
class FitData {
 public:
  // Those of data.files; or, if this is empty, kFitBatches batches of made-up ones with `length` keys, of a vocabulary
  // of model.vocabulary keys; nothing of these is held out. Cancelled: `stopped()`. Others as WriteDistinctSequences
  // and SequenceStore::Open.
  static absl::StatusOr<std::unique_ptr<FitData>> Open(const v1::FitConfig& config, uint32_t length,
                                                       const std::function<bool()>& stopped);

  // As given, with what the data decide: files, window, parts, and more if they are made up.
  const v1::FitConfig& config() const { return config_; }
  const SequenceStore& store() const { return *store_; }
  // Where the store is: another process may open it there with the same configuration.
  std::string store_path() const { return folder_.path() + "/data"; }

 private:
  FitData(TemporaryFolder folder, v1::FitConfig config) : folder_(std::move(folder)), config_(std::move(config)) {}

  const TemporaryFolder folder_;
  v1::FitConfig config_;
  std::unique_ptr<SequenceStore> store_;
};

// The first epoch's batches, kFitBatches of them at most, and then the same from the first again, as BatchStream
// prepares them. Not thread-safe.
class BatchLoop {
 public:
  // `store` must outlive this. Of `config` count the seed, data and train.
  BatchLoop(const v1::FitConfig& config, const SequenceStore* store) : config_(config), store_(*store) {}

  // InvalidArgument: there are no sequences. Others as BatchStream::Next.
  absl::StatusOr<std::unique_ptr<SequenceBatch>> Next();

 private:
  const v1::FitConfig config_;
  const SequenceStore& store_;
  std::unique_ptr<BatchStream> stream_;
};

}  // namespace skein
