// SPDX-License-Identifier: Apache-2.0
#include "learner/fit/detect.h"

#include <xxhash.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <system_error>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "absl/types/span.h"
#include "base/config/message_settings.h"
#include "base/process/cores.h"
#include "base/process/message_text.h"
#include "base/process/system_error.h"
#include "base/telemetry/format_count.h"
#include "learner/fit/saved_model.h"
#include "learner/optimize/thread_team.h"
#include "learner/sequence/fit_settings.h"
#include "learner/sequence/line_reader.h"
#include "learner/sequence/sequence_store.h"

namespace skein {
namespace {

constexpr size_t kLinesTogether = 8192;
constexpr size_t kKeysTogether = size_t{1} << 22;  // Of those lines.
constexpr size_t kMaxKnown = size_t{1} << 22;      // Verdicts that are kept for equal sequences.

// What is said of a sequence.
struct Verdict {
  bool anomalous = false;  // By the model.
  bool known_counts = false;
  uint32_t position = 0, key_class = 0;
  KeyJudgement key;
  float least_probability = 1;
};

Verdict Judge(const std::vector<KeyJudgement>& keys, const uint32_t* classes, uint32_t length, const Limits& limits) {
  Verdict verdict;
  for (size_t i = 0; i < keys.size(); ++i) {
    verdict.least_probability = std::min(verdict.least_probability, keys[i].probability);
    if (verdict.anomalous || !limits.IsAnomalous(keys[i])) continue;
    verdict.anomalous = true;
    verdict.position = static_cast<uint32_t>(i);
    verdict.key_class = i < length ? classes[i] : Vocabulary::kEnd;
    verdict.key = keys[i];
  }
  return verdict;
}

// Sequences by their content: two that differ have one fingerprint with a chance of 2^-128 for each pair.
struct Fingerprint {
  uint64_t low = 0, high = 0;
  bool operator==(const Fingerprint& other) const { return low == other.low && high == other.high; }
  template <typename H>
  friend H AbslHashValue(H h, const Fingerprint& f) {
    return H::combine(std::move(h), f.low, f.high);
  }
};

class Detector {
 public:
  Detector(SavedModel saved, const Limits& limits, uint32_t threads)
      : saved_(std::move(saved)),
        limits_(limits),
        by_counts_(saved_.config.detect().known_counts()),
        layout_(saved_.vocabulary.classes(), saved_.config.model().embedding(), saved_.config.model().hidden(),
                saved_.config.model().layers()),
        weights_(&layout_),
        team_(static_cast<int>(threads) - 1) {
    weights_.Update(saved_.parameters.data());
    for (int i = 0; i < team_.size(); ++i) passes_.push_back(std::make_unique<LstmPass>(&layout_));
  }

  absl::Status Read(const std::string& path, std::FILE* out, const ShutdownSignal* shutdown);
  std::string Summary() const {
    return absl::StrFormat(
               "%s sequences, %s of them distinct or new: %s anomalous (%.3f%%); %s unknown keys; rule %s",
               FormatCount(sequences_), FormatCount(judged_), FormatCount(anomalous_),
               sequences_ > 0 ? 100.0 * static_cast<double>(anomalous_) / static_cast<double>(sequences_) : 0.0,
               FormatCount(unknown_),
               limits_.rule == v1::DETECT_RULE_TOP_G ? absl::StrCat("top_g ", limits_.top_g)
                                                     : absl::StrFormat("probability %.3g", limits_.probability)) +
           (by_counts_ ? absl::StrCat("; ", FormatCount(known_counts_), " have a known count vector") : "");
  }
  std::string SummaryJson() const {
    const bool top_g = limits_.rule == v1::DETECT_RULE_TOP_G;
    nlohmann::ordered_json json = {{"sequences", sequences_},
                                   {"distinct", judged_},
                                   {"anomalous", anomalous_},
                                   {"unknown_keys", unknown_},
                                   {"rule", top_g ? "top_g" : "probability"},
                                   {"probability", nullptr},
                                   {"top_g", nullptr}};
    if (top_g) {
      json["top_g"] = limits_.top_g;
    } else {
      json["probability"] = limits_.probability;
    }
    if (by_counts_) json["known_counts"] = known_counts_;
    return json.dump();
  }

 private:
  struct Line {
    uint64_t number;
    Fingerprint fingerprint;
  };
  absl::Status AddLine(absl::string_view text, const LineReader& reader);
  // Judges what is new among the lines, then writes them all.
  absl::Status Flush(const std::string& path, std::FILE* out);

