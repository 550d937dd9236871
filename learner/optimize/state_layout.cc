// SPDX-License-Identifier: Apache-2.0
#include "learner/optimize/state_layout.h"

#include <torch/types.h>
#include <torch/utils.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace skein {

absl::Status CheckSameLayout(const StateTensors& got, const StateTensors& want, const std::string& where) {
  for (size_t i = 0; i < std::max(got.size(), want.size()); ++i) {
    if (i >= got.size()) return absl::InvalidArgumentError(absl::StrCat(where, ": ", want[i].first, " is missing"));
    if (i >= want.size()) {
      return absl::InvalidArgumentError(absl::StrCat(where, ": ", got[i].first, " is unknown to this run"));
    }
    if (got[i].first != want[i].first) {
      return absl::InvalidArgumentError(absl::StrCat(where, ": got ", got[i].first, " where ", want[i].first,
                                                     " was expected; the network or environment differs"));
    }
    if (got[i].second.sizes() != want[i].second.sizes()) {
      return absl::InvalidArgumentError(absl::StrCat(where, ": ", got[i].first, " has shape [",
                                                     absl::StrJoin(got[i].second.sizes(), ", "), "], want [",
                                                     absl::StrJoin(want[i].second.sizes(), ", "), "]"));
    }
    if (got[i].second.scalar_type() != want[i].second.scalar_type()) {
      return absl::InvalidArgumentError(absl::StrCat(where, ": ", got[i].first, " has dtype ",
                                                     torch::toString(got[i].second.scalar_type()), ", want ",
                                                     torch::toString(want[i].second.scalar_type())));
    }
  }
  return absl::OkStatus();
}

}  // namespace skein
