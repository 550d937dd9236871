// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/process/resource_share.h"

// Control groups of the kernel (cgroups), by which it holds a process and its children to a share of CPU and memory.
namespace skein {

// Names the folder in which groups of a process and of its children are made, after it has moved into one of its own. A
// child that has a group to itself must not have the variable: its groups belong below that.
inline constexpr char kControlGroupVariable[] = "SKEIN_CONTROL_GROUP";

// A group for one child process. Not thread-safe. The destructor removes the group, if no process is left in it.
class ControlGroup {
 public:
  ~ControlGroup();
  ControlGroup(const ControlGroup&) = delete;
  ControlGroup& operator=(const ControlGroup&) = delete;

  // Moves a process with all its threads into the group; its later children begin there.
  absl::Status Add(pid_t pid) const;
  // Which of the share's parts the group holds it to.
  bool limits_cpu() const { return limits_cpu_; }
  bool limits_memory() const { return limits_memory_; }
  // Whether the kernel has killed a process of the group because of its memory.
  bool RanOutOfMemory() const;

 private:
  friend class ControlGroups;
  ControlGroup() = default;
  std::vector<std::string> folders_;  // One in each hierarchy that is needed.
  std::string memory_events_;         // File with a line "oom_kill N".
  bool limits_cpu_ = false;
  bool limits_memory_ = false;
};

// Makes groups below the one in which this process is: what a scheduler allows this process stays in force. Version 2
// of the kernel's interface, or version 1, whichever has the controllers. Not thread-safe.
class ControlGroups {
 public:
  // `mount`: where they are mounted. `membership`: the text of /proc/self/cgroup.
  ControlGroups(std::string mount, const std::string& membership);
  static ControlGroups OfThisProcess();

  // A group named `name` that limits CPU and memory as `share` says. Up to its limit it has its CPU's time before what
  // else is in this process's group or below it: the limit is what it gets. Parts that the kernel does not let us limit
  // are left out (limits_cpu(), limits_memory()). Null: none of them can be limited, or none is asked for. In version 2
  // this process may move into a group of its own, because a group with processes cannot have limited groups below it.
  std::unique_ptr<ControlGroup> Make(const std::string& name, const ResourceShare& share);

  // What the group of this process may use; nullopt: there is no limit, or it is not known.
  std::optional<double> CpuLimit() const;
  std::optional<uint64_t> MemoryLimit() const;

 private:
  // Of this process's group; empty: no hierarchy has the controller.
  struct Place {
    std::string folder;
    bool unified = false;  // Version 2.
  };
  bool Prepare(const std::string& controller, const Place& place);

  Place cpu_, memory_;
};

}  // namespace skein
