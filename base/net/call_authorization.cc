// SPDX-License-Identifier: Apache-2.0
#include "base/net/call_authorization.h"

#include <algorithm>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/net/credential_flags.h"

namespace skein {
namespace {

constexpr absl::string_view kHealth = "/grpc.health.v1.Health/";
constexpr absl::string_view kScaler = "/externalscaler.ExternalScaler/";

struct Rule {
  absl::string_view methods;  // Those that begin so.
  std::vector<absl::string_view> names;
};

// Which role needs which method; the first rule that fits counts. What is not listed is for clients: autoscalers ask
// the coordinator, and an unknown method is refused by the server anyway.
const std::vector<Rule>& Rules() {
  static const auto* const rules = new std::vector<Rule>{
      {"/skein.v1.Coordinator/GetStatus", {kClientName, kActorName, kLearnerName, kCoordinatorName}},
      {"/skein.v1.Coordinator/Drain", {kClientName}},
      {"/skein.v1.Coordinator/ArriveAtBarrier", {kLearnerName}},
      {"/skein.v1.Coordinator/", {kActorName, kLearnerName}},
      {"/skein.v1.Learner/", {kActorName}},
      {"/skein.v1.PolicyServer/", {kClientName}},
      {"/skein.env.v1.Environment/", {kActorName, kClientName}},
      {"/skein.v1.", {kLearnerName}},  // Between ranks.
      {"", {kClientName}},
  };
  return *rules;
}

// Removes the name of an authentication scheme and a space, in upper or lower case (RFC 9110, section 11.1).
bool ConsumeScheme(absl::string_view* value, absl::string_view scheme) {
  if (!absl::StartsWithIgnoreCase(*value, scheme) || !absl::StartsWith(value->substr(scheme.size()), " ")) return false;
  value->remove_prefix(scheme.size() + 1);
  return true;
}

bool IsToken(absl::string_view text, const Credentials& credentials) {
  return EqualsInConstantTime(text, credentials.token);
}

absl::Status CheckToken(const IncomingCall& call, const Credentials& credentials) {
  if (call.authorization.empty()) {
    return absl::UnauthenticatedError(absl::StrCat("this server asks for a token: give ", kTokenFileFlag));
  }
  absl::string_view value = call.authorization.front();
  if (call.authorization.size() > 1 || !ConsumeScheme(&value, "Bearer") || !IsToken(value, credentials)) {
    return absl::UnauthenticatedError(absl::StrCat("the token is not this server's: give another ", kTokenFileFlag));
  }
  return absl::OkStatus();
}

absl::Status CheckRole(const IncomingCall& call) {
  const auto rule = std::find_if(Rules().begin(), Rules().end(),
                                 [&](const Rule& one) { return absl::StartsWith(call.method, one.methods); });
  for (const absl::string_view name : call.certificate_names) {
    if (std::find(rule->names.begin(), rule->names.end(), name) != rule->names.end()) return absl::OkStatus();
  }
  return absl::PermissionDeniedError(
      absl::StrCat("this call needs a certificate for ", absl::StrJoin(rule->names, " or ")));
}

}  // namespace

absl::Status AuthorizeCall(const IncomingCall& call, const Credentials& credentials) {
  if (absl::StartsWith(call.method, kHealth)) return absl::OkStatus();
  if (!credentials.token.empty() && !absl::StartsWith(call.method, kScaler)) {
    if (absl::Status status = CheckToken(call, credentials); !status.ok()) return status;
  }
  return credentials.has_tls() ? CheckRole(call) : absl::OkStatus();
}

bool HasToken(absl::string_view authorization, const Credentials& credentials) {
  if (ConsumeScheme(&authorization, "Bearer")) return IsToken(authorization, credentials);
  std::string name_and_password;
  if (!ConsumeScheme(&authorization, "Basic") || !absl::Base64Unescape(authorization, &name_and_password)) {
    return false;
  }
  const size_t colon = name_and_password.find(':');
  return colon != std::string::npos && IsToken(name_and_password.substr(colon + 1), credentials);
}

}  // namespace skein
