// SPDX-License-Identifier: Apache-2.0
#include "learner/sequence/sequence_writer.h"

#include <fcntl.h>
#include <unistd.h>
#include <xxhash.h>

#include <array>
#include <cerrno>
#include <memory>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/number/philox.h"
#include "base/process/message_text.h"
#include "base/process/system_error.h"
#include "learner/sequence/key_names.h"

namespace skein {
namespace {

constexpr size_t kFlushWords = size_t{1} << 16;
constexpr uint64_t kLinesBetweenReports = 4096;
constexpr size_t kReadBytes = size_t{1} << 20;

// XXH3 of bytes that come in pieces, whatever these are.
class Checksum {
 public:
  Checksum() : state_(XXH3_createState(), &XXH3_freeState) { XXH3_64bits_reset(state_.get()); }
  void Add(const void* bytes, size_t size) {
    XXH3_64bits_update(state_.get(), bytes, size);
    size_ += size;
  }
  WrittenBytes Sum() const { return {size_, absl::StrFormat("%016x", XXH3_64bits_digest(state_.get()))}; }

 private:
  std::unique_ptr<XXH3_state_t, XXH_errorcode (*)(XXH3_state_t*)> state_;
  uint64_t size_ = 0;
};

// One of the two files that are written, in blocks.
class BlockWriter {
 public:
  BlockWriter(std::string path, uint32_t source) : path_(std::move(path)) { block_.source = source; }
  ~BlockWriter() {
    if (descriptor_ >= 0) close(descriptor_);
  }
  BlockWriter(const BlockWriter&) = delete;
  BlockWriter& operator=(const BlockWriter&) = delete;

  absl::Status Open() {
    unlink(path_.c_str());  // Never through a link.
    descriptor_ = open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    return descriptor_ < 0 ? SystemError(errno, path_) : absl::OkStatus();
  }

  absl::Status Add(const std::vector<uint32_t>& keys, bool cut) {
    words_.push_back(static_cast<uint32_t>(keys.size()) | (cut ? kCutFlag : 0));
    words_.insert(words_.end(), keys.begin(), keys.end());
    block_.words += 1 + keys.size();
    if (++block_.sequences == SequenceStore::kBlockSequences || block_.words >= SequenceStore::kBlockWords) EndBlock();
    return words_.size() >= kFlushWords ? Flush() : absl::OkStatus();
  }

  absl::StatusOr<std::vector<BlockPlace>> Finish() {
    if (block_.sequences > 0) EndBlock();
    if (absl::Status s = Flush(); !s.ok()) return s;
    if (fsync(descriptor_) != 0) return SystemError(errno, path_);
    return blocks_;
  }

  uint64_t digest() const { return digest_; }
  WrittenBytes bytes() const { return checksum_.Sum(); }

 private:
  void EndBlock() {
    blocks_.push_back(block_);
    block_.offset += block_.words * sizeof(uint32_t);
    block_.sequences = 0;
    block_.words = 0;
  }

  absl::Status Flush() {
    const size_t bytes = words_.size() * sizeof(uint32_t);
    digest_ = XXH3_64bits_withSeed(words_.data(), bytes, digest_);
    checksum_.Add(words_.data(), bytes);
    size_t sent = 0;
    while (sent < bytes) {
      const ssize_t count = write(descriptor_, reinterpret_cast<const char*>(words_.data()) + sent, bytes - sent);
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) return SystemError(errno, path_);
      sent += static_cast<size_t>(count);
    }
    words_.clear();
    return absl::OkStatus();
  }

  const std::string path_;
  int descriptor_ = -1;
  std::vector<uint32_t> words_;
  std::vector<BlockPlace> blocks_;
  BlockPlace block_;
  uint64_t digest_ = 0;
  Checksum checksum_;
};

}  // namespace

absl::StatusOr<WrittenBytes> ChecksumOf(const std::string& path) {
  const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return SystemError(errno, path);
  Checksum checksum;
  std::vector<char> piece(kReadBytes);
  for (;;) {
    const ssize_t count = read(descriptor, piece.data(), piece.size());
    if (count < 0 && errno == EINTR) continue;
    const int error = errno;
    if (count > 0) {
      checksum.Add(piece.data(), static_cast<size_t>(count));
      continue;
    }
    close(descriptor);
    if (count < 0) return SystemError(error, path);
    return checksum.Sum();
  }
}

