// SPDX-License-Identifier: Apache-2.0
#include "env/registry.h"

#include <algorithm>
#include <numeric>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "env/classic/cartpole.h"
#include "env/classic/mountain_car_continuous.h"
#include "env/classic/pendulum.h"
#include "env/mujoco/half_cheetah.h"
#include "env/mujoco/library.h"

namespace skein {
namespace {

struct Entry {
  const EnvSpec& (*spec)();
  const char* summary;
  absl::StatusOr<std::unique_ptr<Env>> (*make)();
};

template <std::unique_ptr<Env> (*make)()>
absl::StatusOr<std::unique_ptr<Env>> Make() {
  return make();
}

// Ordered by id.
constexpr Entry kEntries[] = {
    {CartPoleSpec, "Balance a pole on a cart that is pushed left or right.", Make<MakeCartPole>},
    {HalfCheetahSpec, "Run to the right with a planar two-legged animal (MuJoCo).", MakeHalfCheetah},
    {MountainCarContinuousSpec, "Rock a weak car out of a valley with little force.", Make<MakeMountainCarContinuous>},
    {PendulumSpec, "Swing a pendulum up and hold it with a weak motor.", Make<MakePendulum>},
};

// Insertions, deletions and substitutions between two ids, upper and lower case being the same letter.
int EditDistance(const std::string& from, const std::string& to) {
  std::vector<int> row(to.size() + 1);  // From the first i letters of `from` to each beginning of `to`.
  std::iota(row.begin(), row.end(), 0);
  for (size_t i = 0; i < from.size(); ++i) {
    int diagonal = row[0];
    row[0] = static_cast<int>(i) + 1;
    for (size_t j = 0; j < to.size(); ++j) {
      const int substituted = diagonal + (absl::ascii_tolower(from[i]) == absl::ascii_tolower(to[j]) ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({substituted, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row.back();
}

absl::Status UnknownEnv(const std::string& id) {
  const Entry& nearest = *std::min_element(
      std::begin(kEntries), std::end(kEntries),
      [&](const Entry& a, const Entry& b) { return EditDistance(id, a.spec().id) < EditDistance(id, b.spec().id); });
  return absl::InvalidArgumentError(
      absl::StrCat("unknown environment '", id, "'; did you mean '", nearest.spec().id, "'? `skein envs` lists all"));
}

}  // namespace

std::vector<EnvInfo> ListEnvs() {
  std::vector<EnvInfo> envs;
  for (const Entry& entry : kEntries) envs.push_back({entry.spec().id, entry.summary, entry.spec()});
  return envs;
}

absl::StatusOr<std::unique_ptr<Env>> MakeEnv(const std::string& id) {
  for (const Entry& entry : kEntries) {
    if (entry.spec().id == id) return entry.make();
  }
  // An id is a few dozen letters: more would only make the search for the nearest one slow.
  return UnknownEnv(id.substr(0, 100));
}

std::string MujocoVersion() { return MujocoLibraryVersion(); }

}  // namespace skein
