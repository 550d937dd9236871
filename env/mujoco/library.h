// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

// The linked MuJoCo library as a whole, without its headers. Thread-safe.
namespace skein {

// E.g. "2.2.2".
std::string MujocoLibraryVersion();

// Takes MuJoCo's warnings and errors away from its defaults, which write MUJOCO_LOG.TXT into the working directory.
// A warning is counted and the first few are printed to stderr; an error, from which MuJoCo cannot return, is
// printed and aborts the process. Done once, before any model is compiled.
void InstallMujocoHandlers();

// Warnings since the process began; not zero means that physics cannot be trusted. The newest one's text, or "".
int64_t MujocoWarningCount();
std::string LastMujocoWarning();

}  // namespace skein
