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

// Points of a program at which a fault can be injected.
enum class FaultPoint {
  kReceipt,     // Learner: a fragment was accepted, its receipt is about to be sent. drop, forget
  kCheckpoint,  // Learner: at each of a checkpoint's named points, and at each file's bytes. kill
  kEnv,         // Actor: an environment is about to step. throw, crash, hang, nan, shape
  kCollective,  // Learner: a collective operation is about to begin. hang, kill
  kDisk,        // A file is about to be written and synced: a checkpoint's, for instance. eio, enospc, erofs
};

enum class FaultKind { kNone, kDrop, kForget, kKill, kThrow, kCrash, kHang, kNan, kShape, kEio, kEnospc, kErofs };

// The parsed SKEIN_FAULTS. Thread-safe. Whether the n-th passage of a point fails is a pure function of (clause, n).
class FaultPlan {
 public:
  // InvalidArgument: names the clause and the expected form.
  static absl::StatusOr<std::unique_ptr<FaultPlan>> Parse(absl::string_view spec);

  // Counts a passage of `point` and returns the fault of the first clause that applies. `name`: name of a named point;
  // a clause with point=NAME counts only passages with that name.
  FaultKind Pass(FaultPoint point, absl::string_view name = {});

  // Called before `size` bytes are written at `point`. Returns how many of them precede a kill@bytes=N; `size` if all
  // do. Bytes are counted over the life of the process.
  uint64_t PassBytes(FaultPoint point, uint64_t size);

 private:
  struct Clause {
    std::string text;  // The clause's text.
    FaultPoint point;
    FaultKind kind;
    double probability = 1;
    uint64_t seed = 0;
    uint64_t at = 0;     // This passage only, counted from 1; 0 = any.
    uint64_t after = 0;  // The first `after` passages have no fault.
    uint64_t times = 0;  // At most this many faults; 0 = no limit.
    bool has_bytes = false;
    uint64_t bytes = 0;
    std::string name;    // Name of the named point; empty = any.
    std::string marker;  // A file that the fault creates. If the file exists already, the fault does not happen.
    std::atomic<uint64_t> passages{0}, happened{0};  // For kill@bytes, `passages` counts bytes.
  };

  static absl::Status ParseClause(absl::string_view text, Clause* clause);
  static bool Happens(Clause* clause, uint64_t passage);

  std::vector<std::unique_ptr<Clause>> clauses_;  // The vector is constant after construction.
};

namespace internal {
extern FaultPlan* fault_plan;  // Null unless SKEIN_FAULTS is set; constant once InstallFaults() has returned.
}  // namespace internal

// Reads SKEIN_FAULTS. Call it at the start of main(), before threads are started. Errors as FaultPlan::Parse.
absl::Status InstallFaults();

inline bool FaultsInstalled() { return internal::fault_plan != nullptr; }

inline uint64_t BytesBeforeFault(FaultPoint point, uint64_t size) {
  return internal::fault_plan == nullptr ? size : internal::fault_plan->PassBytes(point, size);
}

// The fault to inject at this passage of `point`.
inline FaultKind NextFault(FaultPoint point, absl::string_view name = {}) {
  return internal::fault_plan == nullptr ? FaultKind::kNone : internal::fault_plan->Pass(point, name);
}

// Ends the process by SIGKILL.
[[noreturn]] void KillProcess();
// Never returns; simulates a hang.
[[noreturn]] void HangForever();

}  // namespace skein
