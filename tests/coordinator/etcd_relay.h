// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "grpcpp/server.h"

namespace skein {

// Passes calls on to a real etcd, until it has passed on as many transactions as a test lets it: later ones never reach
// etcd and are UNAVAILABLE. So a writer through it is cut off between two of them. At a free port of 127.0.0.1
// until it is destroyed. Thread-safe.
class EtcdRelay {
 public:
  // The process ends if there is no port.
  explicit EtcdRelay(const std::string& etcd);
  ~EtcdRelay();

  const std::string& address() const { return address_; }
  // From now on.
  void CutAfter(int transactions);
  // Whether a transaction has been refused.
  bool has_cut() const;

 private:
  class Kv;
  class Lease;
  const std::unique_ptr<Kv> kv_;
  const std::unique_ptr<Lease> lease_;
  std::unique_ptr<grpc::Server> server_;
  std::string address_;
};

}  // namespace skein
