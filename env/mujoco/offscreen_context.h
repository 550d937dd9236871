// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "absl/status/statusor.h"

namespace skein {

// An OpenGL context without a window. It is current on the thread that made it until it is destroyed on that thread.
class OffscreenContext {
 public:
  virtual ~OffscreenContext() = default;
};

// Uses EGL (a surfaceless display, or else the first device), or else OSMesa. Loads their libraries at run time and
// never unloads them. Unavailable: neither works; the message says why, and what to install.
absl::StatusOr<std::unique_ptr<OffscreenContext>> MakeOffscreenContext();

// Use one library only. Unavailable: it makes no context; the message says why.
absl::StatusOr<std::unique_ptr<OffscreenContext>> MakeEglContext();
absl::StatusOr<std::unique_ptr<OffscreenContext>> MakeOsMesaContext();

}  // namespace skein
