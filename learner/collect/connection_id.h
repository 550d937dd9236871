// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <tuple>

namespace skein {

// One connection of an actor to a learner: its member id, the generation it joined under, counted on by one at each
// move to another learner, and the certificate it came with: a connection with another certificate is another one.
struct ConnectionId {
  std::string actor_id;
  uint64_t generation = 0;
  std::string certificate = {};  // As CertificateDigest(); empty without TLS.
  bool operator<(const ConnectionId& other) const { return Fields() < other.Fields(); }
  bool operator==(const ConnectionId& other) const { return Fields() == other.Fields(); }

 private:
  std::tuple<const std::string&, uint64_t, const std::string&> Fields() const {
    return {actor_id, generation, certificate};
  }
};

}  // namespace skein
