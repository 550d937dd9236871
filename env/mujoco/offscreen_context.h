// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "absl/status/statusor.h"

namespace skein {

// An OpenGL context without a window, current on the thread that made it until it is destroyed there.
class OffscreenContext {
 public:
  virtual ~OffscreenContext() = default;
};

// By EGL (a surfaceless display, or else the first device), or else by OSMesa. Loads their libraries at run time and
// never unloads them. Unavailable: neither can; says why, and what to install.
absl::StatusOr<std::unique_ptr<OffscreenContext>> MakeOffscreenContext();

// Each by itself. Unavailable: it cannot; says why.
absl::StatusOr<std::unique_ptr<OffscreenContext>> MakeEglContext();
absl::StatusOr<std::unique_ptr<OffscreenContext>> MakeOsMesaContext();

}  // namespace skein
