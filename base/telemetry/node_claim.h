// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace skein {

// Chooses one process among those of a node that use the same name, for work that one of them is to do.
// A claim is an abstract Unix socket address: nothing is on disk, and the kernel frees it when the process ends,
// however it ends. It holds within one network namespace, so not across containers. Not thread-safe.
class NodeClaim {
 public:
  // Claims nothing yet. `name`: of any length.
  explicit NodeClaim(const std::string& name);
  NodeClaim(const NodeClaim&) = delete;
  NodeClaim& operator=(const NodeClaim&) = delete;
  ~NodeClaim();  // Frees the claim.

  // Whether this object has the claim, from now or from an earlier call. False: another one has it, or there are no
  // sockets; call again later.
  bool Take();

 private:
  const std::string address_;
  int socket_ = -1;
};

}  // namespace skein
