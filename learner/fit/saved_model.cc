// SPDX-License-Identifier: Apache-2.0
#include "learner/fit/saved_model.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/types/span.h"
#include "learner/sequence/fit_settings.h"
#include "learner/sequence/net_layout.h"

namespace skein {
namespace {

constexpr char kBest[] = "best", kVocabulary[] = "vocabulary", kCounts[] = "counts", kSums[] = "sums",
               kLimits[] = "limits", kOtherLimits[] = "limits_of_new_counts", kKnownCounts[] = "known_counts",
               kDigest[] = "data_digest";

torch::Tensor Bytes(const std::string& text) {
  torch::Tensor bytes = torch::empty({static_cast<int64_t>(text.size())}, torch::kUInt8);
  std::copy(text.begin(), text.end(), bytes.data_ptr<uint8_t>());
  return bytes;
}
std::string Text(const torch::Tensor& bytes) {
  const uint8_t* const data = bytes.data_ptr<uint8_t>();
  return std::string(data, data + bytes.numel());
}

// The names of a vocabulary, which have no blanks, one a line.
std::string NamesText(const Vocabulary& vocabulary) { return absl::StrJoin(vocabulary.names(), "\n"); }
Vocabulary VocabularyOf(const std::string& names) {
  return Vocabulary(names.empty() ? std::vector<std::string>() : absl::StrSplit(names, '\n'));
}

torch::Tensor LimitsTensor(const Limits& limits) {
  return torch::tensor({limits.probability, static_cast<double>(limits.top_g)}, torch::kFloat64);
}
Limits LimitsOf(const torch::Tensor& numbers) {
  const double* const data = numbers.data_ptr<double>();
  return {v1::DETECT_RULE_PROBABILITY, data[0], static_cast<uint32_t>(data[1])};
}

torch::Tensor Hashes(const KnownCounts& known) {
  std::vector<uint64_t> hashes = known.Sorted();
  return torch::from_blob(hashes.data(), {static_cast<int64_t>(hashes.size())}, torch::kInt64).clone();
}

FitProgress ProgressOf(const torch::Tensor& counts, const torch::Tensor& sums) {
  const int64_t* const count = counts.data_ptr<int64_t>();
  const double* const sum = sums.data_ptr<double>();
  const auto at = [&](size_t i) { return static_cast<uint64_t>(count[i]); };
  FitProgress p;
  p.epoch = at(0), p.next_batch = at(1), p.steps = at(2), p.skipped = at(3), p.sequences = at(4), p.keys = at(5);
  p.epoch_sequences = at(6), p.epoch_keys = at(7), p.best_epoch = at(8), p.finished = count[9] != 0;
  p.epoch_loss = sum[0], p.best_held_out_loss = sum[1], p.held_out_loss = sum[2];
  return p;
}

}  // namespace

Limits SavedModel::chosen_limits() const {
  Limits chosen = config.detect().known_counts() ? other_limits : limits;
  chosen.rule = config.detect().rule();
  if (config.detect().probability() > 0) chosen.probability = config.detect().probability();
  if (config.detect().top_g() > 0) chosen.top_g = config.detect().top_g();
  return chosen;
}

const torch::Tensor* FindTensor(const NamedTensors& tensors, const std::string& name, torch::ScalarType type,
                                int64_t size) {
  for (const auto& [key, tensor] : tensors) {
    if (key == name && tensor.scalar_type() == type && (size < 0 || tensor.numel() == size)) return &tensor;
  }
  return nullptr;
}

absl::Status MissingTensor(const std::string& name) {
  return absl::DataLossError(
      absl::StrCat("the checkpoint has no tensor ", name, " of the size that its settings want"));
}

NamedTensors SavedModelState(const FitProgress& progress, const torch::Tensor& best, const Vocabulary& vocabulary,
                             const std::string& data_digest, const DetectionChoice* choice) {
  const FitProgress& p = progress;
  std::vector<int64_t> counts;
  for (const uint64_t count : {p.epoch, p.next_batch, p.steps, p.skipped, p.sequences, p.keys, p.epoch_sequences,
                               p.epoch_keys, p.best_epoch, uint64_t{p.finished}}) {
    counts.push_back(static_cast<int64_t>(count));
  }
  NamedTensors state = {{kBest, best},
                        {kVocabulary, Bytes(NamesText(vocabulary))},
                        {kDigest, Bytes(data_digest)},
                        {kCounts, torch::tensor(counts, torch::kInt64)},
                        {kSums, torch::tensor({p.epoch_loss, p.best_held_out_loss, p.held_out_loss}, torch::kFloat64)}};
  if (choice == nullptr) return state;
  state.emplace_back(kLimits, LimitsTensor(choice->alone.limits));
  if (choice->has_known) {
    state.emplace_back(kOtherLimits, LimitsTensor(choice->others.limits));
    state.emplace_back(kKnownCounts, Hashes(choice->known));
  }
  return state;
}

absl::StatusOr<SavedModel> ReadSavedModel(const Checkpoint& checkpoint, const std::string& path) {
  if (checkpoint.env_id != kSequenceModelId) {
    return absl::FailedPreconditionError(absl::StrCat(path, " is a checkpoint of a policy for ", checkpoint.env_id,
                                                      "; want one of `skein fit` (`skein eval` plays policies)"));
  }
  SavedModel saved;
  auto config = ParseFitConfig(checkpoint.config_yaml, absl::StrCat(path, "/manifest.json: config_yaml"));
  if (!config.ok()) return absl::DataLossError(config.status().message());
  saved.config = *std::move(config);
  const auto state = DecodeTensors(checkpoint.state);
  if (!state.ok()) return absl::DataLossError(absl::StrCat(path, ": ", state.status().message()));
  const torch::Tensor* const names = FindTensor(*state, kVocabulary, torch::kUInt8, -1);
  if (names == nullptr) return MissingTensor(kVocabulary);
  saved.vocabulary = VocabularyOf(Text(*names));
  const torch::Tensor* const digest = FindTensor(*state, kDigest, torch::kUInt8, -1);
  if (digest == nullptr) return MissingTensor(kDigest);
  saved.data_digest = Text(*digest);
  const torch::Tensor* const counts = FindTensor(*state, kCounts, torch::kInt64, 10);
  if (counts == nullptr) return MissingTensor(kCounts);
  const torch::Tensor* const sums = FindTensor(*state, kSums, torch::kFloat64, 3);
  if (sums == nullptr) return MissingTensor(kSums);
  saved.progress = ProgressOf(*counts, *sums);
  const v1::FitModelConfig& model = saved.config.model();
  const NetLayout layout(saved.vocabulary.classes(), model.embedding(), model.hidden(), model.layers());
  const torch::Tensor* const best = FindTensor(*state, kBest, torch::kFloat32, layout.size);
  if (best == nullptr) return MissingTensor(kBest);
  const float* const values = best->data_ptr<float>();
  saved.parameters.assign(values, values + best->numel());
  if (const torch::Tensor* const limits = FindTensor(*state, kLimits, torch::kFloat64, 2); limits != nullptr) {
    saved.limits = LimitsOf(*limits);
    saved.has_limits = true;
  }
  const torch::Tensor* const known = FindTensor(*state, kKnownCounts, torch::kInt64, -1);
  const torch::Tensor* const others = FindTensor(*state, kOtherLimits, torch::kFloat64, 2);
  if (known != nullptr && others != nullptr) {
    const auto* const hashes = reinterpret_cast<const uint64_t*>(known->data_ptr<int64_t>());
    saved.known_counts.emplace(absl::MakeConstSpan(hashes, static_cast<size_t>(known->numel())));
    saved.other_limits = LimitsOf(*others);
  }
  return saved;
}

}  // namespace skein
