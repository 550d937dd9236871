// SPDX-License-Identifier: Apache-2.0
#include "bench/fit_data.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/number/philox.h"
#include "base/process/file.h"
#include "learner/sequence/fit_settings.h"

namespace skein {

absl::Status WriteDistinctSequences(uint32_t vocabulary, uint32_t length, uint64_t count, uint64_t seed,
                                    const std::string& path) {
  // As many digits to the base `vocabulary` as the numbers 0 .. count-1 need.
  uint32_t digits = 0;
  for (uint64_t numbers = 1; numbers < count; numbers *= vocabulary) {
    if (vocabulary < 2 || ++digits > length) {
      return absl::InvalidArgumentError(absl::StrCat(count, " sequences of ", length,
                                                     " keys cannot all be different with ", "a vocabulary of ",
                                                     vocabulary, "; make it larger, or use --data"));
    }
  }
  std::string text;
  for (uint64_t i = 0; i < count; ++i) {
    RandomStream random(seed, RandomPurpose::kAction, i, 0);
    uint64_t number = i;
    for (uint32_t t = 0; t < length; ++t) {
      const uint64_t key = t < digits ? number % vocabulary : random.Below(vocabulary);
      number /= vocabulary;
      absl::StrAppend(&text, key, t + 1 < length ? " " : "\n");
    }
  }
  return WriteFileSynced(path, text);
}

absl::StatusOr<std::unique_ptr<FitData>> FitData::Open(const v1::FitConfig& config, uint32_t length,
                                                       const std::function<bool()>& stopped) {
  auto folder = TemporaryFolder::Make();
  if (!folder.ok()) return folder.status();
  std::unique_ptr<FitData> data(new FitData(*std::move(folder), config));
  v1::FitTrainConfig* const train = data->config_.mutable_train();
  train->set_parts(PartsFor(*train, 1));
  v1::FitDataConfig* const files = data->config_.mutable_data();
  const uint64_t count = uint64_t{kFitBatches} * train->batch_size();
  files->set_window(static_cast<uint32_t>(std::min<uint64_t>(files->window(), count)));
  if (files->files().empty()) {
    const std::string path = data->folder_.path() + "/sequences";
    if (absl::Status s = WriteDistinctSequences(config.model().vocabulary(), length, count, config.seed(), path);
        !s.ok()) {
      return s;
    }
    files->set_files(path);
    files->set_keys(v1::SEQUENCE_KEYS_INTEGERS);
    files->set_max_length(std::max(files->max_length(), length));
    files->set_holdout(0);
  }
  auto store = SequenceStore::Open(data->config_, data->store_path(), [&](double) { return !stopped(); });
  if (!store.ok()) return store.status();
  data->store_ = *std::move(store);
  return data;
}

absl::StatusOr<std::unique_ptr<SequenceBatch>> BatchLoop::Next() {
  for (const bool may_begin : {true, false}) {
    if (stream_ == nullptr) {
      BatchStream::Options options;
      options.order = {config_.seed(), 0, config_.data().window(), config_.train().batch_size(), true};
      options.parts = config_.train().parts();
      options.readers = config_.data().readers();
      options.prefetch = config_.data().prefetch();
      stream_ = std::make_unique<BatchStream>(&store_, options);
    }
    auto batch = stream_->Next();
    if (!batch.ok()) return batch.status();
    if (*batch != nullptr) {
      if ((*batch)->number + 1 == kFitBatches) stream_.reset();
      return batch;
    }
    stream_.reset();
    if (!may_begin) break;
  }
  return absl::InvalidArgumentError("the data have no sequences to train on");
}

}  // namespace skein
