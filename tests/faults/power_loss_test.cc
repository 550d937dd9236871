// SPDX-License-Identifier: Apache-2.0
// Row 43: the power fails. All that two sessions of a run do to its folder is written down by the library
// tests/testing/disk_journal.cc. At each point the folder is rebuilt as a disk may have it after a power failure: with
// what was synced and nothing else, or with all names and files that are cut off anywhere unless they were synced.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <regex>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/process/file.h"
#include "gmock/gmock.h"
#include "learner/run/checkpoint.h"
#include "tests/faults/faulty_training.h"
#include "tests/testing/fault_choice.h"

namespace skein {
namespace {

namespace fs = std::filesystem;

struct Operation {
  std::string name, path, other, bytes;
  size_t number = 0;
};

std::vector<Operation> ReadJournal(const std::string& path) {
  const std::string text = ReadFile(path).value_or("");
  std::vector<Operation> operations;
  for (size_t at = 0; at < text.size();) {
    const size_t end = text.find('\n', at);
    const std::vector<std::string> fields = absl::StrSplit(text.substr(at, end - at), '\t');
    Operation one;
    size_t size = 0;
    if (fields.size() != 5 || !absl::SimpleAtoi(fields[3], &one.number) || !absl::SimpleAtoi(fields[4], &size)) {
      ADD_FAILURE() << "no record: " << text.substr(at, 100);
      break;
    }
    one.name = fields[0];
    one.path = fields[1];
    one.other = fields[2];
    one.bytes = text.substr(end + 1, size);
    operations.push_back(std::move(one));
    at = end + 1 + size + 1;
  }
  return operations;
}

// A file system with one process: what is there, and what is on the disk for certain.
class Disk {
 public:
  explicit Disk(std::string root) : root_(std::move(root)) { top_->is_folder = true; }

  void Do(const Operation& one) {
    const auto [folder, name] = Place(one.path);
    if (folder == nullptr) return;
    const auto found = folder->entries.find(name);
    if (one.name == "file" || one.name == "folder" || one.name == "link") {
      const auto node = std::make_shared<Node>();
      node->is_folder = one.name == "folder";
      node->is_link = one.name == "link";
      node->bytes = node->synced_bytes = one.other;  // A link is its target.
      folder->entries[name] = node;
    } else if (one.path == root_) {
      if (one.name == "sync") top_->synced_entries = top_->entries;
    } else if (found == folder->entries.end()) {
      return;  // A log that another process had opened.
    } else if (one.name == "write") {
      std::string& bytes = found->second->bytes;
      bytes.resize(std::max(bytes.size(), one.number + one.bytes.size()));
      bytes.replace(one.number, one.bytes.size(), one.bytes);
    } else if (one.name == "cut") {
      found->second->bytes.resize(one.number);
    } else if (one.name == "sync") {
      found->second->synced_bytes = found->second->bytes;
      found->second->synced_entries = found->second->entries;
    } else if (one.name == "remove") {
      folder->entries.erase(found);
    } else {
      const std::shared_ptr<Node> moved = found->second;
      folder->entries.erase(found);
      const auto [to_folder, to_name] = Place(one.other);
      ASSERT_NE(to_folder, nullptr) << one.other;
      if (one.name == "swap") folder->entries[name] = to_folder->entries.at(to_name);
      to_folder->entries[to_name] = moved;
    }
  }

  // What a power failure leaves, in the folder `path`. `random`: names are all there, and files that were not synced
  // end anywhere; null: only what was synced is there.
  void Rebuild(const fs::path& path, std::mt19937* random) const { Rebuild(*top_, path, random); }

 private:
  struct Node {
    bool is_folder = false, is_link = false;
    std::string bytes, synced_bytes;
    std::map<std::string, std::shared_ptr<Node>> entries, synced_entries;
  };

  // The folder that `path` is in, null if there is none, and its name there.
  std::pair<std::shared_ptr<Node>, std::string> Place(const std::string& path) const {
    const std::vector<std::string> names = absl::StrSplit(path.substr(root_.size()), '/', absl::SkipEmpty());
    std::shared_ptr<Node> folder = top_;
    for (size_t i = 0; i + 1 < names.size() && folder != nullptr; ++i) {
      const auto found = folder->entries.find(names[i]);
      folder = found == folder->entries.end() ? nullptr : found->second;
    }
    return {folder, names.empty() ? "" : names.back()};
  }

  static void Rebuild(const Node& folder, const fs::path& path, std::mt19937* random) {
    fs::create_directories(path);
    for (const auto& [name, node] : random == nullptr ? folder.synced_entries : folder.entries) {
      if (node->is_folder) {
        Rebuild(*node, path / name, random);
      } else if (node->is_link) {
        fs::create_symlink(node->bytes, path / name);
      } else {
        std::string bytes = node->synced_bytes;
        if (random != nullptr && node->bytes != bytes) {
          // What follows bytes that are on the disk for certain.
          const size_t shorter = std::min(bytes.size(), node->bytes.size());
          const auto common =
              std::mismatch(bytes.begin(), bytes.begin() + static_cast<int64_t>(shorter), node->bytes.begin()).first -
              bytes.begin();
          std::uniform_int_distribution<size_t> end(static_cast<size_t>(common), node->bytes.size());
          bytes = node->bytes.substr(0, end(*random));
        }
        std::ofstream(path / name, std::ios::binary) << bytes;
      }
    }
  }

