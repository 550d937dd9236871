// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "base/process/json_line_process.h"
#include "nlohmann/json.hpp"
#include "skein/v1/config.pb.h"

namespace skein {

// The callback of a run: a Python object in a process of its own (python/skein_env/callback_process.py), or a program
// that speaks as that does. It is told of the run's course, and adds metrics, changes settings or stops the run.
//   Begin -> { Iteration -> Checkpoint } ... -> End       on the rank that leads
// Training waits for each call. Methods that the object does not have are not called. After an error nothing is called.
// Not thread-safe.
class RunCallbacks {
 public:
  struct Options {
    std::string name;                             // callbacks.python, for messages; empty = the run has no callback.
    std::vector<std::string> command;             // Of the process, looked up in PATH.
    std::vector<std::string> extra_env;           // "NAME=value"
    std::string folder;                           // Of the run.
    absl::Duration timeout;                       // Of a call.
    absl::Duration slow_call = absl::Seconds(1);  // A call that takes longer is named.
    std::function<bool()> stopping;  // Whether the process was asked to end; then a call is not waited for so long.
    std::function<void(const std::string&)> warn;  // Shows a warning to people; null: it is not shown.
  };
  // Both must outlive this.
  RunCallbacks(const v1::RunConfig& config, Options options) : config_(config), options_(std::move(options)) {}

  bool configured() const { return !options_.name.empty(); }

  struct At {
    uint64_t env_steps = 0, iteration = 0;
    std::string changes;     // As TakeChanges.
    std::string checkpoint;  // The newest one's path; empty: none.
  };
  // Starts the process and calls on_run_begin, unless it runs already or has failed.
  void Begin(const At& at);
  // This rank leads no longer: ends the process without a call.
  void Release() {
    process_.reset();
    begun_ = false;
  }
  // `line`: of metrics.jsonl, but for what the callback adds. Returns that: names and numbers; NaN: not a number.
  std::map<std::string, double> Iteration(const nlohmann::json& line);
  // `path`: of the newest checkpoint; one that was told of already is not called for again.
  void Checkpoint(const std::string& path, const std::string& digest, uint64_t env_steps);
  // `state`: "finished", "stopped" or "failed".
  void End(const std::string& state);

  // `changes`, a JSON object of settings or empty, with what was set since the last call.
  std::string TakeChanges(const std::string& changes);
  // What the leading rank told this one.
  void Follow(bool stops) { stops_ = stops_ || stops; }
  // Whether the run is to end here: the callback said so, or failed.
  bool stops() const { return stops_ || !status_.ok(); }
  // FailedPrecondition: the callback threw, ended, did not answer in time, or asked for what cannot be; with the file
  // and the line if there is one.
  const absl::Status& status() const { return status_; }
  // How long training has waited for it.
  absl::Duration spent() const { return spent_; }

 private:
  // One call of `method`. An answer is taken in; an error becomes status_, null is returned, and the process is gone.
  nlohmann::json Ask(const std::string& method, nlohmann::json request, absl::Duration timeout);
  void TakeIn(const std::string& method, const nlohmann::json& answer);
  void Fail(const std::string& method, const std::string& why);
  // Names each slow method once.
  void Watch(const std::string& method, absl::Duration took);
  bool Calls(const std::string& method) const { return process_ != nullptr && has_.count(method) > 0; }

  const v1::RunConfig& config_;
  const Options options_;
  std::unique_ptr<JsonLineProcess> process_;       // Null: not begun, or over.
  std::set<std::string> has_;                      // Methods.
  std::string told_;                               // The last checkpoint.
  std::string changes_;                            // As of the last TakeChanges.
  nlohmann::json set_ = nlohmann::json::object();  // Since then.
  bool begun_ = false, stops_ = false;
  absl::Status status_;
  absl::Duration spent_, in_iterations_, first_;  // first_: when the first iteration was told of.
  uint64_t iterations_ = 0;
  std::set<std::string> slow_;  // Methods of which it has been said.
};

// Of a run whose folder is `folder`; without `stopping` and `warn`.
RunCallbacks::Options CallbackOptions(const v1::RunConfig& config, const std::string& folder);

}  // namespace skein
