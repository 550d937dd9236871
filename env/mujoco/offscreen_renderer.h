// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"

namespace skein {

// Pictures of MuJoCo environments without a screen, by MuJoCo's own renderer in an OpenGL context of EGL or, where that
// is not there, of OSMesa. Both libraries are loaded only here and only when needed.
// All calls from one thread, and at most one object at a time in a process.
class OffscreenRenderer {
 public:
  // A camera that runs beside the cheetah; lines on the ground are a metre apart.
  // Unavailable: neither EGL nor OSMesa makes a context; says why, and what to install. Internal: as HalfCheetahModel.
  static absl::StatusOr<std::unique_ptr<OffscreenRenderer>> MakeForHalfCheetah(int width, int height);
  ~OffscreenRenderer();

  // state: as HalfCheetah-v5 saves it. rgb: [height, width, 3], written, the upper row first.
  void Render(const double* state, uint8_t* rgb);

 private:
  struct Impl;
  explicit OffscreenRenderer(std::unique_ptr<Impl> impl);
  const std::unique_ptr<Impl> impl_;
};

}  // namespace skein
