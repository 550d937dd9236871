// SPDX-License-Identifier: Apache-2.0
#include "bench/rank_place.h"

#include "learner/ranks/collective.h"
#include "learner/ranks/training_device.h"

namespace skein {

absl::StatusOr<std::unique_ptr<Collective>> ConnectRanks(const RankPlace& place, const std::string& device,
                                                         absl::Duration timeout) {
  const auto parsed = ParseTrainingDevice(device, place.rank);
  if (!parsed.ok()) return parsed.status();
  auto store = place.rank == 0 ? TcpStore::Serve(0, place.ranks, timeout)
                               : TcpStore::Find("127.0.0.1", place.store_port, place.ranks, timeout);
  if (!store.ok()) return store.status();
  if (place.rank == 0) place.serving((*store)->port());
  return Collective::Connect({place.rank, place.ranks, *parsed, timeout}, *std::move(store));
}

}  // namespace skein
