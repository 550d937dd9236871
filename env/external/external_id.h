// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace skein {

// The id of an environment of one's own, taken apart.
//   python:package.module:function[?name=value&...]   exec:./program [argument ...]
//   grpc://host:port[/name]   plugin:./library.so
struct ExternalId {
  enum class Kind { kPython, kExec, kGrpc, kPlugin };
  Kind kind = Kind::kPython;
  std::string target;  // Without the prefix: "package.module:function?name=value", "./program argument", "host:port",
                       // "./library.so".
  std::string name;    // What a gRPC server is asked for; may be empty.
};

// Whether the id begins as one of them.
bool IsExternalId(absl::string_view id);

// InvalidArgument: it begins as one of them and goes on wrong.
absl::StatusOr<ExternalId> ParseExternalId(const std::string& id);

}  // namespace skein
