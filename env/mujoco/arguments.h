// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <map>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"

// Arguments of MuJoCo tasks, with the names and defaults of Gymnasium's constructors.   env.mujoco.* -> MujocoTask
namespace skein {

// What a task needs to know of a model that the user gave in place of the task's own.
struct MujocoModelFacts {
  std::string mjcf;                            // Its text.
  std::string digest;                          // XXH3-64 of the text, 16 hexadecimal digits.
  int bodies = 0;                              // nbody, with the world.
  int tendons = 0;                             // ntendon
  std::vector<float> action_low, action_high;  // [controls]
};

// An argument's value: a number, a flag, a text, or the two ends of a range.
using MujocoArgument = std::variant<double, bool, std::string, std::array<double, 2>>;

// The settings of the MuJoCo environments.
struct MujocoOptions {
  std::map<std::string, MujocoArgument> arguments;  // Those of env.mujoco that were given, by name.
  bool clip_actions = true;                         // As EnvSpec.
};

// The text of a given argument; empty if none is given.
std::string TextOf(const MujocoOptions& options, const std::string& argument);

// The arguments that the user gave, by name. A task asks for each of its arguments by name and gives its default;
// Problem() then knows what nothing asked for. Not thread-safe.
class MujocoArguments {
 public:
  using Range = std::array<double, 2>;

  explicit MujocoArguments(MujocoOptions given)
      : given_(std::move(given.arguments)), clip_actions_(given.clip_actions) {}

  // Each returns the given value, or `otherwise`. A given value of another type counts as a problem.
  double Number(const std::string& name, double otherwise);
  double NotNegative(const std::string& name, double otherwise);  // A given value below 0 counts as a problem.
  bool Flag(const std::string& name, bool otherwise);
  std::string Text(const std::string& name, const std::string& otherwise);
  // The number of the given text in `choices`; 0 if none is given. Another text counts as a problem.
  size_t Choice(const std::string& name, const std::vector<std::string>& choices);
  Range Between(const std::string& name, Range otherwise);  // Ends in the wrong order count as a problem,
  Range Band(const std::string& name, Range otherwise);     // and here equal ones, too.

  // The user's model, if there is one; MakeMujocoTask sets it before the task is made.
  const MujocoModelFacts* model() const { return has_model_ ? &model_ : nullptr; }
  void SetModel(MujocoModelFacts model);

  bool clip_actions() const { return clip_actions_; }

  // After the task was made. InvalidArgument: an argument that nothing asked for (the message has those that `env_id`
  // takes), or a value that cannot be.
  absl::Status Problem(const std::string& env_id) const;

 private:
  template <typename Type>
  Type Get(const std::string& name, Type otherwise);

  const std::map<std::string, MujocoArgument> given_;
  const bool clip_actions_;
  std::map<std::string, std::string> taken_;  // Name -> what is wrong with the value, or empty.
  MujocoModelFacts model_;
  bool has_model_ = false;
};

}  // namespace skein
