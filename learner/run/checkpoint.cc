// SPDX-License-Identifier: Apache-2.0
#include "learner/run/checkpoint.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <system_error>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "base/process/fault_hook.h"
#include "base/process/file.h"
#include "base/process/no_links.h"
#include "base/process/system_error.h"
#include "learner/run/episodes_json.h"
#include "policy/safetensors.h"

namespace skein {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr int kFormat = 1;
constexpr char kStepPrefix[] = "step_";
constexpr char kTemporaryPrefix[] = ".tmp-";
constexpr char kManifest[] = "manifest.json";
constexpr char kDone[] = "DONE";  // Holds the manifest's checksum.
constexpr uint64_t kMaxDoneBytes = 64, kMaxManifestBytes = uint64_t{1} << 26, kMaxTensorFileBytes = uint64_t{1} << 36;
constexpr std::array<const char*, 3> kTensorFiles = {"model.safetensors", "optimizer.safetensors", "state.safetensors"};

std::string Hex(uint64_t value) { return absl::StrFormat("%016x", value); }
std::string Checksum(const std::string& bytes) { return Hex(XXH3_64bits(bytes.data(), bytes.size())); }
std::string DoneText(const std::string& manifest) { return absl::StrCat(Checksum(manifest), "\n"); }

using EncodedFiles = std::array<std::string, kTensorFiles.size()>;

EncodedFiles EncodeFiles(const Checkpoint& checkpoint) {
  return {EncodeSafetensors(checkpoint.model), EncodeSafetensors(checkpoint.optimizer),
          EncodeSafetensors(checkpoint.state)};
}

std::string Digest(const Checkpoint& checkpoint, const EncodedFiles& files) {
  XXH3_state_t* state = XXH3_createState();
  const absl::Cleanup free_state = [state] { XXH3_freeState(state); };
  XXH3_64bits_reset(state);
  for (uint64_t number : {checkpoint.env_steps, checkpoint.iteration}) {
    unsigned char bytes[8];
    for (int i = 0; i < 8; ++i) bytes[i] = static_cast<unsigned char>(number >> (8 * i));
    XXH3_64bits_update(state, bytes, sizeof bytes);
  }
  for (const std::string& file : files) XXH3_64bits_update(state, file.data(), file.size());
  return Hex(XXH3_64bits_digest(state));
}

std::string StepName(uint64_t env_steps) { return absl::StrFormat("%s%012u", kStepPrefix, env_steps); }

// The step number of a checkpoint folder's name.
bool ParseStepName(const std::string& name, uint64_t* env_steps) {
  absl::string_view digits = name;
  return absl::ConsumePrefix(&digits, kStepPrefix) && !digits.empty() && absl::ascii_isdigit(digits[0]) &&
         absl::SimpleAtoi(digits, env_steps);
}

bool IsSymlink(const std::string& path) {
  std::error_code ignored;
  return fs::is_symlink(fs::symlink_status(path, ignored));
}

struct Listing {
  std::vector<std::pair<uint64_t, std::string>> checkpoints;  // Step and path, newest first.
  std::vector<std::string> leftovers;                         // Paths.
};

absl::StatusOr<Listing> List(const std::string& folder) {
  Listing listing;
  if (IsSymlink(folder)) {
    return absl::PermissionDeniedError(absl::StrCat(
        folder, " is a symbolic link, and could lead anywhere; remove it (the run's folder itself may be one)"));
  }
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename();
    uint64_t env_steps;
    if (absl::StartsWith(name, kTemporaryPrefix)) {
      listing.leftovers.push_back(it->path());
    } else if (ParseStepName(name, &env_steps)) {
      listing.checkpoints.emplace_back(env_steps, it->path());
    }
  }
  if (error) return SystemError(error.value(), absl::StrCat("cannot read folder ", folder));
  std::sort(listing.checkpoints.rbegin(), listing.checkpoints.rend());
  return listing;
}

void RemoveAll(const std::string& path) {
  std::error_code ignored;
  fs::remove_all(path, ignored);
}

