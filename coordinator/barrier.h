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

// Barriers at which all members of a role meet.
namespace skein {

// Identifies one blocked call. Chosen by the caller of this module; never used twice.
using WaiterId = uint64_t;

// The reply that ends one blocked call.
struct BarrierReply {
  WaiterId waiter = 0;
  absl::Status status;
  std::vector<std::string> members;   // If ok: the participants, ordered by id.
  std::vector<std::string> payloads;  // One for each member.
  uint64_t generation = 0;            // The one that opened.
};

struct BarrierArrival {
  WaiterId waiter = 0;
  v1::Role role = v1::ROLE_UNSPECIFIED;
  std::string member_id;
  std::string name;
  uint64_t generation = 0;  // 0 = the lowest with a waiting member, else the one after the last opened.
  absl::Duration timeout;
  uint32_t participants = 0;  // How many must arrive; 0 = all live members.
  std::string payload;
};

// Named barriers of each role, each with its own generations. The first arrival at a generation fixes its participants
// and its deadline.
// Without a number, the participants are the members of the role that are live at that time. A member that joins later
// becomes a participant only if it arrives; a member that leaves is not waited for. The generation opens when no
// participant is absent.
// With a number, the generation opens when that many members have arrived. The place of a member that leaves is kept
// for its successor.
// At the deadline every waiter gets DEADLINE_EXCEEDED in the same step, and the generation may be tried again. When a
// generation opens, it and all lower ones have passed. If a member arrives several times, its last payload before the
// opening counts. Every arrival gets exactly one reply, unless it is cancelled. Pure. Not thread-safe.
class Barriers {
 public:
  static constexpr size_t kMaxNameBytes = 128;
  static constexpr size_t kMaxNames = 1024;
  static constexpr size_t kMaxPayloadBytes = 4096;
  static constexpr size_t kMaxPayloadsBytes = 512 << 10;  // Of one generation: they form one record in the store.
  static constexpr absl::Duration kMaxTimeout = absl::Hours(24);

  // `live` are the ids of the live members of the arriver's role, including the arriver. Replies:
  // OK: the generation opened, now or earlier with this same member. DeadlineExceeded: names generation and absent
  // members. FailedPrecondition: the generation has passed, the member left while it waited, or its number of
  // participants differs from the first arrival's (names both). InvalidArgument: bad name, generation, timeout or
  // payload. ResourceExhausted: too many names, or too much payload in total.
  void Arrive(const BarrierArrival& arrival, const std::set<std::string>& live, MonotonicTime now,
              std::vector<BarrierReply>* replies);

  // Removes a cancelled call: its member counts as absent again, unless it waits in another call. No reply.
  void Cancel(WaiterId waiter);

  // A member of the role has joined. A barrier with a number of participants can then name it among the absent ones.
  void AddMember(v1::Role role, const std::string& id);

  // Removes members that left or expired in the same step.
  void RemoveMembers(const std::set<std::string>& ids, std::vector<BarrierReply>* replies);

  // Forgets which generations have passed, so that restarted members can count from 1. Barriers with waiting members
  // are kept.
  void ForgetRole(v1::Role role);

  // The barriers that have changed since the last call, as records for a successor of this coordinator, so that a
  // repeated call gets the same answer. A barrier changes when a generation opens or when the members that may repeat
  // their call change. Forgotten barriers have generation 0.
  std::vector<store::BarrierRecord> TakeChanged();
  void Restore(const store::BarrierRecord& record);

  // Ends the rounds whose deadline has passed; returns how many barriers timed out.
  int Tick(MonotonicTime now, std::vector<BarrierReply>* replies);

  MonotonicTime NextDeadline() const;

  // Number of arrivals still missing at barriers with waiting members.
  size_t absentees() const;

 private:
  struct Arrival {
    std::vector<WaiterId> waiters;  // Never empty between calls.
    std::string payload;
  };
  struct Round {
    uint32_t number = 0;                     // How many must arrive; 0 = all participants.
    std::set<std::string> participants;      // Includes the keys of `arrived`. With a number: members to name.
    std::set<std::string> gone;              // With a number: participants that left and have no successor.
    std::map<std::string, Arrival> arrived;  // Never empty between calls.
    MonotonicTime deadline;
    size_t size() const { return number > 0 ? number : participants.size(); }
  };
  struct Barrier {
    std::map<uint64_t, Round> rounds;  // By generation, all above opened_generation.
    uint64_t opened_generation = 0;
    std::vector<std::string> opened_members;
    std::vector<std::string> opened_payloads;
    std::set<std::string> may_repeat;  // The opened_members that have stayed live since.
  };
  using Key = std::pair<v1::Role, std::string>;

  static std::string AbsenceOf(const Round& round);
  void OpenWhatIsComplete(const Key& key, Barrier* barrier, std::vector<BarrierReply>* replies);

  std::map<Key, Barrier> barriers_;
  std::set<Key> changed_;  // Since TakeChanged().
};

}  // namespace skein
