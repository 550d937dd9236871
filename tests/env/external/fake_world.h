// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "env/external/world.h"

namespace skein {

// A World in this process that does what a test says.
class FakeWorld final : public World {
 public:
  using Answer = std::function<absl::Status(FakeWorld*, WorldRequest)>;

  FakeWorld(const EnvSpec& spec, size_t count, Answer answer)
      : spec_(spec), count_(count), answer_(std::move(answer)), memory_(LayOutWorld(spec, count, nullptr, &columns_)) {
    LayOutWorld(spec, count, memory_.data(), &columns_);
  }

  const EnvSpec& spec() const override { return spec_; }
  const std::string& server() const override { return spec_.id; }
  size_t size() const override { return count_; }
  const WorldColumns& columns() const override { return columns_; }
  absl::Status Exchange(WorldRequest request, absl::Duration) override { return answer_(this, request); }
  std::vector<env::v1::Failure> TakeFailures() override { return std::exchange(failures_, {}); }

  // Environment `e` fails in this request.
  void Fail(size_t e, const std::string& why) {
    columns_.failed[e] = 1;
    env::v1::Failure& failure = failures_.emplace_back();
    failure.set_env(static_cast<uint32_t>(e));
    failure.set_message(why);
  }
  // Observes `value` in environment `e`, of one agent.
  void Observe(size_t e, float value) {
    std::fill_n(columns_.observation + e * static_cast<size_t>(spec_.obs_size), spec_.obs_size, value);
  }

 private:
  const EnvSpec spec_;
  const size_t count_;
  const Answer answer_;
  WorldColumns columns_ = {};
  std::vector<char> memory_;
  std::vector<env::v1::Failure> failures_;
};

}  // namespace skein
