// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "skein/v1/config.pb.h"

namespace skein {

// The names that the metric of a sweep may have, as far as they are known before anything is trained: numbers of the
// lines of metrics.jsonl, those of eval.json after "eval.", and the environment's own after "episode_metrics.".
std::vector<std::string> KnownMetrics(const v1::RunConfig& config);

}  // namespace skein
