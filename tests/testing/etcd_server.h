// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "tests/testing/program.h"

namespace skein {

// A real etcd of one server on the loopback, with its data in a folder of its own.
class EtcdServer {
 public:
  // Whether there is an etcd on this machine; tests skip without.
  static bool Installed();

  EtcdServer();

  const std::string& address() const { return address_; }  // host:port
  // For --store.
  std::string Url(const std::string& prefix) const { return "etcd://" + address_ + prefix; }

  void Kill() { process_->Kill(); }
  // Again, with the same address and data.
  void Start();

 private:
  const ScratchFolder folder_;
  const std::string address_, peer_;
  std::unique_ptr<Running> process_;
};

}  // namespace skein
