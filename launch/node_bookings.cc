// SPDX-License-Identifier: Apache-2.0
#include "launch/node_bookings.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <optional>
#include <system_error>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/config/config_reflection.h"
#include "base/config/resource_rules.h"
#include "base/process/control_group.h"
#include "base/process/file.h"
#include "base/process/message_text.h"
#include "base/process/system_error.h"
#include "base/telemetry/proc_text.h"
#include "nlohmann/json.hpp"

namespace skein {
namespace {

namespace fs = std::filesystem;
using config_reflection::NumberText;

// For people: no more than a hundredth of a CPU.
std::string ShortText(double number) { return NumberText(std::round(number * 100) / 100); }

constexpr uint64_t kMaxBooking = 4096;
// Sums of shares such as 0.1 are not exact.
constexpr double kRounding = 1e-9;

// A folder of this user that nobody else writes into.
absl::Status OpenFolder(const std::string& folder) {
  if (mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) {
    return SystemError(errno, absl::StrCat("cannot make ", folder));
  }
  struct stat found = {};
  if (lstat(folder.c_str(), &found) != 0) return SystemError(errno, folder);
  if (!S_ISDIR(found.st_mode) || found.st_uid != geteuid() || (found.st_mode & 022) != 0) {
    return absl::PermissionDeniedError(absl::StrCat(folder, " is not a folder of this user alone; remove it"));
  }
  return absl::OkStatus();
}

// The booking in a file whose process lives; removes the file of one that has ended.
std::optional<NodeBooking::Other> ReadBooking(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
  if (fd < 0) return std::nullopt;
  const bool ended = flock(fd, LOCK_SH | LOCK_NB) == 0;
  close(fd);
  if (ended) {
    unlink(path.c_str());
    return std::nullopt;
  }
  const auto json = nlohmann::json::parse(ReadFile(path, kMaxBooking).value_or(""), nullptr, false);
  if (!json.is_object()) return std::nullopt;
  try {
    return NodeBooking::Other{json.value("run", ""),
                              json.value("pid", 0),
                              {json.value("cpus", 0.0), json.value("gpus", 0.0), json.value("memory", uint64_t{0})}};
  } catch (const nlohmann::json::exception&) {  // A field of another type.
    return std::nullopt;
  }
}

// One kind of resource, for messages.
struct Kind {
  const char* name;
  const char* setting;
  std::function<double(const NodeResources&)> amount;
  std::function<std::string(double)> text;
};

std::vector<Kind> Kinds() {
  return {{"CPUs", "cpus", [](const NodeResources& r) { return r.cpus; }, ShortText},
          {"GPUs", "gpus", [](const NodeResources& r) { return r.gpus; }, ShortText},
          {"memory", "memory", [](const NodeResources& r) { return static_cast<double>(r.memory_bytes); },
           [](double bytes) { return MemoryText(static_cast<uint64_t>(bytes)); }}};
}

absl::Status TooMuch(const Kind& kind, const NodeBooking::Request& request, const NodeResources& here, double left,
                     const std::vector<NodeBooking::Other>& others) {
  std::vector<std::string> holders, settings;
  for (const NodeBooking::Other& other : others) {
    if (kind.amount(other.asked) <= 0) continue;
    holders.push_back(
        absl::StrCat("run ", Shown(other.run), " (process ", other.pid, ") has ", kind.text(kind.amount(other.asked))));
  }
  for (const std::string& section : request.sections) settings.push_back(absl::StrCat(section, ".", kind.setting));
  const double asked = kind.amount(request.asked);
  const auto code =
      asked <= kind.amount(here) + kRounding ? absl::StatusCode::kUnavailable : absl::StatusCode::kInvalidArgument;
  return absl::Status(
      code, absl::StrCat(absl::StrJoin(settings, " and "), ": ", request.who, " ask for ", kind.text(asked), " of ",
                         kind.name, ", and ", kind.text(std::max(left, 0.0)), " of ", kind.text(kind.amount(here)),
                         " is left on this machine", holders.empty() ? "" : ": ", absl::StrJoin(holders, ", "),
                         "; ask for less, ", request.advice));
}

}  // namespace

NodeResources WhatIsHere(uint32_t gpus) {
  NodeResources here;
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof(set), &set) == 0) here.cpus = CPU_COUNT(&set);
  here.gpus = gpus;
  here.memory_bytes = ParseMemInfoBytes(ReadFile("/proc/meminfo").value_or(""), "MemTotal");
  const ControlGroups groups = ControlGroups::OfThisProcess();
  if (const auto limit = groups.CpuLimit()) here.cpus = std::min(here.cpus, *limit);
  if (const auto limit = groups.MemoryLimit()) here.memory_bytes = std::min(here.memory_bytes, *limit);
  return here;
}

