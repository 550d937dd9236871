// SPDX-License-Identifier: Apache-2.0
#include "base/process/fault_hook.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdlib>
#include <limits>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "base/number/philox.h"
#include "spdlog/spdlog.h"

namespace skein {
namespace {

struct PointAndKind {
  const char* point_name;
  const char* kind_name;
  FaultPoint point;
  FaultKind kind;
};

constexpr std::array<PointAndKind, 13> kKnown = {{
    {"receipt", "drop", FaultPoint::kReceipt, FaultKind::kDrop},
    {"receipt", "forget", FaultPoint::kReceipt, FaultKind::kForget},
    {"checkpoint", "kill", FaultPoint::kCheckpoint, FaultKind::kKill},
    {"env", "throw", FaultPoint::kEnv, FaultKind::kThrow},
    {"env", "crash", FaultPoint::kEnv, FaultKind::kCrash},
    {"env", "hang", FaultPoint::kEnv, FaultKind::kHang},
    {"env", "nan", FaultPoint::kEnv, FaultKind::kNan},
    {"env", "shape", FaultPoint::kEnv, FaultKind::kShape},
    {"collective", "hang", FaultPoint::kCollective, FaultKind::kHang},
    {"collective", "kill", FaultPoint::kCollective, FaultKind::kKill},
    {"disk", "eio", FaultPoint::kDisk, FaultKind::kEio},
    {"disk", "enospc", FaultPoint::kDisk, FaultKind::kEnospc},
    {"disk", "erofs", FaultPoint::kDisk, FaultKind::kErofs},
}};

// A count of at least `least`.
bool ParseCount(absl::string_view text, uint64_t least, uint64_t* count) {
  return !text.empty() && text[0] >= '0' && text[0] <= '9' && absl::SimpleAtoi(text, count) && *count >= least;
}

bool ParseProbability(absl::string_view text, double* p) {
  return absl::SimpleAtod(text, p) && *p >= 0 && *p <= 1;  // NaN fails both.
}

// Made by this call: true.
bool MakeMarker(const std::string& path) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (fd < 0) return false;
  ::close(fd);
  return true;
}

}  // namespace

namespace internal {
FaultPlan* fault_plan = nullptr;
}  // namespace internal

