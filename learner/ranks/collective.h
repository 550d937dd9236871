// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

// What the ranks of one learner compute together.   Collective::Connect -> AllReduce, Broadcast, Gather
// Over c10d's process groups: Gloo for tensors on the CPU, NCCL for those on a GPU. Small sums, bfloat16 and gathers on
// the CPU, for which Gloo is slow or unfit, over a PeerMesh. collective.cc alone knows c10d.
namespace skein {

class TcpStore;  // Where ranks find each other.

// Not thread-safe. Every rank makes the same calls in the same order with tensors of the same sizes and types. An error
// (DeadlineExceeded: the deadline passed; Unavailable: another rank is gone; InvalidArgument: not contiguous;
// FailedPrecondition: a tensor where the group is not) leaves the group useless: end the process with exit code 75, so
// that its successor can join a new one.
class Collective {
 public:
  struct Options {
    int rank = 0;
    int size = 1;
    torch::Device device = torch::kCPU;          // A GPU: tensors on it go through NCCL; others through Gloo as well.
    absl::Duration timeout = absl::Seconds(60);  // Of meeting the others, and of each collective.
    // An operation that does not even end at its deadline: called kGrace later, on a thread of its own, with its name.
    // The default ends the process with exit code 75.
    std::function<void(const std::string& what)> on_stuck = nullptr;
    // The same on all ranks. Who does not know it neither finds nor changes what they tell each other in the store,
    // unless LibTorch lists its names to whoever asks (2.x).
    std::string secret = {};
  };
  static constexpr absl::Duration kGrace = absl::Seconds(3);
  // Waits for all ranks. `store` as from TcpStore, of the same address on every rank and new: a store serves one group.
  static absl::StatusOr<std::unique_ptr<Collective>> Connect(const Options& options, std::shared_ptr<TcpStore> store);
  ~Collective();

  int rank() const;
  int size() const;

  // A collective under way. Its tensor must neither be touched nor die before Wait.
  class Work {
   public:
    virtual ~Work() = default;
    // Once. On a GPU: until the current stream may use the result; otherwise until it is there.
    virtual absl::Status Wait() = 0;
  };
  // Sums contiguous `tensor` over the ranks, in place. Every rank gets the same bits. bfloat16 on the CPU is added in
  // float32. Large tensors on the CPU and those on a GPU are summed while the caller does other things, unless they are
  // bfloat16 on the CPU.
  std::unique_ptr<Work> StartAllReduce(torch::Tensor tensor);
  absl::Status AllReduce(torch::Tensor tensor);
  // Rank 0's contents to all, in place. Contiguous.
  absl::Status Broadcast(torch::Tensor tensor);
  // tensor [n] of every rank, of equal size, by rank: [size, n] on every rank. On the CPU only.
  absl::StatusOr<torch::Tensor> Gather(const torch::Tensor& tensor);
  // Bytes of any length from every rank, by rank, on every rank.
  absl::StatusOr<std::vector<std::string>> GatherBytes(const std::string& mine);

  // So far by this rank. What Gloo and NCCL sent for sums is reckoned as a ring's: 2 (size-1)/size of the tensor.
  int64_t bytes_sent() const;

 private:
  struct Impl;
  explicit Collective(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// The table in which ranks find each other, served by rank 0.
class TcpStore {
 public:
  // Rank 0: serves at `host`, as the others name this node, and `port`, 0 = any. LibTorch 1.13 serves on all addresses
  // whatever `host` is, and 2.x does if it is none of this node's, behind a translation of addresses for instance.
  // Unavailable: the port is taken.
  static absl::StatusOr<std::shared_ptr<TcpStore>> Serve(int port, int ranks, absl::Duration timeout,
                                                         const std::string& host = "127.0.0.1");
  // Others. Unavailable: nobody there within the timeout.
  static absl::StatusOr<std::shared_ptr<TcpStore>> Find(const std::string& host, int port, int ranks,
                                                        absl::Duration timeout);
  ~TcpStore();
  int port() const;

 private:
  friend class Collective;
  struct Impl;
  explicit TcpStore(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace skein