absl::StatusOr<std::string> EncodeManifest(const Checkpoint& checkpoint, const EncodedFiles& files) {
  Json manifest = {{"format", kFormat},
                   {"digest", Digest(checkpoint, files)},
                   {"env_steps", checkpoint.env_steps},
                   {"iteration", checkpoint.iteration},
                   {"episodes", checkpoint.episodes},
                   {"env_id", checkpoint.env_id},
                   {"config_yaml", checkpoint.config_yaml},
                   {"last_episodes", EpisodesToJson(checkpoint.last_episodes)},
                   {"counters", checkpoint.counters},
                   {"files", Json::object()}};
  if (!checkpoint.action_low.empty()) {
    manifest["spec"] = {{"action_low", checkpoint.action_low}, {"action_high", checkpoint.action_high}};
  }
  if (!checkpoint.transforms_json.empty()) manifest["transforms"] = Json::parse(checkpoint.transforms_json);
  if (!checkpoint.changes_json.empty()) manifest["changed_settings"] = Json::parse(checkpoint.changes_json);
  for (size_t i = 0; i < files.size(); ++i) {
    manifest["files"][kTensorFiles[i]] = {{"bytes", files[i].size()}, {"xxh3_64", Checksum(files[i])}};
  }
  try {
    return absl::StrCat(manifest.dump(2), "\n");
  } catch (const Json::exception& error) {  // Text that is not UTF-8.
    return absl::InvalidArgumentError(absl::StrCat("checkpoint manifest: ", error.what()));
  }
}

// A point where SKEIN_FAULTS can end the process: "folder", "files", "done", "renamed", "linked" or "pruned" is what
// has just been done.
void Reached(const char* point) {
  if (NextFault(FaultPoint::kCheckpoint, point) == FaultKind::kKill) KillProcess();
}

absl::Status WriteOne(const std::string& path, const std::string& contents) {
  const uint64_t before = BytesBeforeFault(FaultPoint::kCheckpoint, contents.size());
  if (before == contents.size()) return WriteFileSynced(path, contents);
  WriteFileSynced(path, absl::string_view(contents).substr(0, before)).IgnoreError();
  KillProcess();
}

absl::Status WriteFiles(const std::string& folder, const std::string& manifest, const EncodedFiles& files) {
  absl::Status status;
  for (size_t i = 0; i < files.size() && status.ok(); ++i) {
    status = WriteOne(absl::StrCat(folder, "/", kTensorFiles[i]), files[i]);
  }
  if (status.ok()) status = WriteOne(absl::StrCat(folder, "/", kManifest), manifest);
  if (!status.ok()) return status;
  Reached("files");
  status = WriteOne(absl::StrCat(folder, "/", kDone), DoneText(manifest));
  if (status.ok()) status = SyncFolder(folder);
  if (status.ok()) Reached("done");
  return status;
}

// Renames `from` to `to`. What is already there (the checkpoint of a run that went back and came to the same step
// again, or a file or a link) changes places with it in one step where the file system can do that, and is removed.
absl::Status MoveIntoPlace(const std::string& from, const std::string& to) {
  if (::rename(from.c_str(), to.c_str()) == 0) return absl::OkStatus();
  if (errno == EEXIST || errno == ENOTEMPTY || errno == ENOTDIR) {
    if (::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_EXCHANGE) == 0) {
      RemoveAll(from);
      return absl::OkStatus();
    }
    const std::string aside = absl::StrCat(from, "-old");
    if (::rename(to.c_str(), aside.c_str()) == 0) {
      if (::rename(from.c_str(), to.c_str()) == 0) {
        RemoveAll(aside);
        return absl::OkStatus();
      }
      const int error_number = errno;
      ::rename(aside.c_str(), to.c_str());
      errno = error_number;
    }
  }
  return SystemError(errno, absl::StrCat("cannot rename ", from, " to ", to));
}

absl::Status PointLatestTo(const std::string& folder, const std::string& name) {
  const std::string link = absl::StrCat(folder, "/latest");
  const std::string temporary = absl::StrCat(folder, "/", kTemporaryPrefix, "latest-", ::getpid());
  ::unlink(temporary.c_str());
  if (::symlink(name.c_str(), temporary.c_str()) != 0 || ::rename(temporary.c_str(), link.c_str()) != 0) {
    const absl::Status status = SystemError(errno, absl::StrCat("cannot move link ", link));
    ::unlink(temporary.c_str());
    return status;
  }
  return absl::OkStatus();
}

// Removes all but the newest `keep` of the checkpoints up to `env_steps`. Checkpoints of later steps are damaged or
// from before a rollback. They are not counted; otherwise the checkpoint just written could be removed.
void Prune(const std::string& folder, uint64_t env_steps, uint32_t keep) {
  const absl::StatusOr<Listing> listing = List(folder);
  if (!listing.ok()) return;  // The next checkpoint tries again.
  uint32_t kept = 0;
  for (const auto& [steps, path] : listing->checkpoints) {
    if (steps <= env_steps && kept++ >= std::max(keep, 1u)) RemoveAll(path);
  }
}

absl::Status Damaged(const std::string& path, const std::string& why) {
  return absl::DataLossError(absl::StrCat("checkpoint file ", path, ": ", why));
}

