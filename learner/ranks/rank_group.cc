// SPDX-License-Identifier: Apache-2.0
#include "learner/ranks/rank_group.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "base/net/host_port.h"
#include "base/process/clock.h"
#include "base/telemetry/log.h"
#include "learner/ranks/collective.h"
#include "learner/ranks/training_device.h"

namespace skein {
namespace {

constexpr char kRendezvous[] = "rendezvous";
constexpr char kTrain[] = "train";
// The longest wait of one call, so that a request to stop is seen soon.
constexpr absl::Duration kLongestCall = absl::Seconds(2);
// The same where Options::others is asked in between. Longer than RankGroup::kRound.
constexpr absl::Duration kLongestMeeting = absl::Milliseconds(1200);
constexpr absl::Duration kRejoin = absl::Milliseconds(250);
// A coordinator that was restarted knows its members again by then.
constexpr absl::Duration kLongestRejoining = absl::Seconds(5);

absl::Status Lost(const absl::Status& why, const std::string& doing) {
  return absl::AbortedError(absl::StrCat(doing, ": ", std::string(why.message())));
}

}  // namespace

absl::Status AsLostRank(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status) ? Lost(status, "training together") : status;
}

std::string LocalHostTowards(const std::string& address) {
  const auto parsed = ParseHostPort(address);
  if (!parsed.ok()) return "";
  addrinfo hints = {};
  hints.ai_socktype = SOCK_DGRAM;  // Nothing is sent: connecting only chooses the route.
  addrinfo* found = nullptr;
  if (getaddrinfo(parsed->host.c_str(), std::to_string(parsed->port).c_str(), &hints, &found) != 0) return "";
  std::string host;
  for (const addrinfo* to = found; to != nullptr && host.empty(); to = to->ai_next) {
    const int fd = socket(to->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0) continue;
    sockaddr_storage own = {};
    socklen_t size = sizeof(own);
    char text[NI_MAXHOST] = "";
    if (connect(fd, to->ai_addr, to->ai_addrlen) == 0 &&
        getsockname(fd, reinterpret_cast<sockaddr*>(&own), &size) == 0 &&
        getnameinfo(reinterpret_cast<sockaddr*>(&own), size, text, sizeof(text), nullptr, 0, NI_NUMERICHOST) == 0) {
      host = text;
    }
    close(fd);
  }
  freeaddrinfo(found);
  return host;
}

RankGroup::RankGroup(const Options& options, CoordinatorClient* coordinator)
    : options_(options), coordinator_(coordinator), rounds_(options.number << 32) {}
RankGroup::~RankGroup() = default;

absl::StatusOr<std::unique_ptr<RankGroup>> RankGroup::Form(const Options& options, CoordinatorClient* coordinator) {
  const auto device = ParseTrainingDevice(options.device, options.local_rank);
  if (!device.ok()) return device.status();
  std::unique_ptr<RankGroup> group(new RankGroup(options, coordinator));
  std::shared_ptr<TcpStore> store;
  std::string meeting_place;  // Where rank 0 serves, and the group's secret.
  if (options.rank == 0) {
    std::string host = options.announce_host.empty() ? LocalHostTowards(options.coordinator) : options.announce_host;
    if (host.empty()) host = "127.0.0.1";
    auto served = TcpStore::Serve(0, options.size, options.form_timeout, host);
    if (!served.ok()) return served.status();
    store = *std::move(served);
    meeting_place = absl::StrCat(JoinHostPort(host, store->port()), " ", Collective::NewSecret());
  }
  spdlog::info("rank {} of {} waits for the others", options.rank, options.size);
  const auto places = group->Arrive(kRendezvous, options.number, options.form_timeout, meeting_place);
  if (!places.ok()) return places.status();
  const std::pair<std::string, std::string> address_and_secret =
      absl::StrSplit(places->front(), absl::MaxSplits(' ', 1));
  if (options.rank != 0) {
    const auto rank_0 = ParseHostPort(address_and_secret.first);
    if (!rank_0.ok()) return Lost(rank_0.status(), "rank 0's address");
    auto found = TcpStore::Find(rank_0->host, rank_0->port, options.size, options.form_timeout);
    if (!found.ok()) return Lost(found.status(), "finding rank 0");
    store = *std::move(found);
  }
  Collective::Options collective_options;
  collective_options.rank = options.rank;
  collective_options.size = options.size;
  collective_options.device = *device;
  collective_options.timeout = options.timeout;
  collective_options.secret = address_and_secret.second;
  auto collective = Collective::Connect(collective_options, std::move(store));
  if (!collective.ok()) return Lost(collective.status(), "connecting the ranks");
  group->collective_ = *std::move(collective);
  spdlog::info("rank {} of {} is connected to the others", options.rank, options.size);
  return group;
}

