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

std::string VersionText(const std::string& program, const std::vector<LibraryVersion>& libraries) {
  std::vector<LibraryVersion> all = {{"commit", BuildCommit()}};
#ifndef SKEIN_CORE_ONLY
  all.push_back({"gRPC", grpc::Version()});
#endif
  all.push_back({"protobuf", google::protobuf::internal::VersionString(GOOGLE_PROTOBUF_VERSION)});
  all.insert(all.end(), libraries.begin(), libraries.end());
  std::string text = absl::StrCat(program, " ", BuildVersion());
  for (const LibraryVersion& one : all) absl::StrAppendFormat(&text, "\n%-8s %s", one.name, one.version);
  return text;
}

}  // namespace skein
