// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "sweep/journal.h"
#include "sweep/space_file.h"
#include "sweep/study.h"

namespace skein {

// The recorded state of a sweep: its journal, with two studies. The search, named as the sweep, has the trials that the
// sampler suggested. The test, "<name>-test", has the base configuration as trial 0 and the best one as trial 1, others
// if that becomes another one. All is on the disk before it is visible here. Ids of trials are what their places in the
// file make them: trials and studies that other programs have added are counted, and else left alone. Not thread-safe.
class SweepRecord {
 public:
  // Opens the journal in `path` or begins it. `file` must outlive this. FailedPrecondition "path:line: ...": the
  // journal is of another space, or of trials that were judged otherwise (names the first difference). Other errors as
  // Journal::Open.
  static absl::StatusOr<std::unique_ptr<SweepRecord>> Open(const std::string& path, const SweepFile& file,
                                                           const std::string& identity, Journal::Fault fault = {});

  const Study& search() const { return search_; }
  const Study& test() const { return test_; }
  const std::string& path() const { return journal_->path(); }

  // Writes records that the studies made, and applies them. Errors as Journal::Append; then nothing has changed.
  absl::Status Write(const std::vector<nlohmann::json>& records);

 private:
  SweepRecord(const Space* space, bool minimize) : search_(space, 0, minimize), test_(space, 1, minimize) {}
  absl::Status Apply(const nlohmann::json& record);

  std::unique_ptr<Journal> journal_;
  Study search_, test_;
  uint32_t studies_ = 0;
  uint32_t trials_ = 0;  // Of both.
};

}  // namespace skein
