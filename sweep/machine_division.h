// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "base/process/resource_share.h"
#include "launch/node_bookings.h"
#include "sweep/places.h"

namespace skein {

// Divides this machine among the slots of a sweep, and books what they have together: null without a `share` of each
// training. `asked`: by the base configuration, for the processes of a training. `device`: learner.device; unless it
// names one, slots are spread over all GPUs. `automatic`: takes as many slots as there is room for. InvalidArgument:
// more than there is, or than other runs leave (names them), or what cannot be divided so. Other codes: as
// NodeBooking::Take.
absl::StatusOr<std::unique_ptr<NodeBooking>> DivideMachine(const std::string& sweep, const ResourceShare& share,
                                                           const NodeResources& asked, const std::string& device,
                                                           bool automatic, Places* places);

// "2 slots of 0.5 cores, 512 MiB, 0.25 GPUs".
std::string DescribeSlots(const Places& places, const ResourceShare& share);

}  // namespace skein
