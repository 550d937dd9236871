// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "skein/v1/coordinator_service.pb.h"

namespace skein {

// Bounds of the data that members send, since the coordinator keeps them, shows them to all clients and stores them
// for a successor.
// With the maximum number of members, each at its bounds, a StatusResponse is smaller than kMaxMessageBytes.
inline constexpr size_t kMostActors = 10'000;
inline constexpr uint32_t kMostRanks = 4'096;       // As --learners.
inline constexpr uint32_t kMostRunners = 4'096;     // Of an actor; as --runners.
inline constexpr size_t kMostIdBytes = 128;         // A member's or a run's.
inline constexpr size_t kMostHostBytes = 255;       // DNS has 253.
inline constexpr size_t kMostAddressBytes = 300;    // Such a host and a port.
inline constexpr size_t kMostErrorBytes = 1'024;    // A longer one is cut.
inline constexpr int kMostWarnings = 16;            // Further ones are left out.
inline constexpr size_t kMostPathBytes = 4'096;     // A longer one is cut.
inline constexpr size_t kMostNumbers = 64;          // Update stats, episode or callback metrics; more are left out,
inline constexpr size_t kMostNumberNameBytes = 64;  // as are those with longer names.
inline constexpr double kMostReported = 1e15;       // Seconds, or steps per second; above any real value.

// InvalidArgument: a text or a number above its bound; names the field, what it is and the bound.
absl::Status CheckBounds(const v1::JoinRequest& request);
absl::Status CheckBounds(const v1::HeartbeatRequest& request);
absl::Status CheckBounds(const v1::LeaveRequest& request);
absl::Status CheckBounds(const v1::BarrierRequest& request);  // Barriers checks name, timeout and payload.
absl::Status CheckBounds(const v1::DrainRequest& request);
absl::Status CheckBounds(const v1::GetStatusRequest& request);

// Whether seconds, a rate or a ratio is a possible measurement: 0 to kMostReported, not NaN.
bool IsSaneNumber(double number);

// The part of a report that is kept; a report is never refused. Numbers that are not sane become 0, or NaN or -1 where
// these stand for "unknown". Stages that the role does not have and unknown fields are left out. Texts are cut.
v1::MemberReport Bounded(const v1::MemberReport& report, v1::Role role);
v1::RunProgress Bounded(const v1::RunProgress& progress);

}  // namespace skein
