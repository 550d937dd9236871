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

// Which ranks make up the next group, and whose state it goes on from.   RankOffer of each -> DecideFormation
namespace skein {

// `rank`s are those that launchers gave; places in the group are counted from 0 without gaps.
struct RankFormation {
  enum class Kind {
    kForm,
    kWait,        // Too few are there.
    kLeftBehind,  // The others went on without this rank: it must start again, as a new one.
  };
  Kind kind = Kind::kWait;
  std::vector<v1::RankOffer> members;  // By place. The first one's state is what all go on from.
  bool has_state = false;              // The first one has a state; else all start from a checkpoint or anew.
  uint64_t number = 0;                 // Of the group, higher than any that its members have tried to form.
  std::vector<uint32_t> missing;       // Ranks that are not among the members.
  bool blocked = false;                // Fewer than the minimum, and that is not because all have just started.
  // "learner ranks 1, 3 are missing: 2 of 4 are here, learner.min_ranks is 3". Empty: none is missing.
  std::string missing_text;
};

// `offers`: of all ranks that are there, one each; the same on all. The first member is the one of the newest group,
// then of the most iterations, then of the lowest rank. Members are it, those that are in its group, and those that
// were in no group yet. Enough are `min_ranks`; before there was a group all `ranks`, until somebody is tired.
RankFormation DecideFormation(const std::vector<v1::RankOffer>& offers, uint32_t rank, uint32_t ranks,
                              uint32_t min_ranks);

// What learner.min_ranks means for `ranks` of them: 0 is all, and more than all is all.
uint32_t LeastRanks(uint32_t min_ranks, uint32_t ranks);

struct FormingOptions {
  uint32_t rank = 0;
  uint32_t ranks = 1;
  uint32_t min_ranks = 1;
  absl::Duration tired_after = absl::Seconds(10);  // Of ranks that never came.
  absl::Duration limit = absl::Seconds(120);       // Of it all.
  std::function<bool()> stopping;
  std::function<void(const RankFormation&)> on_look;  // Called whenever those that are there have met.
};
// Meets whoever is live until they can form a group: kForm or kLeftBehind. Aborted: stopping, or the limit is over
// (with who is missing). Other errors as CoordinatorClient::ArriveAtBarrier.
absl::StatusOr<RankFormation> MeetToForm(const FormingOptions& options, v1::RankOffer mine,
                                         CoordinatorClient* coordinator);

}  // namespace skein
