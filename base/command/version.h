// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

// The text of --version, which all programs share.
namespace skein {

struct LibraryVersion {
  std::string name, version;
};

// What --version prints: "PROGRAM 0.1.0", the commit, then gRPC, protobuf and `libraries`, a line each with the name,
// spaces and the version.
std::string VersionText(const std::string& program, const std::vector<LibraryVersion>& libraries);

}  // namespace skein
