// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <dlfcn.h>

#include "gtest/gtest.h"
#include "tests/base/fake_nvml.h"

namespace skein {

// The script of the library at `path`, fresh. The library stays open while this lives.
class ScriptedNvml {
 public:
  explicit ScriptedNvml(const char* path) : handle_(dlopen(path, RTLD_NOW | RTLD_LOCAL)) {
    EXPECT_NE(handle_, nullptr) << path;
    script_ = reinterpret_cast<FakeNvml* (*)()>(dlsym(handle_, "FakeNvmlScript"))();
    *script_ = FakeNvml();
  }
  ~ScriptedNvml() { dlclose(handle_); }
  ScriptedNvml(const ScriptedNvml&) = delete;
  ScriptedNvml& operator=(const ScriptedNvml&) = delete;

  FakeNvml* operator->() { return script_; }

 private:
  void* const handle_;
  FakeNvml* script_ = nullptr;
};

}  // namespace skein
