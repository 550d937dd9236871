// SPDX-License-Identifier: Apache-2.0
#include "env/mujoco/arguments.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace skein {

template <typename Type>
Type MujocoArguments::Get(const std::string& name, Type otherwise) {
  std::string& problem = taken_[name];
  const auto found = given_.find(name);
  if (found == given_.end()) return otherwise;
  if (const Type* const value = std::get_if<Type>(&found->second)) return *value;
  problem = "has a value of another type";
  return otherwise;
}

double MujocoArguments::Number(const std::string& name, double otherwise) { return Get(name, otherwise); }

double MujocoArguments::NotNegative(const std::string& name, double otherwise) {
  const double value = Get(name, otherwise);
  if (value < 0) taken_[name] = absl::StrCat("must be at least 0, got ", value);
  return value;
}

bool MujocoArguments::Flag(const std::string& name, bool otherwise) { return Get(name, otherwise); }

std::string MujocoArguments::Text(const std::string& name, const std::string& otherwise) {
  return Get(name, otherwise);
}

size_t MujocoArguments::Choice(const std::string& name, const std::vector<std::string>& choices) {
  const std::string value = Get(name, choices.front());
  const auto found = std::find(choices.begin(), choices.end(), value);
  if (found != choices.end()) return found - choices.begin();
  taken_[name] = absl::StrCat("must be one of ", absl::StrJoin(choices, ", "), ", got '", value, "'");
  return 0;
}

MujocoArguments::Range MujocoArguments::Between(const std::string& name, Range otherwise) {
  const Range range = Get(name, otherwise);
  if (!(range[0] <= range[1])) {
    taken_[name] = "must be two numbers, the smaller one first";
    if (range[0] > range[1]) absl::StrAppend(&taken_[name], ", got [", range[0], ", ", range[1], "]");
  }
  return range;
}

MujocoArguments::Range MujocoArguments::Band(const std::string& name, Range otherwise) {
  const Range range = Between(name, otherwise);
  if (range[0] == range[1]) {
    taken_[name] = absl::StrCat("must be a smaller and a larger number, got [", range[0], ", ", range[1], "]");
  }
  return range;
}

void MujocoArguments::SetModel(MujocoModelFacts model) {
  model_ = std::move(model);
  has_model_ = true;
}

absl::Status MujocoArguments::Problem(const std::string& env_id) const {
  for (const auto& [name, problem] : taken_) {
    if (!problem.empty()) return absl::InvalidArgumentError(absl::StrCat("env.mujoco.", name, " ", problem));
  }
  for (const auto& [name, value] : given_) {
    if (taken_.count(name) > 0) continue;
    const auto append_name = [](std::string* out, const auto& entry) { out->append(entry.first); };
    return absl::InvalidArgumentError(absl::StrCat("env.mujoco.", name, ": ", env_id, " has no such argument; it has ",
                                                   absl::StrJoin(taken_, ", ", append_name)));
  }
  return absl::OkStatus();
}

std::string TextOf(const MujocoOptions& options, const std::string& argument) {
  const auto given = options.arguments.find(argument);
  const bool text = given != options.arguments.end() && std::holds_alternative<std::string>(given->second);
  return text ? std::get<std::string>(given->second) : "";
}

}  // namespace skein
