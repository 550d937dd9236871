// SPDX-License-Identifier: Apache-2.0
// In place of remote_world.cc in a build without gRPC.
#include "env/external/remote_world.h"

namespace skein {

absl::StatusOr<std::unique_ptr<World>> OpenRemoteWorld(const RemoteWorldOptions&) {
  return absl::FailedPreconditionError("this was built without gRPC (SKEIN_CORE_ONLY)");
}

}  // namespace skein
