// SPDX-License-Identifier: Apache-2.0
#include "member/member_flags.h"

#include "absl/strings/str_cat.h"
#include "base/process/fault_hook.h"
#include "base/process/message_text.h"
#include "base/process/shutdown.h"
#include "base/telemetry/log.h"

namespace skein {

absl::StatusOr<absl::Duration> BeginMember(const char* program, const MemberFlags& flags) {
  if (flags.exit_with_parent) ExitWithParent();
  InitLog(program, flags.log_json);
  if (absl::Status s = UseCredentials(flags.credentials); !s.ok()) return s;
  if (absl::Status s = InstallFaults(); !s.ok()) return s;
  absl::Duration timeout;
  if (!absl::ParseDuration(flags.timeout, &timeout) || timeout <= absl::ZeroDuration()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--timeout: want a duration such as 30s, got ", Quoted(flags.timeout)));
  }
  return timeout;
}

}  // namespace skein
