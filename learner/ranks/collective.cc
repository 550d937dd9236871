// SPDX-License-Identifier: Apache-2.0
#include "learner/ranks/collective.h"

#include <torch/types.h>
#include <torch/version.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <random>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "learner/ranks/attempt.h"
#include "learner/ranks/direct_sum.h"
#include "learner/ranks/listener.h"
#include "learner/ranks/peer_mesh.h"
#include "learner/ranks/route.h"
#include "learner/ranks/watchdog.h"
#include "spdlog/spdlog.h"

// Debian's LibTorch has Gloo and no NCCL. That of the Python wheels has both, but not the headers that c10d's of Gloo
// include: cmake declares the little that they need (docs/decisions/core-only-builds.md), so from ProcessGroupGloo take
// only its constructor, options and collectives. Without Gloo large tensors on the CPU take the small ones' way.
#if defined(USE_C10D_GLOO) && __has_include(<gloo/context.h>)
#define SKEIN_HAS_GLOO 1
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#endif
#if defined(USE_C10D_NCCL) && __has_include(<nccl.h>)
#define SKEIN_HAS_NCCL 1
#include <torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp>
#endif
#if TORCH_VERSION_MAJOR >= 2
#include <torch/csrc/distributed/c10d/Backend.hpp>
#else
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#endif

namespace skein {
namespace {

// In LibTorch 1.13 backends are process groups; in 2.x a process group contains backends. They are used directly.
#if TORCH_VERSION_MAJOR >= 2
using Backend = c10d::Backend;
#else
using Backend = c10d::ProcessGroup;
#endif
using BackendHandle = decltype(std::declval<Backend>().barrier());

// Torch reads these when it makes its first group. Set before any thread starts; values set by the user are kept.
[[maybe_unused]] const bool environment_is_set = [] {
  // Wait() reports a lost rank, instead of a thread ending the process.
  setenv("TORCH_NCCL_BLOCKING_WAIT", "1", 0);
  // No record of collectives for debuggers: LibTorch 2.11 writes it without a lock from the threads of several groups.
  setenv("TORCH_FR_BUFFER_SIZE", "0", 0);
  return true;
}();

constexpr char kServingAddress[] = "serving_address";  // Rank 0's, as the others reach it.

std::chrono::milliseconds Milliseconds(absl::Duration duration) {
  return std::chrono::milliseconds(std::max<int64_t>(1, absl::ToInt64Milliseconds(duration)));
}

std::string RankOf(int rank, int size) { return absl::StrCat("rank ", rank, " of ", size); }

absl::StatusOr<std::unique_ptr<PeerMesh>> ConnectMesh(const Collective::Options& options, const std::string& address,
                                                      const Attempt& attempt, c10d::Store* store) {
  PeerMesh::Table table;
  table.set = [&](const std::string& key, const std::string& value) {
    return attempt.Guarded([&] {
      store->set(key, std::vector<uint8_t>(value.begin(), value.end()));
      return absl::OkStatus();
    });
  };
  table.get = [&](const std::string& key) {
    return attempt.Guarded([&]() -> absl::StatusOr<std::string> {
      const std::vector<uint8_t> value = store->get(key);
      return std::string(value.begin(), value.end());
    });
  };
  return PeerMesh::Connect(options.rank, options.size, address, table, options.timeout);
}

absl::string_view Bytes(const torch::Tensor& tensor) {
  return {static_cast<const char*>(tensor.data_ptr()), tensor.nbytes()};
}

absl::Status NotContiguous(absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat(what, " of a tensor that is not contiguous"));
}

class DoneWork : public Collective::Work {
 public:
  explicit DoneWork(absl::Status status) : status_(std::move(status)) {}
  absl::Status Wait() override { return status_; }

 private:
  const absl::Status status_;
};

class BackendWork : public Collective::Work {
 public:
  BackendWork(Attempt attempt, BackendHandle handle) : attempt_(std::move(attempt)), handle_(std::move(handle)) {}

  absl::Status Wait() override {
    const Watchdog::Watching watching = attempt_.Watch();
    try {
      handle_->wait();
    } catch (const std::exception& error) {
      return attempt_.Failed(error);
    }
    return absl::OkStatus();
  }

