// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "env/mujoco/arguments.h"

namespace skein {

// Renders images of MuJoCo environments without a screen, by MuJoCo's own renderer in an OpenGL context of EGL or,
// where EGL is not available, of OSMesa. Both libraries are loaded only here and only when needed.
// All calls must come from one thread; at most one object at a time in a process.
class OffscreenRenderer {
 public:
  // The camera follows the task's body. Where tasks run, lines on the ground are a metre apart.
  // NotFound: no MuJoCo environment has this id. Unavailable: neither EGL nor OSMesa makes a context; the message says
  // why, and what to install. Otherwise as FindMujocoTask and ModelOf.
  static absl::StatusOr<std::unique_ptr<OffscreenRenderer>> Make(const std::string& env_id, int width, int height,
                                                                 const MujocoOptions& options = {});
  ~OffscreenRenderer();

  // state: as the environment saves it. rgb: [height, width, 3], written, the top row first.
  void Render(const double* state, uint8_t* rgb);
  // Frame rate at which a video runs at the speed of the simulation.
  int frames_per_second() const;

 private:
  struct Impl;
  explicit OffscreenRenderer(std::unique_ptr<Impl> impl);
  const std::unique_ptr<Impl> impl_;
};

// The caption of a picture, e.g. "1.50 s   3.2 m   2.1 m/s"; only the time where the task does not run.
std::string OffscreenCaption(bool runs, double seconds, double place, double speed);

}  // namespace skein
