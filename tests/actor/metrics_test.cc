// SPDX-License-Identifier: Apache-2.0
#include "actor/metrics.h"

#include <cmath>

#include "gtest/gtest.h"
#include "tests/learner/sample_metrics.h"

namespace skein {
namespace {

TEST(ActorMetrics, AddsUpStagesAndKeepsThePolicyVersion) {
  prometheus::Registry registry;
  ActorMetrics metrics(&registry, 2);
  metrics.AddStage(ActorMetrics::Stage::kEnvStep, absl::Milliseconds(1500));
  metrics.AddStage(ActorMetrics::Stage::kEnvStep, absl::Milliseconds(500));
  metrics.SetPolicyVersion(7);
  EXPECT_EQ(metrics.StageSeconds().at("env_step"), 2);
  EXPECT_EQ(metrics.StageSeconds().size(), ActorMetrics::kStageNames.size());
  EXPECT_EQ(metrics.policy_version(), 7u);
}

TEST(ActorMetrics, CountsWhatBecomesOfEachFragment) {
  prometheus::Registry registry;
  ActorMetrics metrics(&registry, 2);
  for (auto result : {v1::RECEIPT_RESULT_ACCEPTED, v1::RECEIPT_RESULT_DUPLICATE, v1::RECEIPT_RESULT_STALE,
                      v1::RECEIPT_RESULT_REJECTED, v1::RECEIPT_RESULT_ACCEPTED, v1::RECEIPT_RESULT_UNSPECIFIED}) {
    metrics.CountReceipt(result);  // A result that this release does not know is ignored.
  }
  metrics.CountFragment(40);
  metrics.CountSent(100, 30);
  metrics.CountReconnection();
  EXPECT_EQ(MetricValue(registry, "skein_actor_sent_bytes_total"), 100);
  EXPECT_EQ(MetricValue(registry, "skein_actor_sent_uncompressed_bytes_total"), 130);
  int families = 0;
  for (const prometheus::MetricFamily& family : registry.Collect()) {
    EXPECT_EQ(family.name.rfind("skein_actor_", 0), 0u) << family.name;
    families += !family.metric.empty();
  }
  EXPECT_GE(families, 5);
}

bool Exports(const prometheus::Registry& registry, const std::string& name) {
  for (const prometheus::MetricFamily& family : registry.Collect()) {
    if (family.name == name) return true;
  }
  return false;
}

TEST(ActorMetrics, EfficiencyIsTheRateOverTheLimit) {
  prometheus::Registry registry;
  ActorMetrics metrics(&registry, 2);
  metrics.SetRate(100);
  for (const double no_limit : {0., -1.}) {
    for (const char* unknown :
         {"skein_actor_efficiency_ratio", "skein_actor_limit_env_steps_per_second", "skein_actor_policy_version"}) {
      ASSERT_TRUE(Exports(registry, unknown)) << unknown;
      EXPECT_TRUE(std::isnan(MetricValue(registry, unknown))) << unknown;
    }
    EXPECT_EQ(metrics.limit(), 0);
    EXPECT_EQ(metrics.policy_version(), 0u);
    metrics.SetLimit(no_limit);
    metrics.SetRate(100);
  }
  metrics.SetLimit(400);
  metrics.SetRate(100);
  EXPECT_EQ(MetricValue(registry, "skein_actor_limit_env_steps_per_second"), 400);
  EXPECT_EQ(MetricValue(registry, "skein_actor_efficiency_ratio"), 0.25);
}

TEST(ActorMetrics, ObservesRoundTripsAndTheQueue) {
  prometheus::Registry registry;
  ActorMetrics metrics(&registry, 1);
  metrics.ObserveReceipt(absl::Milliseconds(2));
  metrics.ObserveHeartbeat(absl::Milliseconds(2));
  metrics.ObserveHeartbeat(absl::Milliseconds(20));
  metrics.SetQueuedFragments(3);
  EXPECT_EQ(MetricValue(registry, "skein_actor_receipt_seconds"), 1);
  EXPECT_EQ(MetricValue(registry, "skein_actor_heartbeat_seconds"), 2);
  EXPECT_EQ(MetricValue(registry, "skein_actor_queued_batches"), 3);
  metrics.SetUndelivered(absl::Seconds(1.5));
  EXPECT_EQ(MetricValue(registry, "skein_actor_undelivered_seconds"), 1.5);
  metrics.CountDroppedFragment();
  EXPECT_EQ(MetricValue(registry, "skein_actor_dropped_batches_total"), 1);
}

}  // namespace
}  // namespace skein
