// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "env/external/remote_messages.h"
#include "env/external/world.h"

namespace skein::fuzz {

// What a hostile server answers to a step.
struct HostileAnswer {
  env::v1::Reply reply;        // By TakeReply, as over gRPC; its failures too.
  absl::string_view columns;   // If not empty: bytes of the columns from `observation` on, as in shared memory.
  bool answers_steps = false;  // Until then each request is answered with zeros.
};

// A World in this process whose memory is what an answer says.
class HostileWorld final : public World {
 public:
  HostileWorld(const EnvSpec& spec, size_t count, const HostileAnswer* answer)
      : spec_(spec), count_(count), answer_(answer), memory_(LayOutWorld(spec, count, nullptr, &columns_)) {
    LayOutWorld(spec, count, memory_.data(), &columns_);
  }

  const EnvSpec& spec() const override { return spec_; }
  const std::string& server() const override { return spec_.id; }
  size_t size() const override { return count_; }
  const WorldColumns& columns() const override { return columns_; }
  absl::Status Exchange(WorldRequest request, absl::Duration) override {
    if (!answer_->answers_steps) return absl::OkStatus();
    failures_.assign(answer_->reply.failures().begin(), answer_->reply.failures().end());
    if (answer_->columns.empty()) return TakeReply(answer_->reply, spec_, count_, request, columns_);
    char* const first = reinterpret_cast<char*>(columns_.observation);
    const auto room = static_cast<size_t>(memory_.data() + memory_.size() - first);
    std::memcpy(first, answer_->columns.data(), std::min(room, answer_->columns.size()));
    return absl::OkStatus();
  }
  std::vector<env::v1::Failure> TakeFailures() override { return std::exchange(failures_, {}); }

  std::vector<char>& memory() { return memory_; }

 private:
  const EnvSpec spec_;
  const size_t count_;
  const HostileAnswer* const answer_;
  WorldColumns columns_ = {};
  std::vector<char> memory_;
  std::vector<env::v1::Failure> failures_;
};

}  // namespace skein::fuzz
