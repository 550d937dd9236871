// SPDX-License-Identifier: Apache-2.0
#include "actor/metrics.h"

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

TEST(ActorMetrics, CountsWhatBecomesOfEachBatch) {
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

}  // namespace
}  // namespace skein
