// SPDX-License-Identifier: Apache-2.0
#include "learner/ranks/collective.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/version.h>

#include <csignal>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "base/process/subprocess.h"
#include "learner/ranks/direct_sum.h"
#include "tests/learner/rank_threads.h"

namespace skein {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr absl::Duration kPatience = absl::Seconds(20);
constexpr absl::Duration kShort = absl::Milliseconds(100);
constexpr char kPortVariable[] = "SKEIN_TEST_STORE_PORT";
// More floats than the calling thread exchanges itself: Gloo's.
constexpr int64_t kLarge = kDirectBytes / static_cast<int64_t>(sizeof(float)) + 1;

// [n] of small whole numbers, other ones on each rank: sums are exact.
torch::Tensor WholeNumbers(int64_t n, int rank, torch::ScalarType type = torch::kFloat32) {
  return torch::arange(n, type).remainder(100).add_(rank);
}

torch::Tensor Noise(int64_t n, int rank) {
  return torch::randn({n}, at::make_generator<at::CPUGeneratorImpl>(static_cast<uint64_t>(rank + 1)));
}

std::string Bits(const torch::Tensor& tensor) {
  return std::string(static_cast<const char*>(tensor.data_ptr()), tensor.nbytes());
}

// Two ranks in this thread's hands.
struct Pair {
  std::unique_ptr<Collective> zero, one;
};

std::unique_ptr<Collective> ConnectOne(int rank, absl::Duration timeout,
                                       absl::StatusOr<std::shared_ptr<TcpStore>> store) {
  EXPECT_TRUE(store.ok()) << store.status();
  if (!store.ok()) return nullptr;
  auto collective = Collective::Connect({rank, 2, torch::kCPU, timeout}, *store);
  return collective.ok() ? *std::move(collective) : nullptr;
}

Pair ConnectPair(absl::Duration timeout) {
  // A short timeout may not suffice to meet on a busy machine.
  for (int attempt = 0; attempt < 50; ++attempt) {
    const auto served = TcpStore::Serve(0, 2, kPatience);
    Pair pair;
    std::thread other(
        [&] { pair.one = ConnectOne(1, timeout, TcpStore::Find("127.0.0.1", (*served)->port(), 2, kPatience)); });
    pair.zero = ConnectOne(0, timeout, served);
    other.join();
    if (pair.zero != nullptr && pair.one != nullptr) return pair;
  }
  ADD_FAILURE() << "two ranks cannot meet within " << timeout;
  return {};
}

class SumsOfType : public testing::TestWithParam<torch::ScalarType> {};

TEST_P(SumsOfType, AreThoseOfAllRanks) {
  RunRanks(2, [](Collective* collective) {
    for (const int64_t n : {int64_t{0}, int64_t{1}, int64_t{1000}, kLarge}) {
      const torch::Tensor tensor = WholeNumbers(n, collective->rank(), GetParam());
      const absl::Status status = collective->AllReduce(tensor);
      ASSERT_TRUE(status.ok()) << status;
      // i mod 100 + 0 and i mod 100 + 1.
      EXPECT_TRUE(tensor.equal(WholeNumbers(n, 0, GetParam()).mul_(2).add_(1))) << n;
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Collective, SumsOfType, testing::Values(torch::kFloat32, torch::kFloat64, torch::kInt64));

TEST(Collective, GivesEveryRankTheSameBits) {
  RunRanks(3, [](Collective* collective) {
    for (const auto type : {torch::kFloat32, torch::kBFloat16}) {
      for (const int64_t n : {int64_t{1001}, kLarge}) {
        const torch::Tensor tensor = Noise(n, collective->rank()).to(type);
        ASSERT_TRUE(collective->AllReduce(tensor).ok());
        const auto bits = collective->GatherBytes(Bits(tensor));
        ASSERT_TRUE(bits.ok()) << bits.status();
        EXPECT_TRUE((*bits)[0] == (*bits)[1] && (*bits)[0] == (*bits)[2]);
      }
    }
  });
}

TEST(Collective, AddsBfloat16InFloat32AndRoundsOnce) {
  RunRanks(3, [](Collective* collective) {
    for (const int64_t n : {int64_t{7}, kLarge}) {  // Whole, and in pieces.
      const torch::Tensor tensor = Noise(n, collective->rank()).to(torch::kBFloat16);
      ASSERT_TRUE(collective->AllReduce(tensor).ok());
      torch::Tensor sum = torch::zeros({n});
      for (int rank = 0; rank < 3; ++rank) sum += Noise(n, rank).to(torch::kBFloat16).to(torch::kFloat32);
      EXPECT_TRUE(tensor.equal(sum.to(torch::kBFloat16)));
    }
  });
}

TEST(Collective, KeepsSeveralSumsApart) {
  RunRanks(2, [](Collective* collective) {
    std::vector<torch::Tensor> tensors;
    std::vector<std::unique_ptr<Collective::Work>> works;
    for (const int64_t n : {int64_t{10}, kLarge, int64_t{20}, kLarge + 5}) {
      tensors.push_back(WholeNumbers(n, collective->rank()));
      works.push_back(collective->StartAllReduce(tensors.back()));
    }
    for (size_t i = works.size(); i-- > 0;) ASSERT_TRUE(works[i]->Wait().ok());
    for (const torch::Tensor& tensor : tensors) {
      EXPECT_TRUE(tensor.equal(WholeNumbers(tensor.numel(), 0).mul_(2).add_(1)));
    }
  });
}

TEST(Collective, BroadcastsRankZerosBits) {
  RunRanks(3, [](Collective* collective) {
    const torch::Tensor numbers = Noise(5000, collective->rank()).to(torch::kFloat64);
    const torch::Tensor scalar = torch::tensor(collective->rank() + 41, torch::kInt64);
    ASSERT_TRUE(collective->Broadcast(numbers).ok());
    ASSERT_TRUE(collective->Broadcast(scalar).ok());
    EXPECT_EQ(Bits(numbers), Bits(Noise(5000, 0).to(torch::kFloat64)));
    EXPECT_EQ(scalar.item<int64_t>(), 41);
  });
}

TEST(Collective, GathersByRank) {
  RunRanks(3, [](Collective* collective) {
    const auto all = collective->Gather(torch::tensor({collective->rank() * 1.0, 0.5}, torch::kFloat64));
    ASSERT_TRUE(all.ok()) << all.status();
    EXPECT_TRUE(all->equal(torch::tensor({{0.0, 0.5}, {1.0, 0.5}, {2.0, 0.5}}, torch::kFloat64)));
  });
}

TEST(Collective, GathersBytesOfAnyLength) {
  RunRanks(3, [](Collective* collective) {
    const auto all = collective->GatherBytes(std::string(static_cast<size_t>(collective->rank() * 2), 'x'));
    ASSERT_TRUE(all.ok()) << all.status();
    EXPECT_THAT(*all, ElementsAre("", "xx", "xxxx"));
    const auto none = collective->GatherBytes("");
    ASSERT_TRUE(none.ok()) << none.status();
    EXPECT_THAT(*none, ElementsAre("", "", ""));
  });
}

TEST(Collective, CountsWhatItSends) {
  RunRanks(2, [](Collective* collective) {
    ASSERT_TRUE(collective->AllReduce(torch::zeros({100})).ok());
    EXPECT_EQ(collective->bytes_sent(), 400);
    ASSERT_TRUE(collective->AllReduce(torch::zeros({kLarge})).ok());
    EXPECT_EQ(collective->bytes_sent(), 400 + 4 * kLarge);  // Two halves.
  });
}

TEST(Collective, IsFineAlone) {
  RunRanks(1, [](Collective* collective) {
    EXPECT_EQ(collective->size(), 1);
    const torch::Tensor small = WholeNumbers(10, 0), large = WholeNumbers(kLarge, 0);
    EXPECT_TRUE(collective->AllReduce(small).ok());
    EXPECT_TRUE(collective->AllReduce(large).ok());
    EXPECT_TRUE(collective->Broadcast(small).ok());
    EXPECT_TRUE(small.equal(WholeNumbers(10, 0)));
    EXPECT_TRUE(large.equal(WholeNumbers(kLarge, 0)));
    EXPECT_THAT(*collective->GatherBytes("me"), ElementsAre("me"));
  });
}

TEST(Collective, RefusesTensorsThatItCannotSum) {
  RunRanks(1, [](Collective* collective) {
    const torch::Tensor square = torch::zeros({2, 2});
    EXPECT_EQ(collective->AllReduce(square.t()).code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(collective->Broadcast(square.t()).code(), absl::StatusCode::kInvalidArgument);
    const torch::Tensor elsewhere = torch::zeros({2}, torch::kMeta);
    EXPECT_EQ(collective->AllReduce(elsewhere).code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_EQ(collective->Broadcast(elsewhere).code(), absl::StatusCode::kFailedPrecondition);
  });
}

TEST(Collective, GivesUpOnARankThatDoesNotCome) {
  for (const int64_t n : {int64_t{10}, kLarge}) {
    const Pair pair = ConnectPair(kShort);
    const absl::Status status = pair.zero->AllReduce(torch::zeros({n}));
    EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("all-reduce on rank 0 of 2"));
  }
  const Pair pair = ConnectPair(kShort);
  EXPECT_EQ(pair.one->Broadcast(torch::zeros({10})).code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(pair.one->GatherBytes("x").status().code(), absl::StatusCode::kDeadlineExceeded);
}

TEST(Collective, NoticesARankThatHasGone) {
  for (const int64_t n : {int64_t{10}, kLarge}) {
    Pair pair = ConnectPair(kPatience);
    pair.one.reset();
    const absl::Status status = pair.zero->AllReduce(torch::zeros({n}));
    EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
    EXPECT_EQ(pair.zero->Gather(torch::zeros({1})).status().code(), absl::StatusCode::kUnavailable);
  }
}

TEST(Collective, DoesNotWaitForeverToMeet) {
  const auto store = TcpStore::Serve(0, 2, kPatience);
  ASSERT_TRUE(store.ok()) << store.status();
  const auto zero = Collective::Connect({0, 2, torch::kCPU, kShort}, *store);
  EXPECT_EQ(zero.status().code(), absl::StatusCode::kDeadlineExceeded) << zero.status();
  EXPECT_THAT(std::string(zero.status().message()), HasSubstr("rank 0 of 2"));

  const auto found = TcpStore::Find("127.0.0.1", (*store)->port(), 2, kPatience);
  ASSERT_TRUE(found.ok()) << found.status();
  const auto one = Collective::Connect({1, 3, torch::kCPU, kShort}, *found);  // Rank 2 never comes.
  EXPECT_EQ(one.status().code(), absl::StatusCode::kDeadlineExceeded) << one.status();
}

// It comes first, as the rank that is missing, and knows everything but the secret.
TEST(Collective, AStrangerWithoutTheSecretTakesNobodysPlace) {
  const auto store = TcpStore::Serve(0, 2, kPatience);
  ASSERT_TRUE(store.ok()) << store.status();
  const auto find = [&] { return *TcpStore::Find("127.0.0.1", (*store)->port(), 2, kPatience); };
  const auto connect = [](int rank, absl::Duration timeout, const std::string& secret,
                          std::shared_ptr<TcpStore> with) -> absl::StatusOr<std::unique_ptr<Collective>> {
    Collective::Options options = {rank, 2, torch::kCPU, timeout};
    options.secret = secret;
    return Collective::Connect(options, std::move(with));
  };
  absl::Status zero, one;
  const auto sum_ones = [](absl::StatusOr<std::unique_ptr<Collective>> collective) -> absl::Status {
    if (!collective.ok()) return collective.status();
    const torch::Tensor tensor = torch::ones({kLarge});
    const absl::Status status = (*collective)->AllReduce(tensor);
    EXPECT_TRUE(!status.ok() || tensor.equal(torch::full({kLarge}, 2.0f)));
    return status;
  };
  std::thread of_zero([&] { zero = sum_ones(connect(0, kPatience, "the secret", *store)); });
  for (const char* guess : {"", "the secre", "another"}) {
    const absl::Status status = connect(1, kShort, guess, find()).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded) << status;
  }
  one = sum_ones(connect(1, kPatience, "the secret", find()));
  of_zero.join();
  EXPECT_TRUE(zero.ok()) << zero;
  EXPECT_TRUE(one.ok()) << one;
}

TEST(TcpStore, ServesWhereItIsToldOrOnAllAddresses) {
  const auto store = TcpStore::Serve(0, 2, kPatience, "127.0.0.2");
  ASSERT_TRUE(store.ok()) << store.status();
  EXPECT_TRUE(TcpStore::Find("127.0.0.2", (*store)->port(), 2, kPatience).ok());
#if TORCH_VERSION_MAJOR >= 2
  EXPECT_FALSE(TcpStore::Find("127.0.0.1", (*store)->port(), 2, kShort).ok());
#endif
  const auto elsewhere = TcpStore::Serve(0, 2, kPatience, "192.0.2.1");  // None of this node's.
  ASSERT_TRUE(elsewhere.ok()) << elsewhere.status();
  EXPECT_TRUE(TcpStore::Find("127.0.0.1", (*elsewhere)->port(), 2, kPatience).ok());
}

TEST(TcpStore, CannotServeOnAPortThatIsTaken) {
  const auto first = TcpStore::Serve(0, 2, kPatience);
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_EQ(TcpStore::Serve((*first)->port(), 2, kPatience).status().code(), absl::StatusCode::kUnavailable);
}

TEST(TcpStore, IsNotFoundWhereNobodyServes) {
  int free_port = 0;
  {
    const auto store = TcpStore::Serve(0, 2, kPatience);
    ASSERT_TRUE(store.ok()) << store.status();
    free_port = (*store)->port();
  }
  const auto found = TcpStore::Find("127.0.0.1", free_port, 2, kShort);
  EXPECT_EQ(found.status().code(), absl::StatusCode::kUnavailable) << found.status();
  EXPECT_EQ(TcpStore::Find("", free_port, 2, kShort).status().code(), absl::StatusCode::kUnavailable);
}

// Rank 1 of the test below, in a process of its own: sums once and dies.
TEST(OtherProcess, DISABLED_SumsOnceAndDies) {
  const char* const port = std::getenv(kPortVariable);
  ASSERT_NE(port, nullptr);
  const auto store = TcpStore::Find("localhost", std::atoi(port), 2, kPatience);
  ASSERT_TRUE(store.ok()) << store.status();
  const auto collective = Collective::Connect({1, 2, torch::kCPU, kPatience}, *store);
  ASSERT_TRUE(collective.ok()) << collective.status();
  const torch::Tensor tensor = WholeNumbers(kLarge, 1);
  ASSERT_TRUE((*collective)->AllReduce(tensor).ok());
  std::_Exit(tensor.equal(WholeNumbers(kLarge, 0).mul_(2).add_(1)) ? 3 : 4);
}

TEST(OtherProcess, TakesPartUntilItDies) {
  std::signal(SIGPIPE, SIG_IGN);  // As programs do; Gloo writes to the dead one's socket.
  const auto store = TcpStore::Serve(0, 2, kPatience);
  ASSERT_TRUE(store.ok()) << store.status();
  Subprocess::Options options;
  options.argv = {"/proc/self/exe", "--gtest_filter=OtherProcess.DISABLED_SumsOnceAndDies",
                  "--gtest_also_run_disabled_tests"};
  options.extra_env = {std::string(kPortVariable) + "=" + std::to_string((*store)->port())};
  const auto process = Subprocess::Spawn(options);
  ASSERT_TRUE(process.ok()) << process.status();
  const auto collective = Collective::Connect({0, 2, torch::kCPU, kPatience}, *store);
  ASSERT_TRUE(collective.ok()) << collective.status();
  const torch::Tensor tensor = WholeNumbers(kLarge, 0);
  ASSERT_TRUE((*collective)->AllReduce(tensor).ok());
  EXPECT_TRUE(tensor.equal(WholeNumbers(kLarge, 0).mul_(2).add_(1)));
  EXPECT_EQ((*process)->Wait(kPatience), 3);
  EXPECT_EQ((*collective)->AllReduce(tensor).code(), absl::StatusCode::kUnavailable);
}

}  // namespace
}  // namespace skein
