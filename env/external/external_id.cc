// SPDX-License-Identifier: Apache-2.0
#include "env/external/external_id.h"

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/net/host_port.h"
#include "base/process/message_text.h"

namespace skein {
namespace {

constexpr absl::string_view kPython = "python:", kExec = "exec:", kGrpc = "grpc://", kPlugin = "plugin:";

absl::Status Wrong(const std::string& id, absl::string_view want) {
  return absl::InvalidArgumentError(absl::StrCat("env.id ", Quoted(id), ": want ", want));
}

bool IsDottedName(absl::string_view name) {
  if (name.empty()) return false;
  bool begins = true;
  for (const char c : name) {
    if (c == '.' ? begins : !(c == '_' || (begins ? absl::ascii_isalpha(c) : absl::ascii_isalnum(c)))) return false;
    begins = c == '.';
  }
  return !begins;
}

}  // namespace

bool IsExternalId(absl::string_view id) {
  for (const absl::string_view prefix : {kPython, kExec, kGrpc, kPlugin}) {
    if (absl::StartsWith(id, prefix)) return true;
  }
  return false;
}

absl::StatusOr<ExternalId> ParseExternalId(const std::string& id) {
  absl::string_view rest = id;
  ExternalId parsed;
  if (absl::ConsumePrefix(&rest, kPython)) {
    const absl::string_view path = rest.substr(0, rest.find('?'));
    const size_t colon = path.find(':');
    if (colon == absl::string_view::npos || !IsDottedName(path.substr(0, colon)) ||
        !IsDottedName(path.substr(colon + 1))) {
      return Wrong(id,
                   "python:package.module:function, e.g. python:my_env:make, in a folder of PYTHONPATH or this one");
    }
    parsed.kind = ExternalId::Kind::kPython;
  } else if (absl::ConsumePrefix(&rest, kExec)) {
    if (absl::StripAsciiWhitespace(rest).empty()) return Wrong(id, "exec:PROGRAM, e.g. exec:./my_server");
    parsed.kind = ExternalId::Kind::kExec;
  } else if (absl::ConsumePrefix(&rest, kPlugin)) {
    if (rest.empty()) return Wrong(id, "plugin:FILE, e.g. plugin:./libmy_env.so");
    parsed.kind = ExternalId::Kind::kPlugin;
  } else if (absl::ConsumePrefix(&rest, kGrpc)) {
    const size_t slash = rest.find('/');
    if (slash != absl::string_view::npos) parsed.name = std::string(rest.substr(slash + 1));
    rest = rest.substr(0, slash);
    const auto address = ParseHostPort(std::string(rest));
    if (!address.ok() || address->host.empty() || address->port == 0) {
      return Wrong(id, "grpc://host:port/name, e.g. grpc://127.0.0.1:7200/arm, with a port from 1 to 65535");
    }
    parsed.kind = ExternalId::Kind::kGrpc;
  } else {
    return Wrong(id, "python:, exec:, grpc:// or plugin:");
  }
  parsed.target = std::string(rest);
  return parsed;
}

}  // namespace skein
