// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdio>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "base/process/shutdown.h"

namespace skein {

// Options of `skein detect`.
struct DetectOptions {
  std::string checkpoint;              // A checkpoint's folder, or one that has checkpoints, or a run's.
  std::string files;                   // As data.files.
  std::vector<std::string> overrides;  // "a.b=c" of the model's settings data and detect.
  double probability = -1;             // Limits in place of the checkpoint's. Negative: the checkpoint's.
  int64_t top_g = -1;
  uint32_t threads = 0;       // 0 = as many as cores.
  bool json_summary = false;  // As a line of JSON.
};

// Judges each sequence of the files by a model of `skein fit`, equal ones once, and writes a line of JSON for each in
// their order:
//   {"file": "a.txt", "line": 7, "anomalous": true, "position": 3, "key": "22", "rank": 9, "probability": 1.2e-05,
//    "least_probability": 1.2e-05}
// `position` counts keys from 0, and the end of a sequence as one more; it is null, as are key, rank and probability,
// where no key is anomalous. With detect.known_counts "known_counts" comes after "anomalous"; where it is true, the
// verdict is false whatever the rest says. A summary goes to standard error, as JSON:
//   {"sequences": 6, "distinct": 5, "anomalous": 4, "unknown_keys": 1, "rule": "probability", "probability": 0.001,
//    "top_g": null}, and "known_counts" with detect.known_counts: how many have such a vector.
// NotFound, DataLoss: no checkpoint, a damaged one. FailedPrecondition: a policy's, or one without limits, or without
// count vectors if detect.known_counts wants them. DataLoss also: a bad line; what was judged before it is written.
// As SystemError: `out` takes no more; ferror(out) tells. Cancelled: a signal.
absl::Status RunDetect(const DetectOptions& options, std::FILE* out, const ShutdownSignal* shutdown);

}  // namespace skein
