// SPDX-License-Identifier: Apache-2.0
#include "sweep/array_places.h"

#include <unistd.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "base/process/clock.h"
#include "base/process/subprocess.h"
#include "sweep/place_file.h"

namespace skein {
namespace {

constexpr absl::Duration kLook = absl::Seconds(1);
constexpr absl::Duration kAnswer = absl::Seconds(10);

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

}  // namespace

absl::StatusOr<std::unique_ptr<ArrayPlaces>> ArrayPlaces::Lend(const std::string& folder, const std::string& job,
                                                               unsigned tasks) {
  std::unique_ptr<ArrayPlaces> places(new ArrayPlaces(folder));
  for (unsigned task = 0; task < tasks; ++task) {
    const std::string path = absl::StrCat(folder, "/", job, "-", task);
    const auto fd = TakePlaceFile(path);
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
  for (std::string& place : LentIn(folder_)) {
    if (ended_.count(JobOf(place)) == 0) places_.push_back(std::move(place));
  }
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
