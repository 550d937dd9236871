// SPDX-License-Identifier: Apache-2.0
#include "learner/ranks/part_groups.h"

#include <string>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/net/host_port.h"
#include "learner/ranks/env_share.h"

namespace skein {
namespace {

constexpr char kLoopback[] = "127.0.0.1";

absl::Status TooFewParts(uint32_t parts, uint32_t ranks) {
  return absl::InvalidArgumentError(absl::StrCat("learner.gradient_parts: got ", parts, " for ", ranks,
                                                 " learners, want a part for each; set learner.gradient_parts to ",
                                                 ranks, " or more, or start ", parts, " or fewer"));
}

}  // namespace

absl::StatusOr<std::vector<std::unique_ptr<Collective>>> ConnectParts(Collective* ranks, uint32_t parts,
                                                                      absl::Duration timeout) {
  const uint32_t rank = ranks == nullptr ? 0 : static_cast<uint32_t>(ranks->rank());
  const uint32_t size = ranks == nullptr ? 1 : static_cast<uint32_t>(ranks->size());
  if (parts < size) return TooFewParts(parts, size);
  const auto mine = ShareOfRank(parts, 1, rank, size);
  if (!mine.ok()) return mine.status();
  Collective::Options options;
  options.size = static_cast<int>(parts);
  options.timeout = timeout;
  options.secret = ranks == nullptr ? Collective::NewSecret() : ranks->options().secret;

  std::shared_ptr<TcpStore> served;
  std::string place;  // Where rank 0 serves.
  if (rank == 0) {
    const std::string host = ranks == nullptr ? kLoopback : ranks->address();
    auto store = TcpStore::Serve(0, options.size, timeout, host);
    if (!store.ok()) return store.status();
    served = *std::move(store);
    place = JoinHostPort(host, served->port());
  }
  if (ranks != nullptr) {
    auto places = ranks->GatherBytes(place);
    if (!places.ok()) return places.status();
    place = places->front();
  }
  const auto address = ParseHostPort(place);
  if (!address.ok()) return address.status();

  std::vector<std::unique_ptr<Collective>> members(mine->share_envs);
  std::vector<absl::Status> connected(members.size());
  std::vector<std::thread> threads;
  for (size_t i = 0; i < members.size(); ++i) {
    threads.emplace_back([&, i] {
      Collective::Options of_part = options;
      of_part.rank = static_cast<int>(mine->first_env + i);
      auto store = of_part.rank == 0 ? served : TcpStore::Find(address->host, address->port, options.size, timeout);
      auto member = store.ok() ? Collective::Connect(of_part, *std::move(store)) : store.status();
      if (member.ok()) members[i] = *std::move(member);
      connected[i] = member.status();
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const absl::Status& status : connected) {
    if (!status.ok()) return status;
  }
  return members;
}

}  // namespace skein