  const SavedModel saved_;
  const Limits limits_;
  const bool by_counts_;  // A sequence with a known count vector is normal. saved_.known_counts is there then.
  const NetLayout layout_;
  NetWeights weights_;
  ThreadTeam team_;
  std::vector<std::unique_ptr<LstmPass>> passes_;
  absl::flat_hash_map<Fingerprint, Verdict> known_;
  std::vector<Line> lines_;
  Sequences fresh_;  // Not judged yet, each once.
  std::vector<Fingerprint> fresh_names_;
  uint64_t sequences_ = 0, judged_ = 0, anomalous_ = 0, unknown_ = 0, known_counts_ = 0;
};

absl::Status Detector::AddLine(absl::string_view text, const LineReader& reader) {
  const size_t begin = fresh_.classes.size(), most = saved_.config.data().max_length();
  std::string storage;
  bool cut = false;
  for (absl::string_view key = TakeKey(&text); !key.empty(); key = TakeKey(&text)) {
    if (fresh_.classes.size() - begin == most) {
      if (saved_.config.data().too_long() == v1::LONG_SEQUENCES_REFUSE) {
        return reader.Error(absl::StrCat("more than ", most,
                                         " keys (data.max_length); raise it by --set, or set data.too_long to cut"));
      }
      cut = true;
      break;
    }
    const auto name = CanonicalKey(saved_.config.data().keys(), key, &storage);
    if (!name.ok()) return reader.Error(name.status().message());
    const uint32_t key_class = saved_.vocabulary.ClassOf(*name);
    if (key_class == Vocabulary::kUnknown) {
      if (saved_.config.data().unknown_keys() == v1::UNKNOWN_KEYS_REFUSE) {
        return reader.Error(absl::StrCat("key ", Quoted(*name),
                                         " is not in the model's vocabulary; to judge it as an "
                                         "unknown one set data.unknown_keys to count"));
      }
      ++unknown_;
    }
    fresh_.classes.push_back(key_class);
  }
  const size_t length = fresh_.classes.size() - begin;
  if (length == 0) return absl::OkStatus();  // An empty line is no sequence.
  const XXH128_hash_t hash =
      XXH3_128bits_withSeed(fresh_.classes.data() + begin, length * sizeof(uint32_t), cut ? 1 : 0);
  lines_.push_back({reader.line(), {hash.low64, hash.high64}});
  if (!known_.try_emplace(lines_.back().fingerprint).second) {
    fresh_.classes.resize(begin);
    return absl::OkStatus();
  }
  fresh_.begins.push_back(static_cast<uint32_t>(fresh_.classes.size()));
  fresh_.cut.push_back(cut ? 1 : 0);
  fresh_names_.push_back(lines_.back().fingerprint);
  return absl::OkStatus();
}

absl::Status Detector::Flush(const std::string& path, std::FILE* out) {
  // The longest first, and rows of about one length together.
  std::vector<uint32_t> order(fresh_.size());
  for (uint32_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(),
                   [&](uint32_t a, uint32_t b) { return fresh_.steps(a) > fresh_.steps(b); });
  SequenceBatch batch;
  for (const uint32_t i : order) {
    batch.rows.classes.insert(batch.rows.classes.end(), fresh_.classes.begin() + fresh_.begins[i],
                              fresh_.classes.begin() + fresh_.begins[i + 1]);
    batch.rows.begins.push_back(static_cast<uint32_t>(batch.rows.classes.size()));
    batch.rows.cut.push_back(fresh_.cut[i]);
    batch.weights.push_back(1);
  }
  std::vector<uint32_t> pieces = {0};
  while (pieces.back() < order.size()) pieces.push_back(EndOfRowsTogether(layout_, batch, pieces.back()));
  std::vector<Verdict> verdicts(order.size());
  team_.Run(team_.size(), [&](int thread) {
    for (auto piece = static_cast<size_t>(thread); piece + 1 < pieces.size();
         piece += static_cast<size_t>(team_.size())) {
      const auto judged = JudgeRows(weights_, batch, pieces[piece], pieces[piece + 1], saved_.vocabulary.classes(),
                                    passes_[static_cast<size_t>(thread)].get());
      for (uint32_t row = pieces[piece]; row < pieces[piece + 1]; ++row) {
        verdicts[row] = Judge(judged[row - pieces[piece]], batch.rows.classes.data() + batch.rows.begins[row],
                              batch.rows.length(row), limits_);
        if (by_counts_) {
          const auto classes =
              absl::MakeConstSpan(batch.rows.classes).subspan(batch.rows.begins[row], batch.rows.length(row));
          verdicts[row].known_counts = saved_.known_counts->Contains(classes, batch.rows.cut[row] != 0);
        }
      }
    }
  });
  for (size_t row = 0; row < order.size(); ++row) known_[fresh_names_[order[row]]] = verdicts[row];
  judged_ += order.size();

  std::string text;
  for (const Line& line : lines_) {
    const Verdict& verdict = known_[line.fingerprint];
    const bool anomalous = verdict.anomalous && !verdict.known_counts;
    nlohmann::ordered_json json = {{"file", path}, {"line", line.number}, {"anomalous", anomalous}};
    if (by_counts_) json["known_counts"] = verdict.known_counts;
    for (const char* name : {"position", "key", "rank", "probability"}) json[name] = nullptr;
    if (verdict.anomalous) {
      json["position"] = verdict.position;
      json["key"] = saved_.vocabulary.NameOf(verdict.key_class);
      json["rank"] = verdict.key.rank;
      json["probability"] = verdict.key.probability;
    }
    if (anomalous) ++anomalous_;
    if (verdict.known_counts) ++known_counts_;
    json["least_probability"] = verdict.least_probability;
    absl::StrAppend(&text, json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace), "\n");
  }
  sequences_ += lines_.size();
  lines_.clear();
  fresh_ = Sequences();
  fresh_names_.clear();
  if (known_.size() > kMaxKnown) known_.clear();
  if (std::fwrite(text.data(), 1, text.size(), out) != text.size() || std::fflush(out) != 0) {
    return SystemError(errno, "writing verdicts");
  }
  return absl::OkStatus();
}

absl::Status Detector::Read(const std::string& path, std::FILE* out, const ShutdownSignal* shutdown) {
  const auto reader = LineReader::Open(path);
  if (!reader.ok()) return reader.status();
  const uint64_t before = sequences_;
  absl::string_view line;
  for (;;) {
    const auto more = (*reader)->Next(&line);
    absl::Status status = more.status();
    if (status.ok() && *more) status = AddLine(line, **reader);
    const bool full = lines_.size() >= kLinesTogether || fresh_.classes.size() >= kKeysTogether;
    const bool ends = !status.ok() || !*more;
    if (full || ends) {
      if (!status.ok()) fresh_.classes.resize(fresh_.begins.back());  // Of a line that broke off.
      const absl::Status flushed = Flush(path, out);
      if (!status.ok()) return status;
      if (!flushed.ok()) return flushed;
      if (shutdown->signalled()) return absl::CancelledError("stopped on request");
    }
    if (ends) break;
  }
  if ((*reader)->line() == 0) return (*reader)->Error("the file is empty");
  if (sequences_ == before) return (*reader)->Error("the file has no sequence");
  return absl::OkStatus();
}

// Of a setting that training alone reads no verdict would change.
absl::Status CheckMayChange(const std::string& assignment) {
  static constexpr std::array<absl::string_view, 7> kRead = {
      "data.max_length",    "data.too_long", "data.unknown_keys",  "detect.rule",
      "detect.probability", "detect.top_g",  "detect.known_counts"};
  const absl::string_view key =
      absl::StripAsciiWhitespace(absl::string_view(assignment).substr(0, assignment.find('=')));
  if (std::find(kRead.begin(), kRead.end(), key) != kRead.end()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("--set ", Shown(assignment), ": detect reads ",
                                                 absl::StrJoin(kRead, ", "), " alone; all else is the training's"));
}

}  // namespace

