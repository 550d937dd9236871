// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "learner/sequence/key_names.h"
#include "skein/v1/fit.pb.h"

// The data of a training as numbers on the disk, in blocks that any thread can read in any order, so that memory does
// not grow with the data.   text files -> WriteSequences -> <folder>/*.keys -> SequenceStore::Read
namespace skein {

// The two parts of the data.
enum class Part { kTrain, kHeldOut };

// A block of at most kBlockSequences sequences; it ends with the one that brings it to kBlockWords words.
struct BlockPlace {
  uint32_t source = 0;     // Index of the file that it comes from.
  uint32_t sequences = 0;  // In it.
  uint64_t offset = 0;     // In the store's file, bytes.
  uint64_t words = 0;      // Its length, of 32 bits each.
};

// What was found in the files.
struct DataCounts {
  uint64_t lines = 0, empty_lines = 0, cut = 0, unknown_keys = 0;
  uint64_t train_sequences = 0, train_keys = 0, held_sequences = 0, held_keys = 0;
};

// Sequences one after the other. A sequence whose end was cut off has no end key.
struct Sequences {
  std::vector<uint32_t> classes;       // Vocabulary's.
  std::vector<uint32_t> begins = {0};  // [size + 1]
  std::vector<uint8_t> cut;            // [size]

  size_t size() const { return cut.size(); }
  uint32_t length(size_t i) const { return begins[i + 1] - begins[i]; }
  // Of a forward pass: keys, and the end if it is there.
  uint32_t steps(size_t i) const { return length(i) + (cut[i] != 0 ? 0 : 1); }
};

// The numbers of one split and one reading. Thread-safe after Open.
class SequenceStore {
 public:
  static constexpr uint32_t kBlockSequences = 1024;
  static constexpr uint64_t kBlockWords = uint64_t{1} << 20;

  // Reads `files` with up to data.readers threads, each file once, and writes what it finds below `folder`, which is
  // made if need be. What is there already from the same files and settings is taken as it is, unless its checksum says
  // that it is damaged: then it is written anew. `progress` is called
  // with the share that is done, from several threads; returning false cancels. InvalidArgument: no file. DataLoss
  // (file and line): a bad line, an empty file, a damaged or changed file, a key that only held-out sequences have if
  // data.unknown_keys refuses such. FailedPrecondition: a file's name is not UTF-8. Cancelled. ResourceExhausted,
  // PermissionDenied: the folder cannot be written. ResourceExhausted: no memory for a file's sequences, too.
  static absl::StatusOr<std::unique_ptr<SequenceStore>> Open(const v1::FitConfig& config, const std::string& folder,
                                                             const std::function<bool(double)>& progress);
  ~SequenceStore();

  const Vocabulary& vocabulary() const { return vocabulary_; }
  const DataCounts& counts() const { return counts_; }
  // 16 hex digits: of all sequences in their order, split and vocabulary. Equal data give equal digests.
  const std::string& digest() const { return digest_; }

  const std::vector<BlockPlace>& blocks(Part part) const { return part == Part::kTrain ? train_ : held_; }
  // Adds the sequences of one block to `sequences`. DataLoss: the store is damaged.
  absl::Status Read(Part part, const BlockPlace& block, Sequences* sequences) const;

 private:
  struct Source;
  SequenceStore();

  std::vector<Source> sources_;
  std::vector<BlockPlace> train_, held_;
  Vocabulary vocabulary_;
  DataCounts counts_;
  std::string digest_;
};

// The files that data.files names, sorted where a pattern names several, each once; the file of exactly that name, if
// there is one. Whether the others are there is not looked at. InvalidArgument: none is named. NotFound: a pattern that
// cannot be listed. FailedPrecondition: a name has control characters or is not UTF-8.
absl::StatusOr<std::vector<std::string>> ListDataFiles(const std::string& files);

}  // namespace skein
