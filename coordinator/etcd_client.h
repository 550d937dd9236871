// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "etcd/etcd.grpc.pb.h"

// A client for etcd: addresses, keys, leases.
namespace skein {

// An address "etcd://host:port,host:port/prefix": the servers, and the prefix of all keys. "etcds://" is the same over
// TLS, with this process's certificate and CA.
struct EtcdAddress {
  std::vector<std::string> endpoints;
  std::string prefix;  // "/skein/run": begins with a slash, ends without.
  bool tls = false;
};
bool IsEtcdAddress(const std::string& url);  // By its scheme.
// InvalidArgument: the message says what is wrong.
absl::StatusOr<EtcdAddress> ParseEtcdAddress(const std::string& url);

// The end of the range of keys that begin with `prefix`. REQUIRES: its last byte is not 0xff.
std::string EndOfPrefix(std::string prefix);

// The etcd calls that Skein needs, each with a deadline. If an endpoint does not answer, the next one is tried.
// Errors of all calls: Unavailable: no endpoint answers, or etcd has no leader; others as etcd returns them.
// Thread-safe.
class EtcdClient {
 public:
  // Never sends the run's token. REQUIRES for `tls`: this process has a certificate; without one no server answers.
  explicit EtcdClient(const EtcdAddress& address, absl::Duration timeout = absl::Seconds(2));

  // The keys that begin with `prefix`, in order.
  absl::StatusOr<etcdserverpb::RangeResponse> ReadPrefix(const std::string& prefix);
  absl::StatusOr<etcdserverpb::RangeResponse> ReadKey(const std::string& key);
  absl::StatusOr<etcdserverpb::TxnResponse> Transact(const etcdserverpb::TxnRequest& request);

  // Grants a lease of `seconds`, or longer if etcd decides so.
  absl::StatusOr<etcdserverpb::LeaseGrantResponse> Grant(int64_t seconds);
  // Renews a lease; returns the seconds it has left. NotFound: it has ended.
  absl::StatusOr<int64_t> KeepAlive(int64_t lease);
  absl::Status Revoke(int64_t lease);

 private:
  struct Endpoint {
    std::unique_ptr<etcdserverpb::KV::Stub> kv;
    std::unique_ptr<etcdserverpb::Lease::Stub> lease;
  };
  // Runs `call` with the endpoint that answered last, then with the others.
  template <typename Call>
  absl::Status Run(Call call) ABSL_LOCKS_EXCLUDED(mu_);

  const absl::Duration timeout_;
  std::vector<Endpoint> endpoints_;
  absl::Mutex mu_;
  size_t current_ ABSL_GUARDED_BY(mu_) = 0;
};

}  // namespace skein
