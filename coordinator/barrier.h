// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "coordinator/monotonic_time.h"
#include "skein/v1/coordinator_service.pb.h"
#include "store/record.pb.h"

namespace skein {

// One blocked call, named by the caller of this module; never used twice.
using WaiterId = uint64_t;

// The end of one blocked call.
struct BarrierReply {
  WaiterId waiter = 0;
  absl::Status status;
  std::vector<std::string> members;   // If ok: the participants, ordered by id.
  std::vector<std::string> payloads;  // Of each of them.
  uint64_t generation = 0;            // The one that opened.
};

struct BarrierArrival {
  WaiterId waiter = 0;
  v1::Role role = v1::ROLE_UNSPECIFIED;
  std::string member_id;
  std::string name;
  uint64_t generation = 0;  // 0 = the lowest that a member waits at, else the one after the last that opened.
  absl::Duration timeout;
  uint32_t participants = 0;  // How many it takes; 0 = those that are live.
  std::string payload;
};

// Named barriers of each role. The first arrival at a generation fixes its participants and its deadline. Without a
// number the participants are the members of the role that are live then; a member that joins later takes part only if
// it arrives, one that has gone is not waited for, and it opens when no participant is absent. With a number it opens
// once so many are there, and the place of one that has gone is kept for its successor. At the deadline every waiter
// gets DEADLINE_EXCEEDED in the same step and the generation may be tried again. When a generation opens, it and all
// lower ones have passed. Of several arrivals of one member the last payload before the opening counts. Every arrival
// gets exactly one reply, unless it is cancelled. Pure. Not thread-safe.
class Barriers {
 public:
  static constexpr size_t kMaxNameBytes = 128;
  static constexpr size_t kMaxNames = 1024;
  static constexpr size_t kMaxPayloadBytes = 4096;
  static constexpr size_t kMaxPayloadsBytes = 512 << 10;  // Of all that meet: they are one record for a successor.
  static constexpr absl::Duration kMaxTimeout = absl::Hours(24);

  // `live` are the ids of the arriver's role, the arriver included. Replies:
  // OK: opened, or had been opened with this very member. DeadlineExceeded: names generation and absent members.
  // FailedPrecondition: the generation has passed, the member went away while it waited, or its number of participants
  // is not the first arrival's (names both). InvalidArgument: bad name, generation, timeout or payload.
  // ResourceExhausted: too many names, or too much payload in all.
  void Arrive(const BarrierArrival& arrival, const std::set<std::string>& live, MonotonicTime now,
              std::vector<BarrierReply>* replies);

  // The call is gone: its member counts as absent again, unless it waits in another call. No reply.
  void Cancel(WaiterId waiter);

  // A member of the role has joined: a barrier that waits for more than have arrived can name it if it stays away.
  void AddMember(v1::Role role, const std::string& id);

  // These members have left or expired, in one step.
  void RemoveMembers(const std::set<std::string>& ids, std::vector<BarrierReply>* replies);

  // Forgets which generations have passed, so that members that have started again can count from 1; barriers that
  // a member waits at stay.
  void ForgetRole(v1::Role role);

  // What a successor must know, so that a repeated call gets the same answer: barriers whose newest opening, or which
  // members may ask for it again, has changed since the last call; those that are forgotten have generation 0.
  std::vector<store::BarrierRecord> TakeChanged();
  void Restore(const store::BarrierRecord& record);

  // Ends what has reached its deadline; returns how many barriers that were.
  int Tick(MonotonicTime now, std::vector<BarrierReply>* replies);

  MonotonicTime NextDeadline() const;

  // Arrivals that barriers with waiting members still lack.
  size_t absentees() const;

 private:
  struct Arrival {
    std::vector<WaiterId> waiters;  // Never empty between calls.
    std::string payload;
  };
  struct Round {
    uint32_t number = 0;                     // How many it takes; 0 = the participants.
    std::set<std::string> participants;      // Contains the keys of `arrived`. With a number: those it may name.
    std::set<std::string> gone;              // With a number: participants that have gone and have no successor yet.
    std::map<std::string, Arrival> arrived;  // Never empty between calls.
    MonotonicTime deadline;
    size_t size() const { return number > 0 ? number : participants.size(); }
  };
  struct Barrier {
    std::map<uint64_t, Round> rounds;  // By generation, all above opened_generation.
    uint64_t opened_generation = 0;
    std::vector<std::string> opened_members;
    std::vector<std::string> opened_payloads;
    std::set<std::string> may_repeat;  // Those of opened_members that have been live ever since.
  };
  using Key = std::pair<v1::Role, std::string>;

  static std::string AbsenceOf(const Round& round);
  void OpenWhatIsComplete(const Key& key, Barrier* barrier, std::vector<BarrierReply>* replies);

  std::map<Key, Barrier> barriers_;
  std::set<Key> changed_;  // Since TakeChanged().
};

}  // namespace skein