// A regular file inside a checkpoint. A symlink is refused: it could lead anywhere.
// `want_bytes`: if given, what its size must be, which is looked at first.
absl::StatusOr<std::string> ReadRegular(const std::string& path, uint64_t max_bytes,
                                        std::optional<uint64_t> want_bytes = std::nullopt) {
  struct stat info;
  if (::lstat(path.c_str(), &info) != 0) {
    if (errno == ENOENT) return Damaged(path, "is missing");
    return SystemError(errno, absl::StrCat("cannot read ", path));
  }
  if (!S_ISREG(info.st_mode)) return Damaged(path, "is not a regular file");
  const auto bytes = static_cast<uint64_t>(info.st_size);
  if (want_bytes && bytes != *want_bytes) {
    return Damaged(path, absl::StrCat("has ", bytes, " bytes, want ", *want_bytes));
  }
  if (bytes > max_bytes) return Damaged(path, absl::StrCat("has ", bytes, " bytes, want at most ", max_bytes));
  return ReadFile(path, max_bytes);
}

// Of an object or a list. The library would turn any number into an integer, also one that none can hold.
template <typename Key>
uint64_t CountAt(const Json& json, const Key& key) {
  const Json& value = json.at(key);
  if (!value.is_number_unsigned()) throw Json::type_error::create(302, absl::StrCat(key, " is no count"), &value);
  return value.template get<uint64_t>();
}

absl::Status DecodeFile(const std::string& folder, const char* name, const Json& entry,
                        std::vector<v1::Tensor>* tensors) {
  const std::string path = absl::StrCat(folder, "/", name);
  const absl::StatusOr<std::string> bytes = ReadRegular(path, kMaxTensorFileBytes, CountAt(entry, "bytes"));
  if (!bytes.ok()) return bytes.status();
  const std::string want = entry.at("xxh3_64").get<std::string>(), got = Checksum(*bytes);
  if (got != want) return Damaged(path, absl::StrCat("checksum is ", got, ", want ", want));
  absl::StatusOr<std::vector<v1::Tensor>> decoded = DecodeSafetensors(*bytes);
  if (!decoded.ok()) return Damaged(path, std::string(decoded.status().message()));
  *tensors = *std::move(decoded);
  return absl::OkStatus();
}

absl::StatusOr<Checkpoint> DecodeCheckpoint(const std::string& folder, const std::string& manifest_text) {
  Checkpoint checkpoint;
  try {
    const Json manifest = Json::parse(manifest_text);
    const uint64_t format = CountAt(manifest, "format");
    if (format != kFormat) {
      return absl::FailedPreconditionError(
          absl::StrCat("checkpoint ", folder, " has format ", format, ", and this version reads format ", kFormat,
                       "; go on with the version that wrote it, or give the run another --name"));
    }
    checkpoint.env_steps = CountAt(manifest, "env_steps");
    checkpoint.iteration = CountAt(manifest, "iteration");
    checkpoint.episodes = CountAt(manifest, "episodes");
    manifest.at("env_id").get_to(checkpoint.env_id);
    manifest.at("config_yaml").get_to(checkpoint.config_yaml);
    checkpoint.last_episodes = EpisodesOfManifest(manifest);
    if (const auto changed = manifest.find("changed_settings"); changed != manifest.end()) {
      checkpoint.changes_json = changed->dump();
    }
    for (const Json& counter : manifest.at("counters")) {
      checkpoint.counters.emplace_back(counter.at(0).get<std::string>(), CountAt(counter, 1));
    }
    const std::array<std::vector<v1::Tensor>*, kTensorFiles.size()> targets = {&checkpoint.model, &checkpoint.optimizer,
                                                                               &checkpoint.state};
    for (size_t i = 0; i < targets.size(); ++i) {
      const Json& entry = manifest.at("files").at(kTensorFiles[i]);
      if (const absl::Status status = DecodeFile(folder, kTensorFiles[i], entry, targets[i]); !status.ok()) {
        return status;
      }
    }
  } catch (const Json::exception& error) {
    return Damaged(absl::StrCat(folder, "/", kManifest), error.what());
  }
  return checkpoint;
}

