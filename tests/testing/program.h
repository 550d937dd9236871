// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "base/process/subprocess.h"
#include "tests/cli/scratch_folder.h"

// Real programs under test. A name without a slash is one of ours, in the folder that SKEIN_BIN names.
namespace skein {

struct Ended {
  int code = -1;  // Or 128 + signal.
  std::string out, err;
  absl::Duration wall_time;
};

// Runs a program to its end. If that takes longer than `limit`, the test has failed and the program is killed.
Ended RunToEnd(const std::string& program, const std::vector<std::string>& arguments,
               absl::Duration limit = absl::Minutes(2));

// A program in the background. Its output is shown at the end if the test has failed by then.
// The destructor kills it if it still runs.
class Running {
 public:
  // `extra_env`: "NAME=value".
  Running(const std::string& program, const std::vector<std::string>& arguments,
          const std::vector<std::string>& extra_env = {});
  ~Running();

  pid_t pid() const { return process_->pid(); }
  bool ended() { return process_->Poll().has_value(); }
  void Signal(int signal_number) { process_->Signal(signal_number); }
  // Standard output and error so far.
  std::string Output() const { return folder_.Read("output"); }
  // Waits for output that `pattern` is found in and returns its first group. Empty: the test has failed.
  std::string WaitForOutput(const std::string& pattern, absl::Duration limit = absl::Minutes(1));
  // Its exit code, or 128 + signal. -1: it runs on after `limit`, the test has failed.
  int WaitForEnd(absl::Duration limit = absl::Minutes(1));
  void Kill();

 private:
  const std::string name_;
  const ScratchFolder folder_;
  std::unique_ptr<Subprocess> process_;
};

// The first child of `parent` whose name is `name`; nullopt if there is none now.
std::optional<pid_t> FindChild(pid_t parent, const std::string& name);

// A port of 127.0.0.1 that was free a moment ago.
int FreePort();

// The first group of `pattern` where it is found first in `text`; empty if it is not.
std::string FirstMatch(const std::string& text, const std::string& pattern);

}  // namespace skein
