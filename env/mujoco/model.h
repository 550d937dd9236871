// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <mujoco/mujoco.h>

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "env/mujoco/task.h"

// Owning types for compiled MuJoCo models and simulation data, and how models are compiled.
namespace skein {

// Immutable, shared by every environment of one kind in the process, on any thread.
using SharedModel = std::shared_ptr<const mjModel>;

struct DeleteMjData {
  void operator()(mjData* data) const { mj_deleteData(data); }
};
// Simulation data, of one thread at a time.
using OwnedData = std::unique_ptr<mjData, DeleteMjData>;

// How contacts are found. kPublished: by a search at each step, as in the published model. kStepped: from a list where
// contacts can be listed (contacts.h), else by the search. States are the same to the bit.
enum class ModelForm { kStepped, kPublished };

// The model of a task, compiled at the first call and shared by all environments of the task. Thread-safe.
// Internal: the linked MuJoCo does not accept it. DataLoss: its sizes differ from the task's.
absl::StatusOr<SharedModel> ModelOf(const MujocoTask& task, ModelForm form);

// Compiles MJCF text and scales all masses and inertias to a total of `total_mass` kg, unless that is 0. `name` is for
// messages. Thread-safe. Also installs our handlers (library.h), which count a warning about the text like any other.
// only_pairs: as CollideOnlyPairs. Internal: MuJoCo refuses the text. REQUIRES: !mjcf.empty(), total_mass >= 0.
absl::StatusOr<SharedModel> CompileModel(const std::string& name, const std::string& mjcf, double total_mass,
                                         bool only_pairs = false);
// The same, unscaled; a warning about the text is written to `warning`, empty if there is none, and goes to no handler.
absl::StatusOr<SharedModel> TryModel(const std::string& name, const std::string& mjcf, std::string* warning);

// True once MuJoCo has found numbers in `data` that are not finite or beyond 1e10. MuJoCo then resets the simulation to
// the model's initial pose and continues; the result stays true until mj_resetData.
inline bool HasDiverged(const mjData& data) {
  return data.warning[mjWARN_BADQPOS].number + data.warning[mjWARN_BADQVEL].number +
             data.warning[mjWARN_BADQACC].number >
         0;
}

}  // namespace skein
