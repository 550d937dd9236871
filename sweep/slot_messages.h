// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/process/resource_share.h"
#include "launch/node_bookings.h"

// Messages between a sweep and the workers that lend it slots, as files in the sweep's folder, which both see.
//   slots.json         of the sweep: what each slot has
//   workers/<slot>     of the worker, which locks it as long as it lends the slot: its answer
//   orders/<slot>      of the sweep, which locks it as long as it wants the training: its order
namespace skein {

struct SlotTerms {
  bool over = false;  // The sweep has ended, and needs no slots any more.
  uint32_t cores = 1;
  ResourceShare share;  // Of each training.
  NodeResources asked;  // By the base configuration, for the processes of a training.
  std::string device;   // learner.device
};

struct SlotOrder {
  std::string id;                      // Never used twice.
  std::string name;                    // Of the run.
  std::string cwd;                     // Absolute; other paths may be relative to it.
  std::string folder;                  // Of the sweep.
  std::vector<std::string> arguments;  // Of skein.
  std::string log_path;
  bool stop = false;  // The training is to end with a checkpoint.
};

struct SlotAnswer {
  std::string id;   // Of the order.
  int code = 0;     // The training has ended so.
  std::string why;  // For people, if the code is not 0.
};

std::string TermsPath(const std::string& sweep_folder);
std::string WorkersFolder(const std::string& sweep_folder);
std::string OrdersFolder(const std::string& sweep_folder);
std::string WorkerPath(const std::string& sweep_folder, const std::string& slot);
std::string OrderPath(const std::string& sweep_folder, const std::string& slot);

absl::Status WriteTerms(const std::string& sweep_folder, const SlotTerms& terms);
// NotFound: there is no sweep (yet). DataLoss: the file is damaged.
absl::StatusOr<SlotTerms> ReadTerms(const std::string& sweep_folder);

// Texts of an order differ in `stop` by one character alone, so that it can be written over.
std::string ToText(const SlotOrder& order);
std::string ToText(const SlotAnswer& answer);
// Nullopt: `text` is none, or not yet whole.
std::optional<SlotOrder> OrderOf(const std::string& text);
std::optional<SlotAnswer> AnswerOf(const std::string& text);

// Replaces the contents of an open file and syncs it. Others may read a part of it meanwhile.
absl::Status Rewrite(int fd, const std::string& path, const std::string& text);
// The first MiB of an open file, from its beginning.
std::string ReadAll(int fd);

}  // namespace skein
