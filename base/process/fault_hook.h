// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

// Faults on demand, for tests. Off unless SKEIN_FAULTS is set, e.g.
//   SKEIN_FAULTS="receipt:drop@p=0.25,seed=7;checkpoint:kill@bytes=4096;env:nan@at=100;disk:eio@after=2"
// Clauses are POINT:KIND[@KEY=VALUE,...]; docs/fault-injection.md lists points, kinds and keys.
namespace skein {

// Where programs ask.
enum class FaultPoint {
  kReceipt,     // Learner: a batch was accepted, its receipt is about to be sent. drop, forget
  kCheckpoint,  // Learner: at each of a checkpoint's named points, and at each file's bytes. kill
  kEnv,         // Actor: an environment is about to step. throw, crash, hang, nan, shape
  kCollective,  // Learner: a collective operation is about to begin. hang, kill
  kDisk,        // A file is about to be written and synced: a checkpoint's, for instance. eio, enospc, erofs
};

enum class FaultKind { kNone, kDrop, kForget, kKill, kThrow, kCrash, kHang, kNan, kShape, kEio, kEnospc, kErofs };

// What SKEIN_FAULTS says. Thread-safe. Whether the n-th passage of a point fails is a pure function of (clause, n).
class FaultPlan {
 public:
  // InvalidArgument: names the clause, and what it should be.
  static absl::StatusOr<std::unique_ptr<FaultPlan>> Parse(absl::string_view spec);

  // Counts a passage of `point` and says what is to go wrong at it: of the first clause that applies. `name`: of a
  // named point; a clause with point=NAME counts its passages alone.
  FaultKind Pass(FaultPoint point, absl::string_view name = {});

  // `size` bytes are about to be written at `point`: how many of them come before a kill@bytes=N; `size` if all.
  // Bytes are counted over the life of the process.
  uint64_t PassBytes(FaultPoint point, uint64_t size);

 private:
  struct Clause {
    std::string text;  // As it was given.
    FaultPoint point;
    FaultKind kind;
    double probability = 1;
    uint64_t seed = 0;
    uint64_t at = 0;     // This passage only, counted from 1; 0 = any.
    uint64_t after = 0;  // Passages that are let through first.
    uint64_t times = 0;  // So often at most; 0 = no limit.
    bool has_bytes = false;
    uint64_t bytes = 0;
    std::string name;    // Of the named point; empty = any.
    std::string marker;  // A file that is made when the fault happens; where there is one already it does not.
    std::atomic<uint64_t> passages{0}, happened{0};  // Passages: of kill@bytes, bytes.
  };

  static absl::Status ParseClause(absl::string_view text, Clause* clause);
  static bool Happens(Clause* clause, uint64_t passage);

  std::vector<std::unique_ptr<Clause>> clauses_;  // The vector is constant after construction.
};

namespace internal {
extern FaultPlan* fault_plan;  // Null unless SKEIN_FAULTS is set; constant once InstallFaults() has returned.
}  // namespace internal

// Reads SKEIN_FAULTS. To be called at the start of main(), before there are threads. Errors as FaultPlan::Parse.
absl::Status InstallFaults();

inline bool FaultsInstalled() { return internal::fault_plan != nullptr; }

inline uint64_t BytesBeforeFault(FaultPoint point, uint64_t size) {
  return internal::fault_plan == nullptr ? size : internal::fault_plan->PassBytes(point, size);
}

// What is to go wrong here and now.
inline FaultKind NextFault(FaultPoint point, absl::string_view name = {}) {
  return internal::fault_plan == nullptr ? FaultKind::kNone : internal::fault_plan->Pass(point, name);
}

// Ends the process as kill -9 does.
[[noreturn]] void KillProcess();
// Never returns, as code that is stuck does.
[[noreturn]] void HangForever();

}  // namespace skein
