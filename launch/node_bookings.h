// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "skein/v1/config.pb.h"

// Records of the resources that the runs of one user have declared on this machine (RunConfig.resources), so that
// together they do not ask for more than it has.   plan -> AskedFor -> NodeBooking::Take -> processes
namespace skein {

struct NodeResources {
  double cpus = 0;
  double gpus = 0;
  uint64_t memory_bytes = 0;
};

// What this process may use: CPUs by affinity and control group, memory by control group. `gpus`: those that are
// visible.
NodeResources WhatIsHere(uint32_t gpus);

// What the processes of a run ask for together; nothing where the configuration leaves it open.
NodeResources AskedFor(const v1::RunConfig& config, uint32_t learners, uint32_t actors);

// A run's or a sweep's part of the machine, for as long as this object exists: a locked file, which the kernel unlocks
// when the process ends, however it ends. Not thread-safe.
class NodeBooking {
 public:
  struct Other {
    std::string run;
    int pid = 0;
    NodeResources asked;
  };

  struct Request {
    std::string run;
    NodeResources asked;
    // For messages: who asks for it, by which sections of a file, and what else than to ask for less may be done.
    std::string who;
    std::vector<std::string> sections;
    std::string advice;
  };

  // Null: nothing is asked for. InvalidArgument: more than there is. Unavailable: more than is left; names how much
  // that is, and who has the rest. Other codes: the folder cannot be used. `folder` is made if it is not there.
  static absl::StatusOr<std::unique_ptr<NodeBooking>> Take(const std::string& folder, const Request& request,
                                                           const NodeResources& here);
  // The bookings of processes that live.
  static std::vector<Other> List(const std::string& folder);
  // What they leave of `here`.
  static NodeResources Left(const std::string& folder, const NodeResources& here);

  ~NodeBooking();
  NodeBooking(const NodeBooking&) = delete;
  NodeBooking& operator=(const NodeBooking&) = delete;

 private:
  NodeBooking(std::string path, int fd) : path_(std::move(path)), fd_(fd) {}
  const std::string path_;
  const int fd_;
};

// What the processes of a run ask for.
NodeBooking::Request RequestOf(const v1::RunConfig& config, uint32_t learners, uint32_t actors);

// Where this user's bookings are: a folder in memory, $SKEIN_BOOKINGS or /dev/shm/skein-UID.
std::string BookingFolder();

// "2 GiB", "1536 MiB".
std::string MemoryText(uint64_t bytes);

}  // namespace skein