bool IsHeldOut(const v1::FitDataConfig& data, uint32_t source, uint64_t line) {
  const std::array<uint32_t, 4> bits =
      Philox4x32({static_cast<uint32_t>(line), static_cast<uint32_t>(line >> 32), source, 0},
                 {static_cast<uint32_t>(data.holdout_seed()), static_cast<uint32_t>(data.holdout_seed() >> 32)});
  return bits[0] * 0x1p-32 < data.holdout();
}

absl::StatusOr<WrittenFile> WriteSequences(const v1::FitConfig& config, const std::string& path, uint32_t source,
                                           const std::string& to_path, const std::function<bool(uint64_t)>& progress) {
  const v1::FitDataConfig& data = config.data();
  const uint32_t vocabulary = config.model().vocabulary();
  const bool refuse = vocabulary > 0 && data.unknown_keys() == v1::UNKNOWN_KEYS_REFUSE;
  const Vocabulary known = refuse ? Vocabulary::Integers(vocabulary) : Vocabulary();
  auto reader = LineReader::Open(path);
  if (!reader.ok()) return reader.status();
  LineReader& lines = **reader;
  BlockWriter train(to_path + kTrainSuffix, source), held(to_path + kHeldSuffix, source);
  for (BlockWriter* writer : {&train, &held}) {
    if (absl::Status s = writer->Open(); !s.ok()) return s;
  }
  WrittenFile written;
  written.path = path;
  written.stamp = lines.stamp();
  KeyNumbers numbers(data.keys(), vocabulary + config.model().max_vocabulary());
  std::vector<uint32_t> keys;
  absl::string_view line;
  for (;;) {
    const auto more = lines.Next(&line);
    if (!more.ok()) return more.status();
    if (!*more) break;
    const bool is_held = IsHeldOut(data, source, lines.line());
    keys.clear();
    bool cut = false;
    for (absl::string_view key = TakeKey(&line); !key.empty(); key = TakeKey(&line)) {
      if (keys.size() == data.max_length()) {
        if (data.too_long() == v1::LONG_SEQUENCES_REFUSE) {
          return lines.Error(absl::StrCat("more than ", data.max_length(),
                                          " keys (data.max_length); raise it, or set data.too_long to cut"));
        }
        cut = true;
        break;
      }
      const auto number = numbers.Number(key);
      if (!number.ok()) return lines.Error(number.status().message());
      if (*number == written.keys.size()) {
        if (refuse && known.ClassOf(numbers.names().back()) == Vocabulary::kUnknown) {
          return lines.Error(absl::StrCat("key ", numbers.names().back(), " is beyond the vocabulary of ", vocabulary,
                                          " keys (model.vocabulary); to accept such keys as unknown ones set "
                                          "data.unknown_keys to count"));
        }
        if (Escaped(numbers.names().back()) != numbers.names().back()) {
          return lines.Error(absl::StrCat(Quoted(numbers.names().back()),
                                          " is no key: it has control characters, or bytes that are not UTF-8"));
        }
        written.keys.push_back(0);
        written.first.push_back(lines.line());
        written.in_train.push_back(0);
      }
      ++written.keys[*number];
      if (!is_held) written.in_train[*number] = 1;
      keys.push_back(*number);
    }
    ++written.lines;
    if (cut) ++written.cut;
    if (keys.empty()) {
      ++written.empty_lines;
    } else if (absl::Status s = (is_held ? held : train).Add(keys, cut); !s.ok()) {
      return s;
    }
    if (written.lines % kLinesBetweenReports == 0 && !progress(lines.compressed_bytes_read())) {
      return absl::CancelledError("stopped on request while the data were read");
    }
  }
  if (written.lines == 0) return lines.Error("the file is empty");
  if (written.lines == written.empty_lines) return lines.Error("the file has no sequence");
  auto train_blocks = train.Finish();
  if (!train_blocks.ok()) return train_blocks.status();
  auto held_blocks = held.Finish();
  if (!held_blocks.ok()) return held_blocks.status();
  written.train = *std::move(train_blocks);
  written.held = *std::move(held_blocks);
  written.train_bytes = train.bytes();
  written.held_bytes = held.bytes();
  written.names = numbers.names();
  uint64_t digest = train.digest() ^ (held.digest() * 0x9E3779B97F4A7C15u);
  for (const std::string& name : written.names) digest = XXH3_64bits_withSeed(name.data(), name.size(), digest);
  written.digest = absl::StrFormat("%016x", digest);
  if (!progress(written.stamp.bytes)) return absl::CancelledError("stopped on request while the data were read");
  return written;
}

}  // namespace skein
