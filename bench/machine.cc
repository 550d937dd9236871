// SPDX-License-Identifier: Apache-2.0
#include "bench/machine.h"

#include <sys/utsname.h>

#include <cstdlib>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/process/cores.h"
#include "base/process/file.h"
#include "base/telemetry/proc_text.h"
#include "bench/options.h"
#include "env/registry.h"

#ifndef SKEIN_CORE_ONLY
#include "grpcpp/grpcpp.h"
#endif

namespace skein {
namespace {

std::string Compiler() {
#if defined(__clang__)
  return absl::StrCat("Clang ", __clang_version__);
#else
  return absl::StrCat("GCC ", __VERSION__);
#endif
}

std::string OperatingSystem() {
  const std::string name = ValueOfLine(ReadFile("/etc/os-release").value_or(""), "PRETTY_NAME");
  utsname kernel{};
  uname(&kernel);
  return absl::StrCat(name.empty() ? kernel.sysname : name, ", kernel ", kernel.release);
}

std::string GrpcVersion() {
#ifdef SKEIN_CORE_ONLY
  return "none";
#else
  return grpc::Version();
#endif
}

Json LoadAverage() {
  double load[3] = {0, 0, 0};
  getloadavg(load, 3);
  return {load[0], load[1], load[2]};
}

}  // namespace

std::string ValueOfLine(const std::string& text, const std::string& key) {
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    if (!absl::ConsumePrefix(&line, key)) continue;
    while (!line.empty() && (absl::ascii_isspace(line.front()) || absl::StrContains(":=\"", line.substr(0, 1)))) {
      line.remove_prefix(1);
    }
    return std::string(absl::StripSuffix(absl::StripAsciiWhitespace(line), "\""));
  }
  return "";
}

Json DescribeMachine(const std::string& torch_version) {
  const std::string cpu = ValueOfLine(ReadFile("/proc/cpuinfo").value_or(""), "model name");
  Json machine = {{"cpu", cpu.empty() ? "unknown" : cpu},
                  {"cores", Cores()},
                  {"memory_bytes", ParseMemInfoBytes(ReadFile("/proc/meminfo").value_or(""), "MemTotal")},
                  {"os", OperatingSystem()},
                  {"compiler", Compiler()},
                  {"build_type", SKEIN_BUILD_TYPE},
                  {"mujoco", MujocoVersion()},
                  {"libtorch", torch_version},
                  {"grpc", GrpcVersion()},
                  {"load_average", LoadAverage()}};
  if (torch_version.empty()) machine.erase("libtorch");
  return machine;
}

}  // namespace skein
