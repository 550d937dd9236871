// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "env/env.h"
#include "env/external/external_options.h"
#include "env/external/world.h"

// Makes environments by ids that IsExternalId, and finds their specs.
namespace skein {

// `count` environments. Those in a server step together (Env::batch). REQUIRES: count >= 1.
// InvalidArgument: no such id. FailedPrecondition: the environment cannot be made, its spec is refused, or it is not
// options.spec. NotFound: no such program or file. Unavailable: its server has ended or cannot be reached.
// DeadlineExceeded: it has not answered in time. Cancelled: options.given_up.
absl::StatusOr<std::vector<std::unique_ptr<Env>>> MakeExternalEnvs(const std::string& id, int count,
                                                                   const ExternalOptions& options);

// options.spec, or else what the environment says of itself: it is made for that, once in a process. Thread-safe.
// Errors as MakeExternalEnvs.
absl::StatusOr<EnvSpec> FindExternalSpec(const std::string& id, const ExternalOptions& options);

// Checks the types of a Python environment's numbers, which only Python can see, by the package skein_env: a JSON
// object with verdict (ok, fails, not_applicable), found and remedy. FailedPrecondition: it is in no Python of this
// host. NotFound: no such Python. Unavailable: it has ended without a word. DeadlineExceeded: options.start_timeout.
// Cancelled: options.given_up.
absl::StatusOr<std::string> DescribeDtypes(const std::string& id, const ExternalOptions& options);

// `count` environments in a server of this host, or of a library in this process; takes WorldRequest::kBare too.
// FailedPrecondition: another host's (grpc://). Other errors as MakeExternalEnvs.
absl::StatusOr<std::unique_ptr<World>> OpenLocalWorld(const std::string& id, size_t count,
                                                      const ExternalOptions& options);

}  // namespace skein
