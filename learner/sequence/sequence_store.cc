// SPDX-License-Identifier: Apache-2.0
#include "learner/sequence/sequence_store.h"

#include <fcntl.h>
#include <glob.h>
#include <unistd.h>
#include <xxhash.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <system_error>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/synchronization/mutex.h"
#include "base/process/file.h"
#include "base/process/message_text.h"
#include "base/process/no_links.h"
#include "base/process/system_error.h"
#include "learner/sequence/line_reader.h"
#include "learner/sequence/read_memory.h"
#include "learner/sequence/sequence_writer.h"
#include "spdlog/spdlog.h"

namespace skein {
namespace {

using Json = nlohmann::json;

constexpr char kIndex[] = "index.json";
constexpr int kFormat = 2;

// What decides of the store's content, apart from the files.
Json SettingsOf(const v1::FitConfig& config) {
  const v1::FitDataConfig& data = config.data();
  return {{"format", kFormat},
          {"keys", static_cast<int>(data.keys())},
          {"unknown_keys", static_cast<int>(data.unknown_keys())},
          {"max_length", data.max_length()},
          {"too_long", static_cast<int>(data.too_long())},
          {"holdout", data.holdout()},
          {"holdout_seed", data.holdout_seed()},
          {"vocabulary", config.model().vocabulary()},
          {"max_vocabulary", config.model().max_vocabulary()}};
}

Json ToJson(const FileStamp& stamp) { return Json::array({stamp.bytes, stamp.modified_ns, stamp.inode}); }

Json ToJson(const std::vector<BlockPlace>& blocks) {
  Json json = Json::array();
  for (const BlockPlace& block : blocks) json.push_back({block.sequences, block.offset, block.words});
  return json;
}

std::vector<BlockPlace> BlocksOf(const Json& json, uint32_t source) {
  std::vector<BlockPlace> blocks;
  for (const Json& entry : json) {
    blocks.push_back({source, entry.at(0).get<uint32_t>(), entry.at(1).get<uint64_t>(), entry.at(2).get<uint64_t>()});
  }
  return blocks;
}

Json ToJson(const WrittenBytes& written) { return Json::array({written.bytes, written.checksum}); }

Json ToJson(const WrittenFile& file) {
  return {{"path", file.path},
          {"stamp", ToJson(file.stamp)},
          {"names", file.names},
          {"in_train", file.in_train},
          {"lines", file.lines},
          {"empty_lines", file.empty_lines},
          {"cut", file.cut},
          {"keys", file.keys},
          {"first", file.first},
          {"digest", file.digest},
          {"train", ToJson(file.train)},
          {"held", ToJson(file.held)},
          {"train_bytes", ToJson(file.train_bytes)},
          {"held_bytes", ToJson(file.held_bytes)}};
}

absl::StatusOr<FileStamp> StampOf(const std::string& path) {
  const auto reader = LineReader::Open(path);
  if (!reader.ok()) return reader.status();
  return (*reader)->stamp();
}

// Without a suffix, of file number i.
std::string StoredPath(const std::string& folder, size_t i) { return absl::StrFormat("%s/%06d", folder, i); }

// Whether the store's files are those that `entry` was written with.
bool IsIntact(const std::string& stored_path, const Json& entry) {
  for (const auto& [suffix, name] : {std::pair{kTrainSuffix, "train_bytes"}, {kHeldSuffix, "held_bytes"}}) {
    const auto sum = ChecksumOf(absl::StrCat(stored_path, suffix));
    if (!sum.ok() || entry.at(name) != ToJson(*sum)) return false;
  }
  return true;
}

// The index of an earlier reading of the same files with the same settings; null: there is none, or what it describes
// is damaged.
Json OldIndex(const std::string& folder, const Json& settings, const std::vector<std::string>& files) try {
  const auto text = ReadFile(absl::StrCat(folder, "/", kIndex));
  if (!text.ok()) return nullptr;
  Json index = Json::parse(*text, nullptr, false);
  if (!index.is_object() || index.value("settings", Json()) != settings || !index.contains("files") ||
      index["files"].size() != files.size()) {
    return nullptr;
  }
  for (size_t i = 0; i < files.size(); ++i) {
    const auto stamp = StampOf(files[i]);
    const Json& entry = index["files"][i];
    if (!stamp.ok() || entry.value("path", "") != files[i] || entry.value("stamp", Json()) != ToJson(*stamp)) {
      return nullptr;
    }
    if (!IsIntact(StoredPath(folder, i), entry)) {
      spdlog::warn("{}: what was read from {} is damaged; all files are read again", folder, files[i]);
      return nullptr;
    }
  }
  return index;
} catch (const Json::exception&) {
  return nullptr;
}

// Reads all files into new files of the store, several at a time.
absl::StatusOr<Json> WriteAll(const v1::FitConfig& config, const std::string& folder,
                              const std::vector<std::string>& files, const std::function<bool(double)>& progress) {
  double total = 0;
  for (const std::string& file : files) {
    const auto stamp = StampOf(file);
    if (!stamp.ok()) return stamp.status();
    if (stamp->bytes == 0) return absl::DataLossError(absl::StrCat(file, ":1: the file is empty"));
    total += static_cast<double>(stamp->bytes);
  }
  absl::Mutex mu;
  absl::Status failure;
  double done = 0;
  std::atomic<size_t> next{0};
  std::vector<Json> entries(files.size());
  const auto work = [&] {
    for (size_t i = next++; i < files.size(); i = next++) {
      double reported = 0;
      const auto report = [&](uint64_t bytes) {
        const absl::MutexLock lock(&mu);
        done += static_cast<double>(bytes) - reported;
        reported = static_cast<double>(bytes);
        return failure.ok() && progress(std::min(1.0, done / total));
      };
      const auto written = WithinMemory(
          [&] { return WriteSequences(config, files[i], static_cast<uint32_t>(i), StoredPath(folder, i), report); });
      const absl::MutexLock lock(&mu);
      if (!written.ok()) {
        failure.Update(written.status());
        return;
      }
      entries[i] = ToJson(*written);
    }
  };
  std::vector<std::thread> threads;
  const size_t count = std::min<size_t>(config.data().readers(), files.size());
  for (size_t i = 1; i < count; ++i) threads.emplace_back(work);
  work();
  for (std::thread& thread : threads) thread.join();
  if (!failure.ok()) return failure;
  return Json{{"settings", SettingsOf(config)}, {"files", entries}};
}

}  // namespace

struct SequenceStore::Source {
  std::string path;
  std::vector<uint32_t> classes;  // By the file's own number of a key.
  int train = -1, held = -1;      // Descriptors.

