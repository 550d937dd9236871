// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "learner/sequence/line_reader.h"
#include "learner/sequence/sequence_store.h"
#include "skein/v1/fit.pb.h"

// Writes the sequences of one text file as a store has them.
//   PATH.train, PATH.held: for each sequence its length and its keys, as the file's own numbers, 32 bits each
namespace skein {

inline constexpr char kTrainSuffix[] = ".train", kHeldSuffix[] = ".held";
inline constexpr uint32_t kCutFlag = uint32_t{1} << 31;  // Of a length: keys after these are left out.

// A file of the store, so that damage is found.
struct WrittenBytes {
  uint64_t bytes = 0;
  std::string checksum;  // 16 hex digits.

  bool operator==(const WrittenBytes& other) const { return bytes == other.bytes && checksum == other.checksum; }
};
// Reads all of `path`. Errors of the system.
absl::StatusOr<WrittenBytes> ChecksumOf(const std::string& path);

struct WrittenFile {
  std::string path;  // That was read.
  FileStamp stamp;
  std::vector<std::string> names;  // Of the keys, by their numbers.
  std::vector<uint8_t> in_train;   // Whether the training part has it.
  std::vector<uint64_t> keys;      // How often it occurs.
  std::vector<uint64_t> first;     // Line of its first occurrence.
  uint64_t lines = 0, empty_lines = 0, cut = 0;
  std::vector<BlockPlace> train, held;
  WrittenBytes train_bytes, held_bytes;
  std::string digest;  // 16 hex digits of keys, sequences and split.
};

// Reads `path`, file number `source`, and writes to_path.train and to_path.held. `progress` is called with the bytes of
// the file that are read; returning false cancels. Errors as SequenceStore::Open.
absl::StatusOr<WrittenFile> WriteSequences(const v1::FitConfig& config, const std::string& path, uint32_t source,
                                           const std::string& to_path, const std::function<bool(uint64_t)>& progress);

// Whether line `line` of file `source` is held out: a function of these and data.holdout_seed alone.
bool IsHeldOut(const v1::FitDataConfig& data, uint32_t source, uint64_t line);

}  // namespace skein
