// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace skein {

// A condition that configurations must meet, such as "ppo.minibatch_size <= rollout.steps_per_iteration / 2": two
// expressions with one of <, <=, >, >=, ==, != between them. An expression has settings by their path, numbers,
// + - * / % and parentheses; with == and != a side may also be a text, "ppo.lr_schedule != linear". Immutable; copies
// share what was parsed.
class Constraint {
 public:
  // The value of a setting as text, by its path.
  using Lookup = std::function<std::string(const std::string& path)>;
  struct Node;

  // `column` is set to where in `text` the problem is. InvalidArgument: syntax, or a name with dots that is no setting
  // (names the nearest).
  static absl::StatusOr<Constraint> Parse(const std::string& text, size_t* column);

  // What is compared by size, or calculated with, although it is no number by these values: a text or a setting; empty:
  // nothing.
  std::string NotANumber(const Lookup& lookup) const;
  // A text that is no number where one is needed, or a division by 0: false.
  bool Holds(const Lookup& lookup) const;
  const std::string& text() const { return text_; }

 private:
  std::string text_;
  std::string comparison_;
  std::shared_ptr<const Node> left_, right_;
};

}  // namespace skein
