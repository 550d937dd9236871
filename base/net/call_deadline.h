// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>

#include "absl/time/time.h"
#include "grpc/support/time.h"
#include "grpcpp/client_context.h"

namespace skein {

// Sets a call's deadline to `timeout` from now on the steady clock; gRPC's usual deadlines are times of day.
inline void SetTimeout(grpc::ClientContext* context, absl::Duration timeout) {
  const int64_t nanoseconds =
      absl::ToInt64Nanoseconds(std::clamp(timeout, absl::ZeroDuration(), absl::Hours(24 * 365)));
  context->set_deadline(gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC), gpr_time_from_nanos(nanoseconds, GPR_TIMESPAN)));
}

}  // namespace skein
