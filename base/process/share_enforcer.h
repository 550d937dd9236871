// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/process/control_group.h"
#include "base/process/resource_share.h"

// Makes the kernel hold processes to their shares of CPU and memory.   ResourceShare -> control group, or else
// affinity, priority and a limit of the data segment
namespace skein {

// Set for a process whose share its parent enforces.
inline constexpr char kShareHeldVariable[] = "SKEIN_SHARE_HELD";

// The share of one process, until it has ended. Not thread-safe.
class HeldShare {
 public:
  ~HeldShare();
  HeldShare(const HeldShare&) = delete;
  HeldShare& operator=(const HeldShare&) = delete;

  // By what it is held, for people: "CPU by a control group, memory by a limit of its data segment".
  const std::string& how() const { return how_; }
  // Why the process, or a child of it, was ended by SIGKILL, if its share is the reason; else empty.
  std::string DescribeKill() const;

 private:
  friend class ShareEnforcer;
  HeldShare() = default;
  ResourceShare share_;
  std::string how_;
  std::unique_ptr<ControlGroup> group_;
  std::shared_ptr<std::vector<double>> cpu_load_;  // Of the enforcer: CPUs asked for on each CPU.
  std::vector<int> cpus_;  // Those that this share counts on, each by share.cpus / their number.
};

// Not thread-safe.
class ShareEnforcer {
 public:
  explicit ShareEnforcer(ControlGroups groups = ControlGroups::OfThisProcess());

  // Holds process `pid`, one's own or a child that has just been started, to `share`. `name` is of the process and,
  // with one's process id, of its control group. Where the kernel gives no control group
  //   CPU     The process runs on as many CPUs as its share, rounded up. Of these it has less than a half beside one
  //           rival that wants all if its share is less than a half: its priority is as low as that takes. Otherwise it
  //           has a half. Idle time may be used beyond the share.
  //   memory  Its data segment is limited (RLIMIT_DATA): allocation fails, and the process ends with a message.
  // Shares of GPUs are not the kernel's: GpuEnvironment(), and the learner's allocator.
  absl::StatusOr<std::unique_ptr<HeldShare>> Hold(pid_t pid, const std::string& name, const ResourceShare& share);

 private:
  absl::Status HoldCpu(pid_t pid, double cpus, HeldShare* held);

  ControlGroups groups_;
  std::shared_ptr<std::vector<double>> cpu_load_;  // By number of the CPU.
};

// For a process that no parent holds to its share (kShareHeldVariable), such as a worker of another node: holds this
// process to it from now to its end, GpuEnvironment() included. Returns how, for people; empty if there is nothing to
// do, or if it was done before. Call it before CUDA starts.
absl::StatusOr<std::string> HoldThisProcess(const std::string& name, const ResourceShare& share);

// Variables that hold a process to its share of GPUs where the driver can: none of them visible, or under MPS a share
// of the multiprocessors and of the memory. `gpu_memory_bytes`: of each GPU that the process will see, in CUDA's order;
// empty = not known, and memory is not limited. "NAME=value".
std::vector<std::string> GpuEnvironment(const ResourceShare& share, const std::vector<uint64_t>& gpu_memory_bytes = {});

// From now on, when memory cannot be had, this process ends with one line and code 74, which names the share's setting.
void EndWhenOutOfMemory(const std::string& program, const ResourceShare& share);

}  // namespace skein
