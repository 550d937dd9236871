// SPDX-License-Identifier: Apache-2.0
#include "learner/fit/fit_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "base/config/config.h"
#include "base/config/message_settings.h"
#include "base/process/file.h"
#include "base/process/no_links.h"
#include "base/process/system_error.h"
#include "learner/sequence/fit_settings.h"

namespace skein {
namespace {

namespace fs = std::filesystem;

absl::StatusOr<int> Lock(const std::string& folder) {
  const std::string path = absl::StrCat(folder, "/lock");
  const int descriptor = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0644);
  if (descriptor < 0 && errno == ELOOP) return LinkError(path);
  if (descriptor < 0) return SystemError(errno, path);
  if (flock(descriptor, LOCK_EX | LOCK_NB) == 0) return descriptor;
  close(descriptor);
  return absl::UnavailableError(
      absl::StrCat(folder, " is in use by another training; stop it, or give another --name or --run-dir"));
}

// Whether config.yaml, if there is one, is of a training of sequences.
absl::Status CheckIsOwn(const std::string& folder) {
  const std::string path = absl::StrCat(folder, "/config.yaml");
  const auto text = ReadFile(path, kMaxSettingsBytes);
  if (absl::IsNotFound(text.status())) return absl::OkStatus();
  if (!text.ok()) return text.status();
  v1::RunConfig policy;
  if (ParseFitConfig(*text, path).ok() || !MergeYaml(*text, path, &policy).ok()) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat(folder, " has the run of a policy for ", policy.env().id(),
                   "; give another --name or --run-dir, or --resume never, which moves it aside"));
}

}  // namespace

FitFolder& FitFolder::operator=(FitFolder&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  std::swap(moved_to_, other.moved_to_);
  return *this;
}

FitFolder::~FitFolder() {
  if (descriptor_ >= 0) close(descriptor_);
}

absl::StatusOr<FitFolder> FitFolder::Claim(const std::string& path, ResumeMode resume) {
  FitFolder folder;
  if (absl::Status s = MakeFolder(path); !s.ok()) return s;
  auto locked = Lock(path);
  if (!locked.ok()) return locked.status();
  folder.descriptor_ = *locked;
  if (resume != ResumeMode::kNever) {
    if (absl::Status s = CheckIsOwn(path); !s.ok()) return s;
    return folder;
  }
  std::error_code error;
  const auto is_there = [&](const char* name) { return fs::exists(absl::StrCat(path, "/", name), error); };
  if (!is_there("checkpoints") && !is_there("metrics.jsonl") && !is_there("config.yaml")) return folder;
  for (int n = 1; folder.moved_to_.empty(); ++n) {
    const std::string target = absl::StrCat(path, ".old-", n);
    if (fs::exists(fs::symlink_status(target, error))) continue;
    fs::rename(path, target, error);
    if (error) return SystemError(error.value(), absl::StrCat("cannot move aside ", path));
    folder.moved_to_ = target;
  }
  close(std::exchange(folder.descriptor_, -1));
  if (absl::Status s = MakeFolder(path); !s.ok()) return s;
  locked = Lock(path);
  if (!locked.ok()) return locked.status();
  folder.descriptor_ = *locked;
  return folder;
}

}  // namespace skein
