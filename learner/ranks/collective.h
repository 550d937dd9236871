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

// Collective operations of the ranks of one learner.   Collective::Connect -> AllReduce, Broadcast, Gather
// Implemented with c10d's process groups: Gloo for tensors on the CPU, NCCL for tensors on a GPU. On the CPU, small
// sums, bfloat16 and gathers use a PeerMesh, because Gloo is slow or unfit for them. Only collective.cc uses c10d.
namespace skein {

class TcpStore;  // Where ranks find each other.

// Not thread-safe. Every rank makes the same calls in the same order with tensors of the same sizes and types. After an
// error (DeadlineExceeded: the deadline passed; Unavailable: another rank is gone; InvalidArgument: not contiguous;
// FailedPrecondition: the tensor is on a device that the group does not serve) the group is unusable: end the process
// with exit code 75, so that its successor can join a new group.
class Collective {
 public:
  struct Options {
    int rank = 0;
    int size = 1;
    torch::Device device = torch::kCPU;          // A GPU: NCCL for tensors on it, Gloo for tensors on the CPU.
    absl::Duration timeout = absl::Seconds(60);  // For Connect, and for each collective.
    // Called with an operation's name if it has not ended kGrace after its deadline, on the watchdog's thread.
    // The default ends the process with exit code 75.
    std::function<void(const std::string& what)> on_stuck = nullptr;
    // The same on all ranks. Without it the ranks' entries in the store can be neither found nor changed, unless
    // LibTorch lists the store's keys on request (2.x).
    std::string secret = {};
  };
  static constexpr absl::Duration kGrace = absl::Seconds(3);
  // Waits for all ranks. `store`: from TcpStore, with the same address on every rank. Each group needs a new store.
  static absl::StatusOr<std::unique_ptr<Collective>> Connect(const Options& options, std::shared_ptr<TcpStore> store);
  ~Collective();

  int rank() const { return options().rank; }
  int size() const { return options().size; }
  const Options& options() const;
  // Of this node, numeric: where the other ranks reach this one. A group of one has a loopback address.
  const std::string& address() const;
  // 128 random bits, for Options::secret.
  static std::string NewSecret();

  // A collective under way. Its tensor must neither be accessed nor destroyed before Wait.
  class Work {
   public:
    virtual ~Work() = default;
    // Call once. CPU: waits until the result is complete. GPU: waits until the current stream may use the result.
    virtual absl::Status Wait() = 0;
  };
  // Sums contiguous `tensor` over the ranks, in place. Every rank gets the same bits. bfloat16 on the CPU is added in
  // float32. Sums of tensors on a GPU, and of large ones on the CPU that are not bfloat16, proceed in the background
  // until Wait.
  std::unique_ptr<Work> StartAllReduce(torch::Tensor tensor);
  absl::Status AllReduce(torch::Tensor tensor);
  // Copies rank 0's contents of contiguous `tensor` to all ranks, in place.
  absl::Status Broadcast(torch::Tensor tensor);
  // Gathers `tensor` [n], of the same size on every rank, into [size, n] by rank, on every rank. CPU only.
  absl::StatusOr<torch::Tensor> Gather(const torch::Tensor& tensor);
  // Gathers bytes of any length from every rank, by rank, on every rank.
  absl::StatusOr<std::vector<std::string>> GatherBytes(const std::string& mine);

  // Sent by this rank so far. Sums by Gloo and NCCL are estimated as a ring's: 2 (size-1)/size of the tensor.
  int64_t bytes_sent() const;

 private:
  struct Impl;
  explicit Collective(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// The key-value store in which ranks find each other, served by rank 0.
class TcpStore {
 public:
  // Rank 0: serves at `host`, the address under which other ranks reach this node, and `port`, 0 = any. LibTorch 1.13
  // always serves on all addresses; 2.x does so only if `host` is not an address of this node, for instance behind NAT.
  // Unavailable: the port is taken.
  static absl::StatusOr<std::shared_ptr<TcpStore>> Serve(int port, int ranks, absl::Duration timeout,
                                                         const std::string& host = "127.0.0.1");
  // Other ranks. Unavailable: the store was not reached within the timeout.
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
