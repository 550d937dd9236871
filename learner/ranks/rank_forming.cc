// SPDX-License-Identifier: Apache-2.0
#include "learner/ranks/rank_forming.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "base/process/clock.h"
#include "base/telemetry/log.h"

namespace skein {
namespace {

constexpr char kForm[] = "form";
// The longest wait of one call, so that a request to stop is seen soon.
constexpr absl::Duration kLongestCall = absl::Seconds(2);
// Between two meetings.
constexpr absl::Duration kPause = absl::Milliseconds(200);

// Newest state first.
bool Precedes(const v1::RankOffer& a, const v1::RankOffer& b) {
  return std::make_tuple(b.group(), b.iteration(), a.rank()) < std::make_tuple(a.group(), a.iteration(), b.rank());
}

std::string MissingText(const RankFormation& formation, uint32_t ranks, uint32_t min_ranks) {
  if (formation.missing.empty()) return "";
  const bool one = formation.missing.size() == 1;
  return absl::StrCat(one ? "learner rank " : "learner ranks ", absl::StrJoin(formation.missing, ", "),
                      one ? " is" : " are", " missing: ", formation.members.size(), " of ", ranks,
                      formation.members.size() == 1 ? " is" : " are", " here, learner.min_ranks is ", min_ranks);
}

}  // namespace

uint32_t LeastRanks(uint32_t min_ranks, uint32_t ranks) { return min_ranks == 0 ? ranks : std::min(min_ranks, ranks); }

RankFormation DecideFormation(const std::vector<v1::RankOffer>& offers, uint32_t rank, uint32_t ranks,
                              uint32_t min_ranks) {
  RankFormation formation;
  std::vector<v1::RankOffer> order = offers;
  std::sort(order.begin(), order.end(), Precedes);
  if (order.empty()) return formation;
  const v1::RankOffer first = order.front();
  formation.has_state = first.group() > 0;
  bool tired = false, belongs = false;
  for (const v1::RankOffer& offer : order) {
    formation.number = std::max({formation.number, offer.attempted() + 1, offer.group() + 1});
    tired = tired || offer.tired();
    if (offer.group() > 0 && offer.incarnation() != first.incarnation() &&
        !absl::c_linear_search(first.incarnations(), offer.incarnation())) {
      continue;
    }
    belongs = belongs || offer.rank() == rank;
    formation.members.push_back(offer);
  }
  for (uint32_t r = 0; r < ranks; ++r) {
    if (absl::c_none_of(formation.members, [r](const v1::RankOffer& member) { return member.rank() == r; })) {
      formation.missing.push_back(r);
    }
  }
  formation.missing_text = MissingText(formation, ranks, min_ranks);
  const size_t enough = formation.has_state || tired ? min_ranks : ranks;
  formation.blocked = (formation.has_state || tired) && formation.members.size() < min_ranks;
  if (!belongs) {
    formation.kind = RankFormation::Kind::kLeftBehind;
  } else if (formation.members.size() >= enough) {
    formation.kind = RankFormation::Kind::kForm;
  }
  return formation;
}

absl::StatusOr<RankFormation> MeetToForm(const FormingOptions& options, v1::RankOffer mine,
                                         CoordinatorClient* coordinator) {
  const absl::Duration begin = MonotonicNow();
  absl::Status why = absl::UnknownError("no other rank has answered yet");
  while (true) {
    const absl::Duration waited = MonotonicNow() - begin;
    if (options.stopping()) return absl::AbortedError("asked to stop while ranks are missing");
    if (waited >= options.limit) {
      return absl::AbortedError(absl::StrCat("meeting the other ranks: ", std::string(why.message()),
                                             "; start all ranks again, they resume"));
    }
    mine.set_tired(waited >= options.tired_after);
    CoordinatorClient::Barrier barrier;
    barrier.name = kForm;
    barrier.generation = 0;  // The next one: the ranks that come did not all see the last one.
    barrier.timeout = kLongestCall;
    barrier.payload = mine.SerializeAsString();
    const auto result = coordinator->ArriveAtBarrier(barrier);
    if (!result.ok()) {
      why = result.status();
      // A coordinator that was restarted does not know its members until they have joined it again.
      if (absl::IsFailedPrecondition(why) || absl::IsNotFound(why)) {
        absl::SleepFor(kPause);
      } else if (!absl::IsDeadlineExceeded(why) && !absl::IsUnavailable(why)) {
        return why;
      }
      continue;
    }
    std::vector<v1::RankOffer> offers(result->payloads.size());
    for (size_t i = 0; i < offers.size(); ++i) {
      if (!offers[i].ParseFromString(result->payloads[i])) {
        return absl::InternalError(absl::StrCat(result->members[i], " is of another version"));
      }
    }
    RankFormation formation = DecideFormation(offers, options.rank, options.ranks, options.min_ranks);
    if (options.on_look) options.on_look(formation);
    if (formation.kind != RankFormation::Kind::kWait) return formation;
    why = absl::UnavailableError(formation.missing_text);
    absl::SleepFor(kPause);
  }
}

}  // namespace skein
