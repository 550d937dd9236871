// SPDX-License-Identifier: Apache-2.0
#include "bench/fragments.h"

#include <atomic>
#include <thread>
#include <utility>

#include "actor/metrics.h"
#include "actor/outbox.h"
#include "actor/policy_store.h"
#include "actor/runner.h"
#include "actor/runner_env.h"
#include "bench/env_loops.h"
#include "env/env_config.h"
#include "env/registry.h"
#include "policy/snapshot.h"
#include "prometheus/registry.h"
#include "trajectory/env_spec_info.h"

namespace skein {
namespace {

constexpr uint64_t kStream = 1;

}  // namespace

absl::StatusOr<std::vector<Fragment>> CollectFragments(const v1::RunConfig& config, const FragmentShape& shape,
                                                       const v1::PolicySnapshot& snapshot, uint32_t groups) {
  auto env = MakeEnv(config.env().id(), MakeEnvOptions(config.env()));
  if (!env.ok()) return env.status();
  auto policy = ReadSnapshot(snapshot, MakePolicySpec(config.model(), (*env)->spec()));
  if (!policy.ok()) return policy.status();

  prometheus::Registry registry;
  ActorMetrics metrics(&registry, 1);
  Outbox outbox;
  PolicyStore policies;
  HeldEnvs held_envs;
  StepSharing sharing([&outbox] { outbox.Nudge(); });
  std::atomic<bool> stop{false};
  EnvRebuilds rebuilds(
      config.rollout().env_rebuilds(), [&config](uint32_t) { return MakeRunnerEnv(config); }, &metrics);
  auto runner = Runner::Make(config, &rebuilds, &held_envs, &outbox, &policies, &sharing, &metrics, &stop);
  if (!runner.ok()) return runner.status();
  policies.BeginStream(kStream);
  policies.Put(kStream, *policy);
  outbox.BeginConnection("bench", 1);
  outbox.BeginStream(kStream, 0);
  for (uint32_t group = 0; group < groups; ++group) {
    v1::Ticket ticket;
    ticket.set_id(group + 1);
    ticket.set_policy_version(snapshot.version());
    ticket.set_first_env(static_cast<uint32_t>(group * shape.group_envs));
    ticket.set_group_envs(static_cast<uint32_t>(shape.group_envs));
    ticket.set_steps(static_cast<uint32_t>(shape.steps));
    outbox.AddTicket(kStream, ticket);
  }
  absl::Status ran;
  std::thread thread([&] {
    ran = (*runner)->Run();
    outbox.EndStream(kStream);  // If it failed, nothing more comes.
  });
  std::vector<Fragment> fragments;
  while (fragments.size() < groups) {
    const auto fragment = outbox.NextToSend(kStream);
    if (fragment == nullptr) break;
    fragments.push_back(*fragment);
  }
  outbox.Stop();
  thread.join();
  if (!ran.ok()) return ran;
  return fragments;
}

}  // namespace skein
