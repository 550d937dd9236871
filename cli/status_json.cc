// SPDX-License-Identifier: Apache-2.0
#include "cli/status_json.h"

#include "absl/strings/str_cat.h"
#include "google/protobuf/util/json_util.h"

namespace skein {

absl::StatusOr<std::string> StatusAsJson(const v1::StatusResponse& status) {
  google::protobuf::util::JsonPrintOptions options;
  options.preserve_proto_field_names = true;
  options.always_print_primitive_fields = true;
  std::string text;
  if (const auto printed = google::protobuf::util::MessageToJsonString(status, &text, options); !printed.ok()) {
    return absl::InternalError(absl::StrCat("cannot print the status: ", printed.ToString()));
  }
  return text;
}

}  // namespace skein
