// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <tuple>

namespace skein {

// Identifies one connection of an actor to a learner. The generation is the one that the member joined under, plus one
// for each move to another learner. Connections with different certificates are different connections.
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