absl::StatusOr<FoundCheckpoint> LoadNewest(const Listing& listing, const std::string& folder, Damage damage) {
  FoundCheckpoint found;
  for (const auto& [steps, path] : listing.checkpoints) {
    absl::StatusOr<Checkpoint> checkpoint =
        IsSymlink(path) ? Damaged(path, "is a link, and could lead anywhere") : LoadCheckpoint(path);
    // One of another format is whole: to go on from an older one would lose what was trained since.
    const bool other_format = absl::IsFailedPrecondition(checkpoint.status());
    if (other_format || (!checkpoint.ok() && damage == Damage::kRefuse)) return checkpoint.status();
    if (checkpoint.ok()) {
      found.path = path;
      found.checkpoint = *std::move(checkpoint);
      return found;
    }
    found.warnings.push_back(absl::StrCat("skipped ", path, ": ", checkpoint.status().message()));
  }
  if (found.warnings.empty()) return absl::NotFoundError(absl::StrCat("no checkpoint in ", folder));
  return absl::DataLossError(
      absl::StrCat("every checkpoint in ", folder, " is damaged: ", absl::StrJoin(found.warnings, "; ")));
}

}  // namespace

std::string CheckpointDigest(const Checkpoint& checkpoint) { return Digest(checkpoint, EncodeFiles(checkpoint)); }

absl::StatusOr<std::string> SaveCheckpoint(const std::string& folder, const Checkpoint& checkpoint, uint32_t keep) {
  const EncodedFiles files = EncodeFiles(checkpoint);
  const absl::StatusOr<std::string> manifest = EncodeManifest(checkpoint, files);
  if (!manifest.ok()) return manifest.status();

  const std::string name = StepName(checkpoint.env_steps);
  const std::string path = absl::StrCat(folder, "/", name);
  const std::string temporary = absl::StrCat(folder, "/", kTemporaryPrefix, name, "-", ::getpid());
  absl::Status status = MakeFolder(folder);
  if (!status.ok()) return status;
  RemoveAll(temporary);
  if (::mkdir(temporary.c_str(), 0777) != 0) {
    return SystemError(errno, absl::StrCat("cannot create folder ", temporary));
  }

  Reached("folder");
  status = WriteFiles(temporary, *manifest, files);
  if (status.ok()) status = MoveIntoPlace(temporary, path);
  if (!status.ok()) {
    RemoveAll(temporary);
    return status;
  }
  Reached("renamed");
  status = PointLatestTo(folder, name);
  if (status.ok()) status = SyncFolder(folder);
  if (!status.ok()) return status;
  Reached("linked");
  Prune(folder, checkpoint.env_steps, keep);
  Reached("pruned");
  return path;
}

absl::StatusOr<Checkpoint> LoadCheckpoint(const std::string& path) {
  const std::string manifest_path = absl::StrCat(path, "/", kManifest), done_path = absl::StrCat(path, "/", kDone);
  std::error_code ignored;
  if (!fs::is_directory(path, ignored)) {
    return absl::NotFoundError(absl::StrCat("no checkpoint folder at ", path));
  }
  if (!fs::exists(fs::symlink_status(manifest_path, ignored)) && !fs::exists(fs::symlink_status(done_path, ignored))) {
    return absl::NotFoundError(absl::StrCat(path, " is not a checkpoint: it has no ", kManifest));
  }
  const absl::StatusOr<std::string> done = ReadRegular(done_path, kMaxDoneBytes);
  if (!done.ok()) return done.status();
  const absl::StatusOr<std::string> manifest = ReadRegular(manifest_path, kMaxManifestBytes);
  if (!manifest.ok()) return manifest.status();
  if (*done != DoneText(*manifest)) {
    return Damaged(manifest_path, absl::StrCat("its checksum is not the one in ", kDone));
  }
  return DecodeCheckpoint(path, *manifest);
}

absl::StatusOr<FoundCheckpoint> LoadNewestCheckpoint(const std::string& folder, Damage damage) {
  const absl::StatusOr<Listing> listing = List(folder);
  if (!listing.ok()) return listing.status();
  for (const std::string& leftover : listing->leftovers) RemoveAll(leftover);
  return LoadNewest(*listing, folder, damage);
}

absl::StatusOr<FoundCheckpoint> FindCheckpoint(const std::string& path) {
  std::error_code ignored;
  if (fs::exists(path + "/manifest.json", ignored) || fs::exists(path + "/DONE", ignored)) {
    auto checkpoint = LoadCheckpoint(path);
    if (!checkpoint.ok()) return checkpoint.status();
    return FoundCheckpoint{.path = path, .checkpoint = *std::move(checkpoint), .warnings = {}};
  }
  if (!fs::is_directory(path, ignored)) {
    return absl::NotFoundError(absl::StrCat(path, ": no such folder; give a checkpoint's or a run's"));
  }
  const bool is_run = fs::is_directory(path + "/checkpoints", ignored);
  const std::string folder = is_run ? path + "/checkpoints" : path;
  const absl::StatusOr<Listing> listing = List(folder);
  if (!listing.ok()) return listing.status();
  return LoadNewest(*listing, folder, Damage::kSkip);
}

}  // namespace skein
