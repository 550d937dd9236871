// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/net/credential_flags.h"

// Flags that skein-actor and skein-learner share, and the start-up steps that use them.
namespace skein {

struct MemberFlags {
  std::string timeout = "30s", log_json;
  CredentialFiles credentials;
  bool exit_with_parent = false;
};

// `app` is a CLI::App; a template, so that this header does not depend on CLI11.
template <typename App>
void AddMemberFlags(App* app, MemberFlags* flags) {
  app->add_option("--timeout", flags->timeout, "How long to wait for the coordinator, e.g. 30s")->capture_default_str();
  app->add_option("--log-json", flags->log_json, "File for the log, one JSON object a line");
  AddCredentialFlags(app, &flags->credentials);
  app->add_flag("--exit-with-parent", flags->exit_with_parent, "End when the parent process does");
}

// Starts the log; reads the credentials and the faults to inject. Returns the timeout. InvalidArgument: a flag is not
// valid.
absl::StatusOr<absl::Duration> BeginMember(const char* program, const MemberFlags& flags);

}  // namespace skein
