// SPDX-License-Identifier: Apache-2.0
#include "tests/learner/rank_threads.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include <thread>
#include <vector>

namespace skein {

void RunRanks(int ranks, const std::function<void(Collective* collective)>& of_rank) {
  const absl::Duration timeout = absl::Seconds(20);
  const auto served = TcpStore::Serve(0, ranks, timeout);
  ASSERT_TRUE(served.ok()) << served.status();
  const int port = (*served)->port();
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      at::set_num_threads(1);
      const auto store = rank == 0 ? served : TcpStore::Find("127.0.0.1", port, ranks, timeout);
      ASSERT_TRUE(store.ok()) << store.status();
      const auto collective = Collective::Connect({rank, ranks, torch::kCPU, timeout}, *store);
      ASSERT_TRUE(collective.ok()) << collective.status();
      of_rank(collective->get());
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace skein
