// SPDX-License-Identifier: Apache-2.0
#include "sweep/array_places.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "base/process/clock.h"
#include "base/process/subprocess.h"
#include "base/process/system_error.h"

namespace skein {
namespace {

namespace fs = std::filesystem;

constexpr absl::Duration kLook = absl::Seconds(1);
constexpr absl::Duration kAnswer = absl::Seconds(10);

// Whether the process that lends a place lives.
bool IsLent(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
  if (fd < 0) return false;
  const bool lent = flock(fd, LOCK_SH | LOCK_NB) != 0;
  close(fd);
  return lent;
}

// Whether Slurm has the job running; nullopt: there is no answer.
std::optional<bool> IsRunning(const std::string& job) {
  Subprocess::Options options;
  // Of all jobs of the user: asked for one that has ended long ago squeue fails as it does without a controller.
  options.argv = {"/usr/bin/env",     "squeue",      "--noheader",
                  "--states=RUNNING", "--format=%A", absl::StrCat("--user=", geteuid())};
  options.capture_stdout = true;
  auto squeue = Subprocess::Spawn(options);
  if (!squeue.ok()) return std::nullopt;
  bool running = false;
  for (auto line = (*squeue)->ReadLine(kAnswer); line.ok(); line = (*squeue)->ReadLine(kAnswer)) {
    running = running || absl::StripAsciiWhitespace(*line) == job;
  }
  if ((*squeue)->Wait(kAnswer).value_or(1) != 0) return std::nullopt;
  return running;
}

}  // namespace

absl::StatusOr<std::unique_ptr<ArrayPlaces>> ArrayPlaces::Lend(const std::string& folder, const std::string& job,
                                                               unsigned tasks) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) return absl::PermissionDeniedError(absl::StrCat("cannot make ", folder, ": ", error.message()));
  std::unique_ptr<ArrayPlaces> places(new ArrayPlaces(folder));
  for (unsigned task = 0; task < tasks; ++task) {
    const std::string path = absl::StrCat(folder, "/", job, "-", task);
    const int fd = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);
    if (fd < 0) return SystemError(errno, absl::StrCat("cannot write ", path));
    places->locks_.push_back(fd);
    places->own_.push_back(path);
    if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
      return absl::UnavailableError(absl::StrCat(path, " is in use: another skein sweep of job ", job, " lends it"));
    }
  }
  return places;
}

ArrayPlaces::~ArrayPlaces() {
  for (const std::string& path : own_) unlink(path.c_str());
  for (const int fd : locks_) close(fd);
}

const std::vector<std::string>& ArrayPlaces::List() {
  const absl::Duration now = MonotonicNow();
  if (now < next_look_) return places_;
  next_look_ = now + kLook;
  places_.clear();
  std::error_code error;
  for (fs::directory_iterator it(folder_, error), end; !error && it != end; it.increment(error)) {
    const std::string place = it->path().filename().string();
    if (!IsLent(it->path().string())) {
      unlink(it->path().c_str());
    } else if (ended_.count(JobOf(place)) == 0) {
      places_.push_back(place);
    }
  }
  std::sort(places_.begin(), places_.end());
  return places_;
}

bool ArrayPlaces::StillRuns(const std::string& place) {
  const std::string job = JobOf(place);
  if (ended_.count(job) > 0) return false;
  if (IsRunning(job).value_or(true)) return true;
  ended_.insert(job);
  next_look_ = absl::ZeroDuration();
  return false;
}

}  // namespace skein
