// SPDX-License-Identifier: Apache-2.0
#include "learner/collect/hello_check.h"

#include <algorithm>
#include <cstddef>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "base/telemetry/printable.h"
#include "learner/collect/admission.h"

namespace skein {
namespace {

// Checks that id and generation have the form that coordinators assign, so that they are safe to log.
absl::Status CheckIdentity(const v1::Hello& hello) {
  constexpr size_t kLongestId = 64;
  const std::string& id = hello.actor_id();
  const bool plain = std::all_of(id.begin(), id.end(), [](char c) { return absl::ascii_isgraph(c); });
  if (id.empty() || id.size() > kLongestId || !plain) {
    return absl::InvalidArgumentError(absl::StrCat("hello.actor_id: want 1 to ", kLongestId,
                                                   " printable characters and no spaces, got \"", Excerpt(id), "\""));
  }
  if (hello.generation() == 0) return absl::InvalidArgumentError("hello.generation: want 1 or more, got 0");
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckHello(const v1::Hello& hello, const std::string& run_id, const v1::EnvSpecInfo& spec) {
  if (absl::Status s = CheckProtocol(hello); !s.ok()) return s;
  if (hello.run_id() != run_id) {
    return absl::FailedPreconditionError(
        absl::StrCat("the actor belongs to run ", Excerpt(hello.run_id()), ", this learner to run ", run_id));
  }
  if (absl::Status s = CheckIdentity(hello); !s.ok()) return s;
  return CheckEnvSpec(hello.env_spec(), spec);
}

}  // namespace skein
