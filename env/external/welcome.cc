// SPDX-License-Identifier: Apache-2.0
#include "env/external/welcome.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/process/message_text.h"
#include "env/external/world_memory.h"
#include "env/external/world_spec.h"

namespace skein {

absl::StatusOr<Welcomed> TakeWelcome(const env::v1::ServerMessage& message, const std::string& id) {
  if (message.has_failure()) {
    const std::string why = OneLine(message.failure().message());
    return message.failure().unusable() ? absl::FailedPreconditionError(why) : absl::UnavailableError(why);
  }
  if (!message.has_welcome()) return absl::DataLossError("its server answered without a welcome");
  const env::v1::Welcome& welcome = message.welcome();
  if (welcome.version() != WorldHead::kVersion) {
    return absl::FailedPreconditionError(absl::StrCat("its server speaks version ", welcome.version(),
                                                      " of skein.env.v1, this is version ", WorldHead::kVersion));
  }
  auto spec = ReadSpec(welcome.spec(), id);
  if (!spec.ok()) return spec.status();
  if (spec->relocatable) return absl::FailedPreconditionError("a server cannot save states (state_size)");
  return Welcomed{*std::move(spec), Shown(welcome.server())};
}

}  // namespace skein
