// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "sweep/sampler.h"
#include "sweep/space_file.h"
#include "sweep/trial.h"

namespace skein {

// Gives the configurations of new trials.
class Suggester {
 public:
  virtual ~Suggester() = default;
  // The point of the trial that comes after `trials`; nullopt: there are no more.
  virtual absl::StatusOr<std::optional<Point>> Suggest(const std::vector<Trial>& trials) = 0;
  // A trial has ended, or has a new result at a rung of `steps`.
  virtual absl::Status Tell(const Trial& trial) = 0;
};

// Which points may be tried: those that the constraints admit. `space` and `base` must outlive it.
Admits AdmitsByConstraints(const Space& space, const v1::RunConfig& base);

class GridSuggester : public Suggester {
 public:
  explicit GridSuggester(std::vector<Point> points) : points_(std::move(points)) {}
  absl::StatusOr<std::optional<Point>> Suggest(const std::vector<Trial>& trials) override;
  absl::Status Tell(const Trial&) override { return absl::OkStatus(); }
  size_t size() const { return points_.size(); }

 private:
  const std::vector<Point> points_;
};

// No point twice: two trials of one configuration would tell no more than one.
class RandomSuggester : public Suggester {
 public:
  RandomSuggester(const Space& space, uint64_t seed, Admits admits)
      : space_(space), seed_(seed), admits_(std::move(admits)) {}
  absl::StatusOr<std::optional<Point>> Suggest(const std::vector<Trial>& trials) override;
  absl::Status Tell(const Trial&) override { return absl::OkStatus(); }

 private:
  const Space& space_;
  const uint64_t seed_;
  const Admits admits_;
  std::set<Point> seen_;  // Of the first `counted_` trials.
  size_t counted_ = 0;
};

}  // namespace skein