absl::Status RunDetect(const DetectOptions& options, std::FILE* out, const ShutdownSignal* shutdown) {
  const auto files = ListDataFiles(options.files);
  if (!files.ok()) return files.status();
  const auto checkpoint = FindCheckpoint(options.checkpoint);
  if (!checkpoint.ok()) return checkpoint.status();
  auto saved = ReadSavedModel(checkpoint->checkpoint, checkpoint->path);
  if (!saved.ok()) return saved.status();
  for (const std::string& assignment : options.overrides) {
    if (absl::Status s = CheckMayChange(assignment); !s.ok()) return s;
    if (absl::Status s = OverrideSetting(assignment, &saved->config); !s.ok()) return s;
  }
  if (absl::Status s = ValidateFitConfig(saved->config); !s.ok()) return s;
  const bool by_counts = saved->config.detect().known_counts();
  if (by_counts && !saved->known_counts.has_value()) {
    return absl::FailedPreconditionError(
        absl::StrCat(checkpoint->path,
                     " has no count vectors (detect.known_counts): its training has not finished, has had no limit to "
                     "choose, or was without this setting; go on with it and the setting, or --set "
                     "detect.known_counts=false"));
  }
  Limits limits = saved->chosen_limits();
  bool chosen = saved->has_limits || SetsLimit(saved->config.detect());
  if (options.probability >= 0) {
    limits.rule = v1::DETECT_RULE_PROBABILITY;
    limits.probability = std::max<double>(options.probability, std::numeric_limits<float>::min());
    chosen = true;
  }
  if (options.top_g >= 0) {
    limits.rule = v1::DETECT_RULE_TOP_G;
    limits.top_g = static_cast<uint32_t>(options.top_g);
    chosen = true;
  }
  if (!chosen) {
    return absl::FailedPreconditionError(
        absl::StrCat(checkpoint->path,
                     " has no limit: its training has not finished, or has held no sequence without unknown keys out; "
                     "finish it, or give --probability or --top-g"));
  }
  const uint32_t threads = options.threads > 0 ? options.threads : Cores();
  Detector detector(*std::move(saved), limits, threads);
  for (const std::string& file : *files) {
    if (absl::Status s = detector.Read(file, out, shutdown); !s.ok()) return s;
  }
  if (options.json_summary) {
    std::fprintf(stderr, "%s\n", detector.SummaryJson().c_str());
  } else {
    std::fprintf(stderr, "skein detect: %s\n", detector.Summary().c_str());
  }
  return absl::OkStatus();
}

}  // namespace skein
