// SPDX-License-Identifier: Apache-2.0
#include "base/command/version.h"

#ifndef SKEIN_CORE_ONLY
#include <grpcpp/grpcpp.h>
#endif

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/process/build_info.h"
#include "google/protobuf/stubs/common.h"

namespace skein {
namespace {

// Of the headers that this was compiled with; GOOGLE_PROTOBUF_VERSION is 3021012 for 3.21.12.
std::string ProtobufVersion() {
  constexpr int kVersion = GOOGLE_PROTOBUF_VERSION;
  return absl::StrCat(kVersion / 1'000'000, ".", kVersion / 1'000 % 1'000, ".", kVersion % 1'000);
}

}  // namespace

std::string VersionText(const std::string& program, const std::vector<LibraryVersion>& libraries) {
  std::vector<LibraryVersion> all = {{"commit", BuildCommit()}};
#ifndef SKEIN_CORE_ONLY
  all.push_back({"gRPC", grpc::Version()});
#endif
  all.push_back({"protobuf", ProtobufVersion()});
  all.insert(all.end(), libraries.begin(), libraries.end());
  std::string text = absl::StrCat(program, " ", BuildVersion());
  for (const LibraryVersion& one : all) absl::StrAppendFormat(&text, "\n%-8s %s", one.name, one.version);
  return text;
}

}  // namespace skein