NodeResources AskedFor(const v1::RunConfig& config, uint32_t learners, uint32_t actors) {
  NodeResources asked;
  for (const auto& [share, count] :
       {std::pair(LearnerShare(config), learners), std::pair(ActorShare(config), actors)}) {
    asked.cpus += share.cpus.value_or(0) * count;
    asked.gpus += share.gpus.value_or(0) * count;
    asked.memory_bytes += share.memory_bytes.value_or(0) * count;
  }
  return asked;
}

NodeBooking::Request RequestOf(const v1::RunConfig& config, uint32_t learners, uint32_t actors) {
  return {config.name(),
          AskedFor(config, learners, actors),
          "the processes of this run",
          {"resources.actor", "resources.learner"},
          "or start fewer --actors"};
}

absl::StatusOr<std::unique_ptr<NodeBooking>> NodeBooking::Take(const std::string& folder, const Request& request,
                                                               const NodeResources& here) {
  const NodeResources& asked = request.asked;
  if (asked.cpus <= 0 && asked.gpus <= 0 && asked.memory_bytes == 0) return nullptr;
  if (absl::Status s = OpenFolder(folder); !s.ok()) return s;
  const std::string lock_path = folder + "/lock";
  const int lock = open(lock_path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (lock < 0) return SystemError(errno, absl::StrCat("cannot open ", lock_path));
  const absl::Cleanup unlock = [lock] { close(lock); };
  while (flock(lock, LOCK_EX) != 0) {  // Held for a moment by others.
    if (errno != EINTR) return SystemError(errno, absl::StrCat("cannot lock ", lock_path));
  }
  const std::vector<Other> others = List(folder);
  for (const Kind& kind : Kinds()) {
    double left = kind.amount(here);
    for (const Other& other : others) left -= kind.amount(other.asked);
    if (kind.amount(asked) > 0 && kind.amount(asked) > left + kRounding)
      return TooMuch(kind, request, here, left, others);
  }
  static int count = 0;
  const std::string path = absl::StrCat(folder, "/", getpid(), "-", ++count, ".json");
  const int fd = open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (fd < 0) return SystemError(errno, absl::StrCat("cannot write ", path));
  std::unique_ptr<NodeBooking> booking(new NodeBooking(path, fd));
  const std::string text = nlohmann::json({{"run", request.run},
                                           {"pid", getpid()},
                                           {"cpus", asked.cpus},
                                           {"gpus", asked.gpus},
                                           {"memory", asked.memory_bytes}})
                               .dump();
  if (flock(fd, LOCK_EX | LOCK_NB) != 0 || write(fd, text.data(), text.size()) != static_cast<ssize_t>(text.size())) {
    return SystemError(errno, absl::StrCat("cannot write ", path));
  }
  return booking;
}

std::vector<NodeBooking::Other> NodeBooking::List(const std::string& folder) {
  std::vector<Other> others;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    if (it->path().extension() != ".json") continue;
    if (auto other = ReadBooking(it->path().string())) others.push_back(*std::move(other));
  }
  std::sort(others.begin(), others.end(), [](const Other& a, const Other& b) { return a.pid < b.pid; });
  return others;
}

NodeResources NodeBooking::Left(const std::string& folder, const NodeResources& here) {
  NodeResources left = here;
  for (const Other& other : List(folder)) {
    left.cpus -= other.asked.cpus;
    left.gpus -= other.asked.gpus;
    left.memory_bytes -= std::min(left.memory_bytes, other.asked.memory_bytes);
  }
  return left;
}

NodeBooking::~NodeBooking() {
  unlink(path_.c_str());
  close(fd_);
}

std::string BookingFolder() {
  const char* const chosen = std::getenv("SKEIN_BOOKINGS");
  if (chosen != nullptr && *chosen != '\0') return chosen;
  std::error_code error;
  const bool in_memory = fs::is_directory("/dev/shm", error);
  return absl::StrCat(in_memory ? "/dev/shm" : fs::temp_directory_path(error).string(), "/skein-", geteuid());
}

std::string MemoryText(uint64_t bytes) {
  constexpr uint64_t kGiB = uint64_t{1} << 30, kMiB = uint64_t{1} << 20;
  if (bytes >= kGiB && bytes % kGiB == 0) return absl::StrCat(bytes / kGiB, " GiB");
  return absl::StrCat(bytes / kMiB, " MiB");
}

}  // namespace skein
