// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "member/coordinator_client.h"
#include "skein/v1/rank.pb.h"

// Decides which ranks form the next group, and which rank's state it continues from.
//   RankOffer of each rank -> DecideFormation -> RankFormation
namespace skein {

// A `rank` is the number given by the launcher; a place is the index in the group, 0, 1, 2, ... without gaps.
struct RankFormation {
  enum class Kind {
    kForm,
    kWait,        // Too few ranks are there.
    kLeftBehind,  // The others continued without this rank: its process must start again, as a new rank.
  };
  Kind kind = Kind::kWait;
  std::vector<v1::RankOffer> members;  // By place. All continue from the first one's state.
  bool has_state = false;              // The first one has a state; else all start from a checkpoint or from scratch.
  uint64_t number = 0;                 // Of the group, higher than any that its members have tried to form.
  std::vector<uint32_t> missing;       // Ranks that are not among the members.
  bool blocked = false;                // Fewer than the minimum, and not only because the ranks are still starting.
  // "learner ranks 1, 3 are missing: 2 of 4 are here, learner.min_ranks is 3". Empty: none is missing.
  std::string missing_text;
};

// `offers`: one from each rank that is there, the same on all ranks. The first member is the rank of the newest group,
// then with the most iterations, then with the lowest number. Members: it, the ranks of its group, and ranks that were
// in no group yet. A group needs `min_ranks` members. The first group needs all `ranks`, until one of them is tired: it
// has waited for FormingOptions::tired_after.
RankFormation DecideFormation(const std::vector<v1::RankOffer>& offers, uint32_t rank, uint32_t ranks,
                              uint32_t min_ranks);

// The minimum number of ranks that learner.min_ranks sets: 0, or more than `ranks`, means `ranks`.
uint32_t LeastRanks(uint32_t min_ranks, uint32_t ranks);

struct FormingOptions {
  uint32_t rank = 0;
  uint32_t ranks = 1;
  uint32_t min_ranks = 1;
  absl::Duration tired_after = absl::Seconds(10);  // How long to wait for ranks that never came.
  absl::Duration limit = absl::Seconds(120);       // For all of MeetToForm.
  std::function<bool()> stopping;
  std::function<void(const RankFormation&)> on_look;  // Called after each meeting of the ranks that are there.
};
// Meets the live ranks until they can form a group. Returns kForm or kLeftBehind. Aborted: stopping, or the limit
// passed (the message names the missing ranks). Other errors as CoordinatorClient::ArriveAtBarrier.
absl::StatusOr<RankFormation> MeetToForm(const FormingOptions& options, v1::RankOffer mine,
                                         CoordinatorClient* coordinator);

}  // namespace skein
