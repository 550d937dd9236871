// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "env/env.h"
#include "env/external/world_memory.h"
#include "skein/env/v1/environment.pb.h"

// A world's columns as messages of skein.env.v1 carry them, for `count` environments of `spec`.
//   client: columns -> Step, Reset;  server: TakeRequest -> columns -> PutReply;  client: TakeReply -> columns
namespace skein {

// Takes a Step or Reset into the columns that it has; which one it was.
// InvalidArgument: it is neither, or names the field that has another size than the spec says, an action beyond its
// bounds, or another number that the protocol does not allow. The columns are of no use then.
absl::StatusOr<WorldRequest> TakeRequest(const env::v1::ClientMessage& message, const EnvSpec& spec, size_t count,
                                         const WorldColumns& columns);

// Writes all columns of an answer into `reply`, whose memory is used again; neither its sequence nor its failures.
void PutReply(const WorldColumns& columns, const EnvSpec& spec, size_t count, env::v1::Reply* reply);

// Bytes of the columns that PutReply writes.
size_t ReplyBytes(const EnvSpec& spec, size_t count);

// Takes a reply into columns: all rows, or after a Reset those whose mask is 1. DataLoss names the field that has
// another size than the spec says.
absl::Status TakeReply(const env::v1::Reply& reply, const EnvSpec& spec, size_t count, WorldRequest request,
                       const WorldColumns& columns);

}  // namespace skein
