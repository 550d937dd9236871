// SPDX-License-Identifier: Apache-2.0
#include "env/mujoco/offscreen_context.h"

#include <dlfcn.h>

#include <cstdint>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace skein {
namespace {

// Functions and constants of EGL 1.5 and OSMesa 8, which need not be there when this is compiled.
using EglInt = int32_t;
using EglBoolean = unsigned;
using EglHandle = void*;
constexpr unsigned kEglOpenGlApi = 0x30A2, kEglPlatformSurfaceless = 0x31DD, kEglPlatformDevice = 0x313F;
constexpr unsigned kOsMesaRgba = 0x1908, kGlUnsignedByte = 0x1401;

template <typename Function>
bool Load(void* library, const char* name, Function** function) {
  *function = reinterpret_cast<Function*>(dlsym(library, name));
  return *function != nullptr;
}

std::string LastLoadError() {
  const char* const text = dlerror();
  return text == nullptr ? "unknown error" : text;
}

struct Egl {
  void* (*get_proc_address)(const char* name);
  EglBoolean (*initialize)(EglHandle display, EglInt* major, EglInt* minor);
  EglBoolean (*bind_api)(unsigned api);
  EglHandle (*create_context)(EglHandle display, EglHandle config, EglHandle share, const EglInt* attributes);
  EglBoolean (*make_current)(EglHandle display, EglHandle draw, EglHandle read, EglHandle context);
  EglBoolean (*destroy_context)(EglHandle display, EglHandle context);
  EglInt (*get_error)();
  EglHandle (*get_platform_display)(unsigned platform, void* native, const EglInt* attributes);
  EglBoolean (*query_devices)(EglInt max, EglHandle* devices, EglInt* count);  // May be null.

  bool LoadFrom(void* library) {
    if (!Load(library, "eglGetProcAddress", &get_proc_address) || !Load(library, "eglInitialize", &initialize) ||
        !Load(library, "eglBindAPI", &bind_api) || !Load(library, "eglCreateContext", &create_context) ||
        !Load(library, "eglMakeCurrent", &make_current) || !Load(library, "eglDestroyContext", &destroy_context) ||
        !Load(library, "eglGetError", &get_error)) {
      return false;
    }
    get_platform_display =
        reinterpret_cast<decltype(get_platform_display)>(get_proc_address("eglGetPlatformDisplayEXT"));
    query_devices = reinterpret_cast<decltype(query_devices)>(get_proc_address("eglQueryDevicesEXT"));
    return get_platform_display != nullptr;
  }

  // An initialised display, or null. They live as long as the process.
  EglHandle OpenDisplay() const {
    EglHandle display = get_platform_display(kEglPlatformSurfaceless, nullptr, nullptr);
    if (display != nullptr && initialize(display, nullptr, nullptr) != 0) return display;
    EglHandle device = nullptr;
    EglInt count = 0;
    if (query_devices == nullptr || query_devices(1, &device, &count) == 0 || count == 0) return nullptr;
    display = get_platform_display(kEglPlatformDevice, device, nullptr);
    if (display != nullptr && initialize(display, nullptr, nullptr) != 0) return display;
    return nullptr;
  }
};

class EglContext : public OffscreenContext {
 public:
  EglContext(const Egl& egl, EglHandle display, EglHandle context) : egl_(egl), display_(display), context_(context) {}
  ~EglContext() override {
    egl_.make_current(display_, nullptr, nullptr, nullptr);
    egl_.destroy_context(display_, context_);
  }

 private:
  const Egl egl_;
  const EglHandle display_, context_;
};

struct OsMesa {
  void* (*create_context)(unsigned format, int depth, int stencil, int accumulation, void* share);
  unsigned char (*make_current)(void* context, void* buffer, unsigned type, int width, int height);
  void (*destroy_context)(void* context);
};

class OsMesaContext : public OffscreenContext {
 public:
  OsMesaContext(const OsMesa& mesa, void* context) : mesa_(mesa), context_(context) {}
  ~OsMesaContext() override {
    mesa_.make_current(nullptr, nullptr, kGlUnsignedByte, 0, 0);
    mesa_.destroy_context(context_);
  }
  bool MakeCurrent() { return mesa_.make_current(context_, pixel_, kGlUnsignedByte, 1, 1) != 0; }

 private:
  const OsMesa mesa_;
  void* const context_;
  uint8_t pixel_[4] = {};  // Unused window buffer: MuJoCo draws into a buffer of its own.
};

}  // namespace

absl::StatusOr<std::unique_ptr<OffscreenContext>> MakeEglContext() {
  // Local: MuJoCo finds it all the same, but takes it for the one to use if it is global, even after it has failed.
  void* const library = dlopen("libEGL.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return absl::UnavailableError(absl::StrCat("EGL: ", LastLoadError()));
  Egl egl;
  if (!egl.LoadFrom(library)) return absl::UnavailableError("EGL: libEGL.so.1 is older than 1.5");
  const EglHandle display = egl.OpenDisplay();
  if (display == nullptr) {
    return absl::UnavailableError("EGL: no display without a screen, and no device that may be used");
  }
  const auto error = [&](const char* what) {
    return absl::UnavailableError(absl::StrCat("EGL: ", what, ": error ", absl::Hex(egl.get_error())));
  };
  if (egl.bind_api(kEglOpenGlApi) == 0) return error("no OpenGL");
  const EglHandle context = egl.create_context(display, nullptr, nullptr, nullptr);
  if (context == nullptr) return error("no context");
  auto made = std::make_unique<EglContext>(egl, display, context);
  if (egl.make_current(display, nullptr, nullptr, context) == 0) return error("no context without a surface");
  return made;
}

absl::StatusOr<std::unique_ptr<OffscreenContext>> MakeOsMesaContext() {
  // Global: MuJoCo looks for OSMesaGetProcAddress among the process's symbols.
  void* library = dlopen("libOSMesa.so.8", RTLD_NOW | RTLD_GLOBAL);
  if (library == nullptr) library = dlopen("libOSMesa.so", RTLD_NOW | RTLD_GLOBAL);
  if (library == nullptr) return absl::UnavailableError(absl::StrCat("OSMesa: ", LastLoadError()));
  OsMesa mesa;
  if (!Load(library, "OSMesaCreateContextExt", &mesa.create_context) ||
      !Load(library, "OSMesaMakeCurrent", &mesa.make_current) ||
      !Load(library, "OSMesaDestroyContext", &mesa.destroy_context)) {
    return absl::UnavailableError(absl::StrCat("OSMesa: ", LastLoadError()));
  }
  void* const context = mesa.create_context(kOsMesaRgba, 24, 8, 8, nullptr);
  if (context == nullptr) return absl::UnavailableError("OSMesa: no context");
  auto made = std::make_unique<OsMesaContext>(mesa, context);
  if (!made->MakeCurrent()) return absl::UnavailableError("OSMesa: the context cannot be made current");
  return made;
}

absl::StatusOr<std::unique_ptr<OffscreenContext>> MakeOffscreenContext() {
  auto egl = MakeEglContext();
  if (egl.ok()) return egl;
  auto mesa = MakeOsMesaContext();
  if (mesa.ok()) return mesa;
  return absl::UnavailableError(
      absl::StrCat("drawing MuJoCo environments needs OpenGL without a screen (Debian: libegl1 and libgl1-mesa-dri, or "
                   "libosmesa6): ",
                   egl.status().message(), "; ", mesa.status().message()));
}

}  // namespace skein
