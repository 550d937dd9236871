// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <mujoco/mujoco.h>

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "env/mujoco/task.h"

// Compiled MuJoCo models and simulation data with owners.
namespace skein {

// Immutable, shared by every environment of one kind in the process, on any thread.
using SharedModel = std::shared_ptr<const mjModel>;

struct DeleteMjData {
  void operator()(mjData* data) const { mj_deleteData(data); }
};
// One environment's own; not thread-safe.
using OwnedData = std::unique_ptr<mjData, DeleteMjData>;

// How contacts are found: by a search at each step, as the model was published, or, where they can be listed
// (contacts.h), by going through the list. States are the same to the bit.
enum class ModelForm { kStepped, kPublished };

// A task's model, compiled at the first call and shared by all. Thread-safe.
// Internal: the linked MuJoCo does not accept it, or its sizes are not those that the task says.
absl::StatusOr<SharedModel> ModelOf(const MujocoTask& task, ModelForm form);

// Compiles MJCF text and scales all masses and inertias to `total_mass` kg, unless that is 0; `name` is for messages.
// Thread-safe. Also installs our warning and error handlers; a warning about the text is counted as any other.
// only_pairs: as CollideOnlyPairs. Internal: MuJoCo refuses the text. REQUIRES: !mjcf.empty(), total_mass >= 0.
absl::StatusOr<SharedModel> CompileModel(const std::string& name, const std::string& mjcf, double total_mass,
                                         bool only_pairs = false);

// True once MuJoCo has found numbers in `data` that are not finite or beyond 1e10. It then puts the simulation back
// to the model's initial pose by itself and goes on; the mark stays until mj_resetData.
inline bool HasDiverged(const mjData& data) {
  return data.warning[mjWARN_BADQPOS].number + data.warning[mjWARN_BADQVEL].number +
             data.warning[mjWARN_BADQACC].number >
         0;
}

}  // namespace skein