absl::Status FaultPlan::ParseClause(absl::string_view text, Clause* clause) {
  clause->text = std::string(text);
  const auto wrong = [&](const std::string& why) {
    return absl::InvalidArgumentError(absl::StrCat("SKEIN_FAULTS: '", clause->text, "': ", why));
  };
  const std::pair<absl::string_view, absl::string_view> head = absl::StrSplit(text, absl::MaxSplits('@', 1));
  const auto* const known = std::find_if(kKnown.begin(), kKnown.end(), [&](const PointAndKind& one) {
    return head.first == absl::StrCat(one.point_name, ":", one.kind_name);
  });
  if (known == kKnown.end()) {
    return wrong(absl::StrCat("want one of ", absl::StrJoin(kKnown, " ", [](std::string* out, const PointAndKind& one) {
                                absl::StrAppend(out, one.point_name, ":", one.kind_name);
                              })));
  }
  clause->point = known->point;
  clause->kind = known->kind;
  if (head.first.size() == text.size()) return absl::OkStatus();
  std::vector<std::string> seen;
  for (const absl::string_view setting : absl::StrSplit(head.second, ',')) {
    const std::pair<absl::string_view, absl::string_view> pair = absl::StrSplit(setting, absl::MaxSplits('=', 1));
    const auto [key, value] = pair;
    if (std::find(seen.begin(), seen.end(), key) != seen.end()) return wrong(absl::StrCat(key, " is given twice"));
    seen.emplace_back(key);
    bool good = false;
    if (key == "p") {
      good = ParseProbability(value, &clause->probability);
    } else if (key == "seed") {
      good = ParseCount(value, 0, &clause->seed);
    } else if (key == "at") {
      good = ParseCount(value, 1, &clause->at);
    } else if (key == "after") {
      good = ParseCount(value, 0, &clause->after);
    } else if (key == "times") {
      good = ParseCount(value, 1, &clause->times);
    } else if (key == "bytes" && clause->point == FaultPoint::kCheckpoint) {
      good = clause->has_bytes = ParseCount(value, 0, &clause->bytes);
    } else if (key == "point" && clause->point == FaultPoint::kCheckpoint) {
      clause->name = std::string(value);
      good = !value.empty();
    } else if (key == "marker") {
      clause->marker = std::string(value);
      good = !value.empty();
    } else {
      return wrong(absl::StrCat("unknown key '", key,
                                "', want p, seed, at, after, times, marker, or of checkpoint:kill ", "bytes, point"));
    }
    if (!good) return wrong(absl::StrCat(key, " cannot be '", value, "'"));
  }
  if (clause->has_bytes && seen.size() > (clause->marker.empty() ? 1u : 2u)) {
    return wrong("bytes goes with marker and nothing else");
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<FaultPlan>> FaultPlan::Parse(absl::string_view spec) {
  auto plan = std::make_unique<FaultPlan>();
  for (const absl::string_view text : absl::StrSplit(spec, ';')) {
    auto clause = std::make_unique<Clause>();
    if (absl::Status s = ParseClause(absl::StripAsciiWhitespace(text), clause.get()); !s.ok()) return s;
    plan->clauses_.push_back(std::move(clause));
  }
  return plan;
}

bool FaultPlan::Happens(Clause* clause, uint64_t passage) {
  if (clause->at != 0 ? passage != clause->at : passage <= clause->after) return false;
  if (clause->probability < 1) {
    const std::array<uint32_t, 4> random =
        Philox4x32({static_cast<uint32_t>(passage), static_cast<uint32_t>(passage >> 32), 0, 0},
                   {static_cast<uint32_t>(clause->seed), static_cast<uint32_t>(clause->seed >> 32)});
    if (random[0] >= clause->probability * (1.0 + std::numeric_limits<uint32_t>::max())) return false;
  }
  if (clause->times != 0 && clause->happened.fetch_add(1) >= clause->times) return false;
  if (!clause->marker.empty() && !MakeMarker(clause->marker)) return false;
  spdlog::warn("SKEIN_FAULTS: {} at passage {}", clause->text, passage);
  return true;
}

FaultKind FaultPlan::Pass(FaultPoint point, absl::string_view name) {
  FaultKind kind = FaultKind::kNone;
  for (const auto& clause : clauses_) {
    if (clause->point != point || clause->has_bytes || (!clause->name.empty() && clause->name != name)) continue;
    const uint64_t passage = ++clause->passages;
    if (kind == FaultKind::kNone && Happens(clause.get(), passage)) kind = clause->kind;
  }
  return kind;
}

uint64_t FaultPlan::PassBytes(FaultPoint point, uint64_t size) {
  uint64_t allowed = size;
  for (const auto& clause : clauses_) {
    if (clause->point != point || !clause->has_bytes) continue;
    const uint64_t before = clause->passages.fetch_add(size);
    if (clause->bytes < before || clause->bytes >= before + size) continue;
    if (!clause->marker.empty() && !MakeMarker(clause->marker)) continue;
    spdlog::warn("SKEIN_FAULTS: {}", clause->text);
    allowed = std::min(allowed, clause->bytes - before);
  }
  return allowed;
}

absl::Status InstallFaults() {
  const char* const spec = std::getenv("SKEIN_FAULTS");
  if (spec == nullptr) return absl::OkStatus();
  auto plan = FaultPlan::Parse(spec);
  if (!plan.ok()) return plan.status();
  internal::fault_plan = plan->release();  // Lives as long as the process.
  spdlog::warn("SKEIN_FAULTS is set: this process fails on purpose: {}", spec);
  return absl::OkStatus();
}

void KillProcess() {
  spdlog::default_logger()->flush();
  ::kill(::getpid(), SIGKILL);
  HangForever();  // Until the signal has arrived.
}

void HangForever() {
  while (true) absl::SleepFor(absl::Hours(1));  // Signals wake it.
}

}  // namespace skein