absl::StatusOr<std::vector<std::string>> RankGroup::Arrive(const std::string& name, uint64_t generation,
                                                           absl::Duration timeout, std::string payload) {
  CoordinatorClient::Barrier barrier;
  barrier.name = name;
  barrier.generation = generation;
  barrier.participants = static_cast<uint32_t>(options_.size);
  barrier.payload = absl::StrCat(options_.rank, " ", payload);
  const absl::Duration begin = MonotonicNow();
  // At the first meeting there is nothing to end in step.
  const absl::Duration last_meeting = name == kRendezvous ? absl::ZeroDuration() : kLastMeeting;
  absl::Duration stop_since = absl::InfiniteDuration();
  absl::Duration refused_since = absl::InfiniteDuration();
  absl::StatusOr<CoordinatorClient::BarrierResult> result;
  const bool asks = name == kTrain && options_.others;
  absl::Status absence;  // Of the first call that timed out: later ones do not name the missing ranks.
  while (true) {
    barrier.timeout = std::min(timeout, asks ? kLongestMeeting : kLongestCall);
    result = coordinator_->ArriveAtBarrier(barrier);
    const absl::Duration now = MonotonicNow();
    if (options_.stopping && options_.stopping()) stop_since = std::min(stop_since, now);
    if (absl::IsDeadlineExceeded(result.status()) && absence.ok()) absence = result.status();
    if (asks && absl::IsDeadlineExceeded(result.status())) {
      if (absl::Status others = options_.others(); !others.ok()) return Lost(others, "meeting the other ranks");
    }
    if (now - begin >= timeout || now - stop_since >= last_meeting) break;
    // This rank is no member until it has joined again, or the others have continued without it.
    const bool refused = absl::IsFailedPrecondition(result.status()) || absl::IsNotFound(result.status());
    refused_since = refused ? std::min(refused_since, now) : absl::InfiniteDuration();
    if (refused) {
      if (now - refused_since >= kLongestRejoining) break;
      absl::SleepFor(kRejoin);
    } else if (!absl::IsDeadlineExceeded(result.status()) && !absl::IsUnavailable(result.status())) {
      break;
    }
  }
  if (!result.ok()) {
    return Lost(absl::IsDeadlineExceeded(result.status()) ? absence : result.status(), "meeting the other ranks");
  }
  // Ordered by member id, "learner-10" before "learner-2": each payload says whose it is.
  std::vector<std::string> by_rank(options_.size);
  for (const std::string& theirs : result->payloads) {
    const size_t space = theirs.find(' ');
    const int rank = std::atoi(theirs.c_str());
    if (space == std::string::npos || rank < 0 || rank >= options_.size) {
      return absl::InternalError(absl::StrCat("barrier ", name, ": a payload without a rank"));
    }
    by_rank[rank] = theirs.substr(space + 1);
  }
  return by_rank;
}

absl::StatusOr<std::vector<v1::RankRound>> RankGroup::Meet(const v1::RankRound& mine) {
  auto payloads = Arrive(kTrain, ++rounds_, options_.meeting_timeout, mine.SerializeAsString());
  if (!payloads.ok()) return payloads.status();
  std::vector<v1::RankRound> rounds(options_.size);
  for (int rank = 0; rank < options_.size; ++rank) {
    if (!rounds[rank].ParseFromString(payloads->at(rank))) {
      return absl::InternalError(absl::StrCat("rank ", rank, " is of another version"));
    }
  }
  return rounds;
}

absl::StatusOr<std::vector<v1::RankIteration>> RankGroup::Gather(const v1::RankIteration& mine) {
  auto all = collective_->GatherBytes(mine.SerializeAsString());
  if (!all.ok()) return Lost(all.status(), "gathering what the ranks have");
  std::vector<v1::RankIteration> iterations(options_.size);
  for (int rank = 0; rank < options_.size; ++rank) {
    if (!iterations[rank].ParseFromString(all->at(rank))) {
      return absl::InternalError(absl::StrCat("rank ", rank, " is of another version"));
    }
  }
  return iterations;
}

RankDecision Decide(const std::vector<v1::RankRound>& rounds, int rank, absl::Duration shortfall) {
  RankDecision decision;
  bool all_ready = true, some_ready = false, rank_wants_to_join = false;
  absl::Duration quiet = absl::InfiniteDuration();  // Time without data, least over the ranks that are not ready.
  for (const v1::RankRound& round : rounds) {
    if (round.stop()) {
      decision.kind = RankDecision::Kind::kStop;
      return decision;
    }
    all_ready = all_ready && round.ready();
    some_ready = some_ready || round.ready();
    rank_wants_to_join = rank_wants_to_join || round.rank_wants_to_join();
    if (!round.ready()) quiet = std::min(quiet, absl::Seconds(round.idle_seconds()));
  }
  if (!all_ready) {
    if (rank_wants_to_join && quiet >= kAdmitAfter) {
      decision.kind = RankDecision::Kind::kAdmit;
    } else if (some_ready && quiet >= shortfall) {
      decision.kind = RankDecision::Kind::kGoOnShort;
    }
    return decision;
  }
  decision.kind = RankDecision::Kind::kTrain;
  decision.admits = rank_wants_to_join;
  for (size_t r = 0; r < rounds.size(); ++r) {
    if (static_cast<int>(r) < rank) decision.column_offset += rounds[r].columns();
    decision.total_columns += rounds[r].columns();
    decision.columns.push_back(rounds[r].columns());
  }
  return decision;
}

}  // namespace skein
