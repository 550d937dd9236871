// SPDX-License-Identifier: Apache-2.0
#include <cstring>
#include <string>

#include "absl/strings/str_cat.h"
#include "env/external/remote_world.h"

namespace skein {

absl::Status TakeReply(const env::v1::Reply& reply, const EnvSpec& spec, size_t count, WorldRequest request,
                       const WorldColumns& columns) {
  const WorldRow row(spec);
  struct Part {
    const char* name;
    const std::string& bytes;
    void* column;
    size_t row_bytes;
  };
  const Part parts[] = {
      {"observation", reply.observation(), columns.observation, 4 * row.observation},
      {"reward", reply.reward(), columns.reward, 4 * row.agents},
      {"terminated", reply.terminated(), columns.terminated, 1},
      {"truncated", reply.truncated(), columns.truncated, 1},
      {"active", reply.active(), columns.active, row.agents},
      {"final_observation", reply.final_observation(), columns.final_observation, 4 * row.observation},
      {"global_state", reply.global_state(), columns.global_state, 4 * row.global_state},
      {"final_global_state", reply.final_global_state(), columns.final_global_state, 4 * row.global_state},
      {"episode_metrics", reply.episode_metrics(), columns.episode_metrics, 4 * row.metrics},
      {"failed", reply.failed(), columns.failed, 1},
  };
  for (const Part& part : parts) {
    if (part.bytes.size() == count * part.row_bytes) continue;
    return absl::DataLossError(absl::StrCat("its server's ", part.name, " has ", part.bytes.size(), " bytes, want ",
                                            count * part.row_bytes, " for ", count, " environments"));
  }
  for (const Part& part : parts) {
    char* const column = static_cast<char*>(part.column);
    if (request == WorldRequest::kStep) {
      if (!part.bytes.empty()) std::memcpy(column, part.bytes.data(), part.bytes.size());
      continue;
    }
    for (size_t e = 0; e < count; ++e) {
      if (columns.mask[e] == 0 || part.row_bytes == 0) continue;
      std::memcpy(column + e * part.row_bytes, part.bytes.data() + e * part.row_bytes, part.row_bytes);
    }
  }
  return absl::OkStatus();
}

}  // namespace skein