  Source() = default;
  Source(Source&& other) noexcept
      : path(std::move(other.path)),
        classes(std::move(other.classes)),
        train(std::exchange(other.train, -1)),
        held(std::exchange(other.held, -1)) {}
  ~Source() {
    if (train >= 0) close(train);
    if (held >= 0) close(held);
  }
};

SequenceStore::SequenceStore() = default;
SequenceStore::~SequenceStore() = default;

absl::StatusOr<std::vector<std::string>> ListDataFiles(const std::string& files) {
  std::vector<std::string> paths;
  std::set<std::string> seen;
  std::error_code unknown;
  const bool one = std::filesystem::is_regular_file(files, unknown);
  if (one) paths.push_back(files);
  for (const absl::string_view item : absl::StrSplit(one ? "" : files, ',', absl::SkipWhitespace())) {
    const std::string pattern(absl::StripAsciiWhitespace(item));
    glob_t found = {};
    const int code = glob(pattern.c_str(), GLOB_NOCHECK, nullptr, &found);
    for (size_t i = 0; code == 0 && i < found.gl_pathc; ++i) {
      std::error_code error;
      const std::string path = found.gl_pathv[i];
      const auto whole = std::filesystem::weakly_canonical(path, error);
      if (seen.insert(error ? path : whole.string()).second) paths.push_back(path);
    }
    globfree(&found);
    if (code != 0) return absl::NotFoundError(absl::StrCat(pattern, ": cannot be listed"));
  }
  if (paths.empty()) {
    return absl::InvalidArgumentError("data.files is empty; give --data FILE, or set it in the configuration");
  }
  for (const std::string& path : paths) {
    if (Escaped(path) == path) continue;
    return absl::FailedPreconditionError(
        absl::StrCat(path, ": the name has control characters, or bytes that are not UTF-8; rename the file"));
  }
  return paths;
}

absl::StatusOr<std::unique_ptr<SequenceStore>> SequenceStore::Open(const v1::FitConfig& config,
                                                                   const std::string& folder,
                                                                   const std::function<bool(double)>& progress) {
  const auto files = ListDataFiles(config.data().files());
  if (!files.ok()) return files.status();
  if (absl::Status s = MakeFolder(folder); !s.ok()) return s;
  const std::string index_path = absl::StrCat(folder, "/", kIndex);
  Json index = OldIndex(folder, SettingsOf(config), *files);
  if (index.is_null()) {
    unlink(index_path.c_str());  // What it describes is overwritten.
    auto written = WriteAll(config, folder, *files, progress);
    if (!written.ok()) return written.status();
    index = *std::move(written);
    if (absl::Status s = WriteFileAtomically(index_path, index.dump()); !s.ok()) return s;
  }

  std::unique_ptr<SequenceStore> store(new SequenceStore());
  XXH64_hash_t digest = 0;
  try {
    if (config.model().vocabulary() > 0) {
      store->vocabulary_ = Vocabulary::Integers(config.model().vocabulary());
    } else {
      std::set<std::string> seen;
      for (const Json& file : index.at("files")) {
        for (size_t i = 0; i < file.at("names").size(); ++i) {
          if (file.at("in_train").at(i).get<int>() != 0) seen.insert(file.at("names").at(i).get<std::string>());
        }
      }
      if (seen.size() > config.model().max_vocabulary()) {
        return absl::DataLossError(absl::StrCat("the files have ", seen.size(), " different keys, more than ",
                                                config.model().max_vocabulary(),
                                                " (model.max_vocabulary); are these messages instead of keys?"));
      }
      std::vector<std::string> names(seen.begin(), seen.end());
      SortKeys(&names);
      store->vocabulary_ = Vocabulary(std::move(names));
    }
    DataCounts& counts = store->counts_;
    for (size_t i = 0; i < files->size(); ++i) {
      const Json& file = index.at("files").at(i);
      Source source;
      source.path = StoredPath(folder, i);
      const auto names = file.at("names").get<std::vector<std::string>>();
      const auto keys = file.at("keys").get<std::vector<uint64_t>>();
      for (size_t key = 0; key < names.size(); ++key) {
        source.classes.push_back(store->vocabulary_.ClassOf(names[key]));
        if (source.classes.back() != Vocabulary::kUnknown) continue;
        if (config.data().unknown_keys() == v1::UNKNOWN_KEYS_REFUSE) {
          return absl::DataLossError(absl::StrCat(
              (*files)[i], ":", file.at("first").at(key).get<uint64_t>(), ": key ", Quoted(names[key]),
              " is in held-out sequences only, so that the model does not know it; to accept such keys as unknown ones "
              "set data.unknown_keys to count"));
        }
        counts.unknown_keys += keys.at(key);
      }
      source.train = open((source.path + kTrainSuffix).c_str(), O_RDONLY | O_CLOEXEC);
      source.held = open((source.path + kHeldSuffix).c_str(), O_RDONLY | O_CLOEXEC);
      if (source.train < 0 || source.held < 0) return SystemError(errno, source.path);
      counts.lines += file.at("lines").get<uint64_t>();
      counts.empty_lines += file.at("empty_lines").get<uint64_t>();
      counts.cut += file.at("cut").get<uint64_t>();
      for (const BlockPlace& block : BlocksOf(file.at("train"), static_cast<uint32_t>(i))) {
        counts.train_sequences += block.sequences;
        counts.train_keys += block.words - block.sequences;
        store->train_.push_back(block);
      }
      for (const BlockPlace& block : BlocksOf(file.at("held"), static_cast<uint32_t>(i))) {
        counts.held_sequences += block.sequences;
        counts.held_keys += block.words - block.sequences;
        store->held_.push_back(block);
      }
      const std::string part = absl::StrCat(digest, file.at("digest").get<std::string>());
      digest = XXH3_64bits(part.data(), part.size());
      store->sources_.push_back(std::move(source));
    }
  } catch (const Json::exception& error) {
    return absl::DataLossError(absl::StrCat(index_path, " is damaged (", error.what(), "); remove it and start again"));
  }
  for (const std::string& name : store->vocabulary_.names()) {
    digest = XXH3_64bits_withSeed(name.data(), name.size(), digest);
  }
  store->digest_ = absl::StrFormat("%016x", digest);
  if (store->counts_.train_sequences == 0) {
    return absl::DataLossError(absl::StrCat((*files)[0], ":1: no sequence to train on: ", store->counts_.lines,
                                            " lines, ", store->counts_.empty_lines, " of them empty, ",
                                            store->counts_.held_sequences, " held out"));
  }
  return store;
}

absl::Status SequenceStore::Read(Part part, const BlockPlace& block, Sequences* sequences) const {
  const Source& source = sources_[block.source];
  const auto damaged = [&] {
    return absl::DataLossError(
        absl::StrCat(source.path, " was changed while it was in use; the next start finds that and writes it anew"));
  };
  std::vector<uint32_t> words(block.words);
  size_t got = 0;
  const size_t bytes = words.size() * sizeof(uint32_t);
  while (got < bytes) {
    const ssize_t count =
        pread(part == Part::kTrain ? source.train : source.held, reinterpret_cast<char*>(words.data()) + got,
              bytes - got, static_cast<off_t>(block.offset + got));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return SystemError(errno, source.path);
    if (count == 0) return damaged();
    got += static_cast<size_t>(count);
  }
  size_t at = 0;
  for (uint32_t i = 0; i < block.sequences; ++i) {
    if (at >= words.size()) return damaged();
    const uint32_t length = words[at] & ~kCutFlag;
    const bool cut = (words[at] & kCutFlag) != 0;
    if (length > words.size() - at - 1) return damaged();
    for (uint32_t k = 1; k <= length; ++k) {
      if (words[at + k] >= source.classes.size()) return damaged();
      sequences->classes.push_back(source.classes[words[at + k]]);
    }
    sequences->begins.push_back(static_cast<uint32_t>(sequences->classes.size()));
    sequences->cut.push_back(cut ? 1 : 0);
    at += 1 + length;
  }
  return at == words.size() ? absl::OkStatus() : damaged();
}

}  // namespace skein
