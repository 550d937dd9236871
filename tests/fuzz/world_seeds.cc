// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "skein/env/v1/environment.pb.h"
#include "tests/fuzz/seeds.h"

namespace skein::fuzz {
namespace {

constexpr char kGoodText[] =
    "num_agents: 2 obs_size: 3 action_size: 1 action_low: [-1] action_high: [2] global_state_size: 4 "
    "max_episode_steps: 100 reward_threshold: 7.5 episode_metrics: [\"distance_to_goal\"]";

class WorldSeedList {
 public:
  void Add(const std::string& name, int head, const std::string& bytes) {
    seeds_.push_back({"world", name, absl::StrCat(std::string(1, static_cast<char>(head)), bytes)});
  }
  // A good answer after `change`.
  template <typename Change>
  void AddReply(const std::string& name, int head, Change change);
  template <typename Change>
  void AddRequest(const std::string& name, Change change);
  template <typename Change>
  void AddWelcome(const std::string& name, Change change);
  std::vector<Seed> Take() { return std::move(seeds_); }

 private:
  std::vector<Seed> seeds_;
};

std::string Floats(const std::vector<float>& values) {
  return std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
}

// Of three environments, of which the second has ended its episode: sizes as world_target.cc says.
template <typename Change>
void WorldSeedList::AddReply(const std::string& name, int head, Change change) {
  env::v1::ServerMessage message;
  env::v1::Reply& reply = *message.mutable_reply();
  reply.set_sequence(1);
  reply.set_observation(Floats({0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}));
  reply.set_reward(Floats({1, 2, 3, 4, 5, 6}));
  reply.set_terminated(std::string("\0\1\0", 3));
  reply.set_truncated(std::string(3, '\0'));
  reply.set_active(std::string("\1\1\1\1\1\0", 6));
  reply.set_final_observation(Floats(std::vector<float>(12, 0.5f)));
  reply.set_global_state(Floats({1, 2, 3}));
  reply.set_final_global_state(Floats({4, 5, 6}));
  reply.set_episode_metrics(Floats({7, 8, 9}));
  reply.set_failed(std::string(3, '\0'));
  change(&reply);
  Add(name, head, message.SerializeAsString());
}

// A good step of three environments after `change`, which may make it a reset.
template <typename Change>
void WorldSeedList::AddRequest(const std::string& name, Change change) {
  env::v1::ClientMessage message;
  env::v1::Step& step = *message.mutable_step();
  step.set_sequence(1);
  step.set_action(Floats({-1, -0.5, 0, 0.5, 1, 0}));
  step.set_next_seed(std::string("\1\0\0\0\2\0\0\0\3\0\0\x7f", 12));
  change(&message);
  Add(name, 6, message.SerializeAsString());
}

template <typename Change>
void WorldSeedList::AddWelcome(const std::string& name, Change change) {
  env::v1::ServerMessage message;
  env::v1::Welcome& welcome = *message.mutable_welcome();
  welcome.set_version(1);
  welcome.set_server("skein-env");
  env::v1::Spec& spec = *welcome.mutable_spec();
  spec.set_name("Sample-v1");
  spec.set_num_agents(2);
  spec.set_obs_size(3);
  spec.set_action_size(1);
  spec.add_action_low(-1);
  spec.add_action_high(2);
  spec.set_max_episode_steps(100);
  spec.set_reward_threshold(7.5);
  spec.add_episode_metrics("distance_to_goal");
  change(&welcome);
  Add(name, 1, message.SerializeAsString());
}

// SkeinEnvSpec of one agent, one number and real actions within -1 and 1, as world_target.cc reads it.
std::string PluginSpec(uint32_t action_size, uint32_t num_metrics, const std::string& names) {
  const uint32_t sizes[] = {1, 1, 0, action_size, 0, 100}, counts[] = {num_metrics, 0};
  const double reward_threshold = 0.5;
  std::string bytes(sizeof(sizes) + sizeof(reward_threshold) + sizeof(counts), '\0');
  std::memcpy(bytes.data(), sizes, sizeof(sizes));
  std::memcpy(bytes.data() + sizeof(sizes), &reward_threshold, sizeof(reward_threshold));
  std::memcpy(bytes.data() + sizeof(sizes) + sizeof(reward_threshold), counts, sizeof(counts));
  return absl::StrCat(bytes, Floats({-1, 1}), names);
}

}  // namespace

std::vector<Seed> WorldSeeds() {
  WorldSeedList seeds;
  seeds.Add("good_text", 0, kGoodText);
  seeds.Add("bad_text", 0, "num_agents: x");
  seeds.Add("bad_text_agents", 0, "num_agents: 4097 obs_size: 3 discrete: true action_size: 2");
  seeds.Add("bad_text_empty", 0, "");
  seeds.AddWelcome("good_welcome", [](env::v1::Welcome*) {});
  seeds.AddWelcome("bad_welcome_version", [](env::v1::Welcome* welcome) { welcome->set_version(2); });
  seeds.AddWelcome("bad_welcome_bounds", [](env::v1::Welcome* welcome) { welcome->mutable_spec()->add_action_low(0); });
  seeds.AddWelcome("bad_welcome_metric",
                   [](env::v1::Welcome* welcome) { welcome->mutable_spec()->set_episode_metrics(0, "a\nb"); });
  seeds.AddWelcome("bad_welcome_state", [](env::v1::Welcome* welcome) { welcome->mutable_spec()->set_state_size(1); });
  env::v1::ServerMessage failure;
  failure.mutable_failure()->set_message("no such module\n\x1b[2J");
  failure.mutable_failure()->set_unusable(true);
  seeds.Add("bad_failure", 1, failure.SerializeAsString());
  seeds.Add("bad_message", 1, "\xff\xff\xff");
  seeds.Add("good_library", 2, PluginSpec(1, 1, std::string("left\0", 5)));
  seeds.Add("bad_library_action_size", 2, PluginSpec(1u << 31, 0, ""));
  seeds.Add("bad_library_metrics", 2, PluginSpec(1, 1u << 31, std::string("left\0", 5)));
  seeds.Add("bad_library_name", 2, PluginSpec(1, 1, ""));
  seeds.Add("good_memory", 3, Floats({0, 1, 2, 3}));
  seeds.Add("bad_memory_nan", 3, Floats({0, NAN}));
  seeds.Add("bad_memory_large", 3, Floats({0, 0, 0, 0, 1e7f}));
  seeds.AddReply("good_reset", 4 | 5 << 3, [](env::v1::Reply*) {});
  seeds.AddReply("bad_reset_long", 4 | 5 << 3, [](env::v1::Reply* reply) { reply->mutable_reward()->push_back('\0'); });
  seeds.AddReply("good_step", 5, [](env::v1::Reply*) {});
  seeds.AddReply("bad_step_short", 5, [](env::v1::Reply* reply) { reply->mutable_observation()->pop_back(); });
  seeds.AddReply("bad_step_nothing", 5, [](env::v1::Reply* reply) { reply->Clear(); });
  seeds.AddReply("bad_step_flag", 5, [](env::v1::Reply* reply) { reply->mutable_truncated()->at(1) = 1; });
  seeds.AddReply("bad_step_active", 5, [](env::v1::Reply* reply) { reply->mutable_active()->at(0) = 2; });
  seeds.AddReply("bad_step_failed", 5, [](env::v1::Reply* reply) {
    reply->mutable_failed()->at(2) = 1;
    for (const uint32_t env : {2u, 7u, 0xffffffffu}) {
      env::v1::Failure& failure = *reply->add_failures();
      failure.set_env(env);
      failure.set_message("ZeroDivisionError: division by zero (env.py:12 in step)");
    }
  });
  using Request = env::v1::ClientMessage;
  const auto reset = [](Request* request, const std::string& mask) {
    request->mutable_reset()->set_sequence(1);
    request->mutable_reset()->set_mask(mask);
    request->mutable_reset()->set_seed(std::string(12, '\1'));
  };
  seeds.AddRequest("good_request_step", [](Request*) {});
  seeds.AddRequest("good_request_reset", [&](Request* request) { reset(request, std::string("\1\0\1", 3)); });
  seeds.AddRequest("bad_request_short",
                   [](Request* request) { request->mutable_step()->mutable_action()->pop_back(); });
  seeds.AddRequest("bad_request_nan", [](Request* request) {
    request->mutable_step()->set_action(Floats({0, 0, NAN, 0, 0, 0}));
  });
  seeds.AddRequest("bad_request_large", [](Request* request) {
    request->mutable_step()->set_action(Floats({0, 0, 0, 0, 0, 1.5f}));
  });
  seeds.AddRequest("bad_request_seed",
                   [](Request* request) { request->mutable_step()->set_next_seed(std::string(12, '\xff')); });
  seeds.AddRequest("bad_request_mask", [&](Request* request) { reset(request, "\1\2\1"); });
  seeds.AddRequest("bad_request_hello", [](Request* request) { request->mutable_hello()->set_version(1); });
  return seeds.Take();
}

}  // namespace skein::fuzz