 private:
  const Attempt attempt_;
  const BackendHandle handle_;
};

// The exchange of a DirectSum, timed.
class DirectWork : public Collective::Work {
 public:
  DirectWork(Attempt attempt, PeerMesh* mesh, torch::Tensor tensor)
      : attempt_(std::move(attempt)), sum_(mesh, std::move(tensor)) {}

  absl::Status Wait() override {
    const Watchdog::Watching watching = attempt_.Watch();
    const absl::Status status = sum_.Wait(attempt_.deadline());
    return status.ok() ? status : attempt_.Failed(status);
  }

 private:
  const Attempt attempt_;
  DirectSum sum_;
};

}  // namespace

struct TcpStore::Impl {
  c10::intrusive_ptr<c10d::TCPStore> store;
  // By which this rank reaches rank 0, and rank 0's as this one reaches it. Empty: it is rank 0.
  std::string local_address, serving_address;
};

TcpStore::TcpStore(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
TcpStore::~TcpStore() = default;
int TcpStore::port() const { return impl_->store->getPort(); }

absl::StatusOr<std::shared_ptr<TcpStore>> TcpStore::Serve(int port, int ranks, absl::Duration timeout,
                                                          [[maybe_unused]] const std::string& host) {
  c10d::TCPStoreOptions options;
  options.port = static_cast<uint16_t>(port);
  options.isServer = true;
  options.numWorkers = static_cast<size_t>(ranks);
  options.waitWorkers = false;  // They learn of the port later.
  options.timeout = Milliseconds(timeout);
  std::string own_host = "127.0.0.1";
#if TORCH_VERSION_MAJOR >= 2
  const auto listener = ListenOn(host, port, ranks);
  if (listener.ok()) {
    options.masterListenFd = listener->descriptor;  // c10d closes it.
    options.port = static_cast<uint16_t>(listener->port);
    own_host = host;
  } else {
    spdlog::warn("the ranks' store listens on all addresses: {}", std::string(listener.status().message()));
  }
#endif
  try {
    auto impl = std::make_unique<Impl>();
    impl->store = c10::make_intrusive<c10d::TCPStore>(own_host, options);
    return std::shared_ptr<TcpStore>(new TcpStore(std::move(impl)));
  } catch (const std::exception& error) {
    return absl::UnavailableError(absl::StrCat("rank 0 of ", ranks, ": cannot serve the ranks' store on port ", port,
                                               "; choose another port, or 0 for any (", Reason(error), ")"));
  }
}

absl::StatusOr<std::shared_ptr<TcpStore>> TcpStore::Find(const std::string& host, int port, int ranks,
                                                         absl::Duration timeout) {
  c10d::TCPStoreOptions options;
  options.port = static_cast<uint16_t>(port);
  options.numWorkers = static_cast<size_t>(ranks);
  options.waitWorkers = false;
  options.timeout = Milliseconds(timeout);
  const std::string failure = absl::StrCat("no store of rank 0 at ", host, ":", port);
  const std::optional<Route> route = FindRoute(host, port);
  if (!route) return absl::UnavailableError(absl::StrCat(failure, ": no such host, or no way to it from here"));
  try {
    auto impl = std::make_unique<Impl>();
    impl->local_address = route->local;
    impl->serving_address = route->remote;
    impl->store = c10::make_intrusive<c10d::TCPStore>(host, options);
    return std::shared_ptr<TcpStore>(new TcpStore(std::move(impl)));
  } catch (const std::exception& error) {
    return absl::UnavailableError(absl::StrCat(failure, " within ", absl::FormatDuration(timeout),
                                               "; is the learner of rank 0 running and its port open to this node? (",
                                               Reason(error), ")"));
  }
}

struct Collective::Impl {
  Options options;
  std::shared_ptr<TcpStore> store;  // Outlives the groups, which look into it.
  std::string address;              // Of this node.
  std::unique_ptr<PeerMesh> mesh;
  c10::intrusive_ptr<Backend> gloo, nccl;
  int64_t ring_bytes = 0;
  std::unique_ptr<Watchdog> watchdog;

  Attempt Start(absl::string_view what) const {
    return Attempt(absl::StrCat(what, " on ", RankOf(options.rank, options.size)), options.timeout, watchdog.get());
  }
  // Until the deadline of `attempt`.
  absl::Status WaitFor(const PeerMesh::Exchange& exchange, const Attempt& attempt) const {
    const Watchdog::Watching watching = attempt.Watch();
    const absl::Status status = mesh->Wait(exchange, attempt.deadline());
    return status.ok() ? status : attempt.Failed(status);
  }

  // Of a tensor that no calling thread can exchange: on a GPU, or large.
  template <typename Operation>
  std::unique_ptr<Work> Launch(absl::string_view what, const torch::Tensor& tensor, Operation operation) const {
    const Attempt attempt = Start(what);
    Backend* const backend = tensor.is_cpu() ? gloo.get() : nccl.get();
    if (backend == nullptr) {
      return std::make_unique<DoneWork>(absl::FailedPreconditionError(
          absl::StrCat(what, " of a tensor on ", tensor.device().str(), " by a group on ", options.device.str())));
    }
    try {
      return std::make_unique<BackendWork>(attempt, operation(*backend));
    } catch (const std::exception& error) {
      return std::make_unique<DoneWork>(attempt.Failed(error));
    }
  }
};

Collective::Collective(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Collective::~Collective() = default;
const Collective::Options& Collective::options() const { return impl_->options; }
const std::string& Collective::address() const { return impl_->address; }

std::string Collective::NewSecret() {
  std::random_device entropy;
  return absl::StrFormat("%08x%08x%08x%08x", entropy(), entropy(), entropy(), entropy());
}

absl::StatusOr<std::unique_ptr<Collective>> Collective::Connect(const Options& options,
                                                                std::shared_ptr<TcpStore> store) {
  auto impl = std::make_unique<Impl>();
  impl->options = options;
  impl->store = std::move(store);
  impl->watchdog = std::make_unique<Watchdog>(options.timeout + kGrace, options.on_stuck);
  const Attempt attempt = impl->Start("meeting the other ranks");
  const Watchdog::Watching watching = attempt.Watch();
  // The ranks' entries have the secret as a prefix. c10d has no other way to authenticate a client.
  const auto table = c10::make_intrusive<c10d::PrefixStore>("skein" + options.secret, impl->store->impl_->store);
  try {
    table->setTimeout(Milliseconds(options.timeout));
    // Listen on the address from which this rank reaches the store.
    std::string address = impl->store->impl_->local_address;
    if (const std::string& remote = impl->store->impl_->serving_address; !remote.empty()) {
      table->set(kServingAddress, std::vector<uint8_t>(remote.begin(), remote.end()));
    }
    if (address.empty()) {
      const std::vector<uint8_t> told = options.size > 1 ? table->get(kServingAddress) : std::vector<uint8_t>();
      address = told.empty() ? "127.0.0.1" : std::string(told.begin(), told.end());
    }
    impl->address = address;
    auto mesh = ConnectMesh(options, address, attempt, table.get());
    if (!mesh.ok()) return attempt.Failed(mesh.status());
    impl->mesh = *std::move(mesh);
#ifdef SKEIN_HAS_GLOO
    const auto gloo = c10d::ProcessGroupGloo::Options::create(Milliseconds(options.timeout));
    gloo->devices.push_back(c10d::ProcessGroupGloo::createDeviceForHostname(address));
    impl->gloo = c10::make_intrusive<c10d::ProcessGroupGloo>(c10::make_intrusive<c10d::PrefixStore>("gloo", table),
                                                             options.rank, options.size, gloo);
#endif
    if (options.device.is_cuda()) {
#ifdef SKEIN_HAS_NCCL
      const auto nccl = c10d::ProcessGroupNCCL::Options::create();
      nccl->timeout = Milliseconds(options.timeout);
      impl->nccl = c10::make_intrusive<c10d::ProcessGroupNCCL>(c10::make_intrusive<c10d::PrefixStore>("nccl", table),
                                                               options.rank, options.size, nccl);
#else
      return absl::FailedPreconditionError(
          absl::StrCat(RankOf(options.rank, options.size), ": this build has no NCCL for ", options.device.str()));
#endif
    }
  } catch (const std::exception& error) {
    return attempt.Failed(error);
  }
  return std::unique_ptr<Collective>(new Collective(std::move(impl)));
}

std::unique_ptr<Collective::Work> Collective::StartAllReduce(torch::Tensor tensor) {
  tensor = tensor.detach();
  if (!tensor.is_contiguous()) return std::make_unique<DoneWork>(NotContiguous("all-reduce"));
  const bool direct = impl_->gloo == nullptr || tensor.scalar_type() == torch::kBFloat16 ||
                      static_cast<int64_t>(tensor.nbytes()) <= kDirectBytes;
  if (tensor.is_cpu() && direct) {
    return std::make_unique<DirectWork>(impl_->Start("all-reduce"), impl_->mesh.get(), std::move(tensor));
  }
  // What a ring sends: everything but its own piece, twice.
  impl_->ring_bytes += 2 * static_cast<int64_t>(tensor.nbytes()) * (size() - 1) / size();
  return impl_->Launch("all-reduce", tensor, [&](Backend& backend) {
    std::vector<torch::Tensor> tensors = {tensor};
    return backend.allreduce(tensors);
  });
}

int64_t Collective::bytes_sent() const { return impl_->mesh->bytes_sent() + impl_->ring_bytes; }

absl::Status Collective::AllReduce(torch::Tensor tensor) { return StartAllReduce(std::move(tensor))->Wait(); }

absl::Status Collective::Broadcast(torch::Tensor tensor) {
  tensor = tensor.detach();
  if (!tensor.is_contiguous()) return NotContiguous("broadcast");
  if (!tensor.is_cpu()) {
    return impl_
        ->Launch("broadcast", tensor,
                 [&](Backend& backend) {
                   std::vector<torch::Tensor> tensors = {tensor};
                   return backend.broadcast(tensors);
                 })
        ->Wait();
  }
  const Attempt attempt = impl_->Start("broadcast");
  const auto ranks = static_cast<size_t>(size());
  std::vector<size_t> expected(ranks, 0);
  if (rank() != 0) expected[0] = tensor.nbytes();
  const absl::string_view mine = rank() == 0 ? Bytes(tensor) : absl::string_view();
  const auto exchange = impl_->mesh->StartEach(std::vector<absl::string_view>(ranks, mine), expected);
  if (const absl::Status status = impl_->WaitFor(*exchange, attempt); !status.ok()) return status;
  if (rank() != 0) std::memcpy(tensor.data_ptr(), exchange->messages[0].data(), tensor.nbytes());
  return absl::OkStatus();
}

absl::StatusOr<torch::Tensor> Collective::Gather(const torch::Tensor& tensor) {
  const Attempt attempt = impl_->Start("gather");
  const torch::Tensor mine = tensor.detach().contiguous();
  const auto exchange = impl_->mesh->Start(Bytes(mine));
  if (const absl::Status status = impl_->WaitFor(*exchange, attempt); !status.ok()) return status;
  const torch::Tensor all = torch::empty({size(), mine.numel()}, mine.options());
  char* row = static_cast<char*>(all.data_ptr());
  for (const std::string& message : exchange->messages) {
    std::memcpy(row, message.data(), message.size());
    row += message.size();
  }
  return all;
}

absl::StatusOr<std::vector<std::string>> Collective::GatherBytes(const std::string& mine) {
  const auto lengths = Gather(torch::tensor({static_cast<int64_t>(mine.size())}, torch::kInt64));
  if (!lengths.ok()) return lengths.status();
  std::string padded = mine;
  padded.resize(static_cast<size_t>(lengths->max().item<int64_t>()));
  const Attempt attempt = impl_->Start("gather of bytes");
  const auto exchange = impl_->mesh->Start(padded);
  if (const absl::Status status = impl_->WaitFor(*exchange, attempt); !status.ok()) return status;
  std::vector<std::string> bytes = exchange->messages;
  for (int64_t rank = 0; rank < size(); ++rank) {
    bytes[static_cast<size_t>(rank)].resize(static_cast<size_t>((*lengths)[rank].item<int64_t>()));
  }
  return bytes;
}

}  // namespace skein
