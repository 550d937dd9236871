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
#include "absl/time/clock.h"
#include "base/process/clock.h"
#include "base/process/no_links.h"
#include "base/process/subprocess.h"
#include "base/process/system_error.h"

namespace skein {
namespace {

namespace fs = std::filesystem;

constexpr absl::Duration kLook = absl::Seconds(1);
constexpr absl::Duration kAnswer = absl::Seconds(10);
constexpr int kAttempts = 200;  // To take a place, 1 ms apart.

// Whether the process that lends a place lives. Removes the file if it does not, while this has the lock: TakePlace()
// sees that.
bool IsLent(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
  if (fd < 0) return false;
  const bool lent = flock(fd, LOCK_SH | LOCK_NB) != 0;
  if (!lent && IsFileAt(fd, path)) unlink(path.c_str());
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
  const auto lines = (*squeue)->ReadLines(kAnswer);
  if (!lines.ok() || (*squeue)->Wait(kAnswer).value_or(1) != 0) return std::nullopt;
  return std::any_of(lines->begin(), lines->end(),
                     [&](const std::string& line) { return absl::StripAsciiWhitespace(line) == job; });
}

// Makes and locks the file of a place; returns its descriptor. A leader may look at the file between open() and
// flock(): it then has the lock for a moment, and removes the file.
absl::StatusOr<int> TakePlace(const std::string& path) {
  for (int i = 0; i < kAttempts; ++i) {
    if (i > 0) absl::SleepFor(absl::Milliseconds(1));
    const int fd = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);
    if (fd < 0) return SystemError(errno, absl::StrCat("cannot write ", path));
    if (flock(fd, LOCK_EX | LOCK_NB) == 0 && IsFileAt(fd, path)) return fd;
    close(fd);
  }
  return absl::UnavailableError(absl::StrCat(path, " is in use: another skein sweep of this job lends it"));
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
    const auto fd = TakePlace(path);
    if (!fd.ok()) return fd.status();
    places->locks_.push_back(*fd);
    places->own_.push_back(path);
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
    if (IsLent(it->path().string()) && ended_.count(JobOf(place)) == 0) places_.push_back(place);
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