  const std::string root_;
  const std::shared_ptr<Node> top_ = std::make_shared<Node>();
};

// The steps and the digest of a checkpoint that is written down in the run's log as complete.
std::optional<std::pair<uint64_t, std::string>> Promised(const Operation& one) {
  static const std::regex said("checkpoint [^ ]*/step_0*([0-9]+) digest ([0-9a-f]{16})");
  std::smatch match;
  if (one.name != "write" || !absl::EndsWith(one.path, "/log.jsonl") || !std::regex_search(one.bytes, match, said)) {
    return std::nullopt;
  }
  return std::pair(std::stoull(match[1]), std::string(match[2]));
}

class FaultRow43 : public testing::Test {
 protected:
  // Of two sessions. The first one is killed within its third checkpoint.
  std::vector<Operation> Record() {
    for (const char* faults : {"checkpoint:kill@point=done,at=3", ""}) {
      const auto session =
          training_.Start(faults, {},
                          {std::string("LD_PRELOAD=") + DISK_JOURNAL, "SKEIN_JOURNAL=" + scratch_.path() + "/journal",
                           "SKEIN_JOURNAL_OF=" + root_});
      EXPECT_EQ(session->WaitForEnd(absl::Minutes(1)) == 0, *faults == '\0') << session->Output();
    }
    return ReadJournal(scratch_.path() + "/journal");
  }

  // A folder for what is left at one point.
  std::string Fresh() {
    fs::remove_all(scratch_.path() + "/left");
    return scratch_.path() + "/left";
  }

  const ScratchFolder scratch_;
  const FaultyTraining training_{{"checkpoint.keep=2"}, 6};
  const std::string root_ = fs::canonical(training_.folder());
};

// Expects the newest of the checkpoints that were promised, or a later one, whole; and an iteration's line for each up
// to it.
void ExpectNothingPromisedIsLost(const std::string& run, uint64_t promised,
                                 const std::map<uint64_t, std::string>& digests) {
  const auto found = LoadNewestCheckpoint(run + "/checkpoints");
  if (!found.ok()) {
    EXPECT_EQ(promised, 0u) << found.status();
    return;
  }
  EXPECT_GE(found->checkpoint.env_steps, promised);
  EXPECT_EQ(CheckpointDigest(found->checkpoint), digests.at(found->checkpoint.env_steps));
  EXPECT_TRUE(fs::exists(run + "/config.yaml"));  // Without it the run cannot be resumed.
  const std::string lines = ReadFile(run + "/metrics.jsonl").value_or("");
  for (uint64_t i = 1; i <= found->checkpoint.iteration; ++i) {
    EXPECT_EQ(Count(lines, absl::StrCat("\"iteration\":", i, ",")), 1) << i;
  }
}

TEST_F(FaultRow43, WhateverThePowerLeavesThereIsACompleteCheckpointAndNoneThatWasPromisedIsLost) {
  const std::vector<Operation> journal = Record();
  ASSERT_GT(journal.size(), 100u);
  std::map<uint64_t, std::string> digests;
  for (const Operation& one : journal) {
    if (const auto promised = Promised(one)) digests.insert(*promised);
  }
  ASSERT_EQ(digests.size(), 6u);
  std::mt19937 random = FaultRandom(43);
  Disk disk(root_);
  uint64_t promised = 0;
  int points = 0;
  for (const Operation& one : journal) {
    disk.Do(one);
    if (const auto now = Promised(one)) promised = now->first;
    if (!absl::StrContains(one.path, "/checkpoints") && one.name != "sync" && !Promised(one)) continue;
    for (std::mt19937* torn : {static_cast<std::mt19937*>(nullptr), &random}) {
      SCOPED_TRACE(absl::StrCat("after ", one.name, " ", one.path, ", ", promised, " steps promised, ",
                                torn == nullptr ? "only what was synced" : "all names"));
      const std::string left = Fresh();
      disk.Rebuild(left, torn);
      ExpectNothingPromisedIsLost(left + "/run", promised, digests);
      if (HasFailure()) return;
    }
    ++points;
  }
  EXPECT_GT(points, 60);
}

TEST_F(FaultRow43, TheRunGoesOnFromWhatIsLeftToTheSameDigest) {
  const std::vector<Operation> journal = Record();
  std::mt19937 random = FaultRandom(44);
  const FaultyTraining undisturbed({"checkpoint.keep=2"}, 6);
  EXPECT_EQ(undisturbed.Train("").code, 0);
  for (const bool torn : {false, true}) {
    const size_t last = Choose(&random, 1, journal.size());
    SayChoice(absl::StrCat("the power fails after ", last, " of ", journal.size(), " operations"));
    Disk disk(root_);
    for (size_t i = 0; i < last; ++i) disk.Do(journal[i]);
    const FaultyTraining resumed({"checkpoint.keep=2"}, 6);
    disk.Rebuild(resumed.folder(), torn ? &random : nullptr);
    const Ended ended = resumed.Train("");
    EXPECT_EQ(ended.code, 0) << ended.out;
    EXPECT_EQ(resumed.FinishedDigest(), undisturbed.FinishedDigest());
  }
}

}  // namespace
}  // namespace skein
