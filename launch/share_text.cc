// SPDX-License-Identifier: Apache-2.0
#include "launch/share_text.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace skein {
namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;

int64_t WholeUp(double amount) { return static_cast<int64_t>(std::ceil(amount - 1e-9)); }
uint64_t MebibytesUp(uint64_t bytes) { return (bytes + kMiB - 1) / kMiB; }

template <typename T>
std::optional<T> Larger(const std::optional<T>& one, const std::optional<T>& other) {
  if (!one || !other) return one ? one : other;
  return std::max(*one, *other);
}

}  // namespace

std::string SlurmFlags(const ResourceShare& share) {
  std::vector<std::string> flags;
  if (share.cpus) flags.push_back(absl::StrCat("--cpus-per-task=", WholeUp(*share.cpus)));
  if (share.memory_bytes) flags.push_back(absl::StrCat("--mem=", MebibytesUp(*share.memory_bytes), "M"));
  if (share.gpus.value_or(0) > 0) flags.push_back(absl::StrCat("--gres=gpu:", WholeUp(*share.gpus)));
  return absl::StrJoin(flags, " ");
}

std::string HelmValues(absl::string_view part, const ResourceShare& share) {
  if (share.empty()) return "";
  std::vector<std::string> amounts;
  if (share.cpus) amounts.push_back(absl::StrCat("cpu: ", std::max(int64_t{1}, WholeUp(*share.cpus * 1000)), "m"));
  if (share.memory_bytes) amounts.push_back(absl::StrCat("memory: ", MebibytesUp(*share.memory_bytes), "Mi"));
  std::string text = absl::StrCat(part, ":\n");
  const int64_t gpus = WholeUp(share.gpus.value_or(0));
  // The chart adds a learner's GPUs itself, and what they need beside.
  const bool by_chart = part == "learner";
  if (gpus > 0 && by_chart) absl::StrAppend(&text, "  gpus: ", gpus, "\n");
  if (gpus > 0 && !by_chart) amounts.push_back(absl::StrCat("nvidia.com/gpu: ", gpus));
  if (share.gpus && gpus == 0 && by_chart) absl::StrAppend(&text, "  gpus: 0\n");
  const std::string list = absl::StrJoin(amounts, ", ");
  absl::StrAppend(&text, "  resources:\n    requests: {", list, "}\n    limits: {", list, "}\n");
  return text;
}

ResourceShare LargerOf(const ResourceShare& one, const ResourceShare& other) {
  ResourceShare larger;
  larger.cpus = Larger(one.cpus, other.cpus);
  larger.gpus = Larger(one.gpus, other.gpus);
  larger.memory_bytes = Larger(one.memory_bytes, other.memory_bytes);
  return larger;
}

ResourceShare Times(const ResourceShare& share, unsigned count) {
  ResourceShare all = share;
  if (all.cpus) *all.cpus *= count;
  if (all.gpus) *all.gpus *= count;
  if (all.memory_bytes) *all.memory_bytes *= count;
  return all;
}

}  // namespace skein
