// SPDX-License-Identifier: Apache-2.0
// What comes over a trajectory stream and is not what it should be: refused by name, counted, paid for by nobody else.
#include <functional>
#include <optional>

#include "base/net/grpc_transport.h"
#include "env/vector_env.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/faults/live_members.h"
#include "tests/faults/stranger.h"
#include "tests/fuzz/mutation.h"
#include "tests/learner/sample_fragment.h"
#include "tests/testing/fault_choice.h"
#include "tests/testing/wait_until.h"

namespace skein {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

constexpr char kRejected[] = "skein_learner_batches_total{result=\"rejected\"}";
constexpr char kMalformed[] = "skein_learner_malformed_messages_total";

// What a fragment of configs/cartpole_ppo.yaml looks like: 1024 / 8 steps of 4 environments.
FragmentShape CartPoleShape() {
  FragmentShape shape = MakeSampleShape({.T = 128, .E = 4, .O = 4, .D = 2, .discrete = true});
  shape.env_state_size = VectorEnv::Make({.env_id = "CartPole-v1"}).value()->state_size();
  return shape;
}

SampleFragment StrangersFragment(uint64_t sequence) {
  SampleFragment fragment = MakeSampleFragment(CartPoleShape());
  SampleField* state = fragment.Find("env_state");
  state->data.assign(state->data.size(), '\0');  // Every environment at its beginning.
  fragment.header.set_actor_id("stranger");
  fragment.header.set_ticket_id(0);  // Nobody's.
  fragment.header.set_sequence(sequence);
  fragment.header.set_env_steps_collected(sequence * 128 * 4);
  return fragment;
}

// A learner with one honest actor, in a run without end.
class FaultRow22 : public testing::Test {
 protected:
  FaultRow22() {
    cluster_.StartCoordinator();
    cluster_.StartLearner();
    actor_ = cluster_.StartActor();
    WaitForTraining();
  }
  // Two more iterations are trained on.
  void WaitForTraining() {
    uint64_t first = 0;
    ASSERT_TRUE(cluster_.WaitForStatus([&](const v1::StatusResponse& status) {
      const uint64_t trained = status.progress().account().trained();
      if (first == 0) first = trained;
      return trained > first + 2048;
    }));
  }
  double Metric(const std::string& series) { return MetricOf(cluster_.learner().Output(), series); }

  Cluster cluster_{{"total_steps=1000000000", "model.normalize_observations=true"}};
  std::unique_ptr<Running> actor_;
};

// The stranger's next receipt: tickets may come before it, if the honest actor leaves some.
std::optional<v1::Receipt> ReadReceipt(Stranger* stranger) {
  while (const auto response = stranger->Read()) {
    if (response->has_receipt()) return response->receipt();
  }
  return std::nullopt;
}

struct Damage {
  const char* what;
  std::function<void(SampleFragment*)> change;
  const char* message;  // The receipt's begins with it.
};

std::vector<Damage> AllDamages() {
  const auto field = [](const char* name, std::function<void(SampleField*)> change) {
    return [name, change](SampleFragment* fragment) { change(fragment->Find(name)); };
  };
  return {
      {"bytes missing", field("obs", [](SampleField* f) { f->data.pop_back(); }),
       "fields.obs: has 8255 bytes, want 8256"},
      {"another dtype", field("obs", [](SampleField* f) { f->dtype = v1::DATA_TYPE_FLOAT64; }),
       "fields.obs: dtype is "},
      {"a huge size", field("reward", [](SampleField* f) { f->claimed_bytes = uint64_t{1} << 40; }),
       "fields.reward: has 1099511627776 bytes, want 2048"},
      {"a sum of sizes that overflows",
       [](SampleFragment* fragment) {
         for (SampleField& f : fragment->fields) f.claimed_bytes = uint64_t{1} << 63;
       },
       "fields.obs: has 9223372036854775808 bytes"},
      {"a block that is cut off",
       field("episode_length",
             [](SampleField* f) {
               f->data = "12345678";
               f->claimed_bytes = 0;
             }),
       "fields: their block has "},
      {"counts that no fragment has", [](SampleFragment* fragment) { fragment->header.set_truncations(1u << 31); },
       "truncations, episodes: got 2147483648, 0"},
      {"counts that the flags do not have", field("truncated", [](SampleField* f) { f->data[7] = 1; }),
       "truncations, episodes: got 0, 0, the flags say 1, 1"},
      {"no environments", [](SampleFragment* fragment) { fragment->header.set_group_envs(0); },
       "steps x group_envs is 128 x 0"},
      {"a frame that is none", field("obs", [](SampleField* f) { f->compression = v1::COMPRESSION_ZSTD; }),
       "fields.obs: is no zstd frame"},
      {"a field missing", field("reward", [](SampleField* f) { f->name = "rewards"; }), "fields.reward: missing"},
  };
}

TEST_F(FaultRow22, AMalformedFragmentIsRefusedByNameAndCounted) {
  Stranger stranger(LearnerAddress(&cluster_), CoordinatorAddress(&cluster_));
  const double rejected_before = Metric(kRejected);
  uint64_t generation = 0;
  int refused = 0;
  for (const Damage& damage : AllDamages()) {
    ASSERT_TRUE(stranger.Enter(++generation));
    SampleFragment fragment = StrangersFragment(1);
    damage.change(&fragment);
    stranger.SendBytes(fragment.Bytes());
    const auto receipt = ReadReceipt(&stranger);
    ASSERT_TRUE(receipt) << damage.what;
    EXPECT_EQ(receipt->result(), v1::RECEIPT_RESULT_REJECTED) << damage.what;
    EXPECT_THAT(receipt->message(), StartsWith(damage.message)) << damage.what;
    ++refused;
    // The intact fragment is read, and only not wanted.
    stranger.SendBytes(StrangersFragment(2).Bytes());
    const auto second = ReadReceipt(&stranger);
    ASSERT_TRUE(second);
    EXPECT_EQ(second->result(), v1::RECEIPT_RESULT_STALE) << second->message();
  }
  EXPECT_EQ(Metric(kRejected) - rejected_before, refused);

  // Three in a row, and the stream ends with the last one's reason.
  ASSERT_TRUE(stranger.Enter(++generation));
  for (uint64_t sequence = 1; sequence <= 3; ++sequence) {
    SampleFragment fragment = StrangersFragment(sequence);
    fragment.Find("obs")->data.clear();
    stranger.SendBytes(fragment.Bytes());
  }
  const grpc::Status end = stranger.End();
  EXPECT_EQ(end.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(end.error_message(), HasSubstr("fields.obs: has 0 bytes, want 8256"));
  WaitForTraining();
}

// A member that serves its tickets until its stream is ended: with observations of 1e25, then with rewards of 1e20.
void ServeLies(Stranger* stranger, uint64_t generation) {
  constexpr float kObservation = 1e25f, kReward = 1e20f;
  const bool of_rewards = generation % 2 == 0;
  v1::CollectRequest hello = stranger->Hello(generation);
  hello.mutable_hello()->set_runners(1);
  hello.mutable_hello()->set_ticket_credits(1);
  stranger->Open();
  stranger->Send(hello);
  const std::string reason = of_rewards ? "fields.reward: element 7 is 1e+20, want magnitudes up to 1e+06"
                                        : "fields.obs: element 7 is 1e+25, want magnitudes up to 1e+06";
  uint64_t sequence = 0;
  while (const auto response = stranger->Read()) {
    if (response->has_ticket()) {
      const v1::Ticket& ticket = response->ticket();
      SampleFragment fragment = StrangersFragment(++sequence);
      fragment.header.set_ticket_id(ticket.id());
      fragment.header.set_first_env(ticket.first_env());
      fragment.header.set_policy_version(ticket.policy_version());
      for (const char* name : {"log_prob", "reward", "obs"}) {
        std::string& data = fragment.Find(name)->data;
        data.assign(data.size(), '\0');
      }
      if (of_rewards) {
        SetElement(fragment.Find("reward"), 7, kReward);
      } else {
        SetElement(fragment.Find("obs"), 7, kObservation);
      }
      stranger->SendBytes(fragment.Bytes());
    } else if (response->has_receipt()) {
      EXPECT_EQ(response->receipt().result(), v1::RECEIPT_RESULT_REJECTED) << response->receipt().message();
      EXPECT_EQ(response->receipt().message(), reason);
    }
  }
  const grpc::Status end = stranger->End();
  EXPECT_EQ(end.error_code(), grpc::StatusCode::INVALID_ARGUMENT) << end.error_message();
  EXPECT_THAT(end.error_message(), HasSubstr("three fragments in a row were rejected, the last because of " + reason));
}

TEST_F(FaultRow22, AnActorWhoseNumbersAreAbsurdIsRefusedAndTrainingReachesItsReturn) {
  constexpr double kReturn = 300;  // Of 500. One such fragment in the statistics would keep it under 150.
  Stranger stranger(LearnerAddress(&cluster_), CoordinatorAddress(&cluster_));
  const double rejected_before = Metric(kRejected);
  const uint64_t begin = EnvSteps(cluster_);
  uint64_t generation = 0;
  EXPECT_TRUE(cluster_.WaitForStatus(
      [&](const v1::StatusResponse& status) {
        const v1::RunProgress& progress = status.progress();
        if (progress.env_steps() > begin + 20 * 1024 && progress.mean_episode_return() >= kReturn) return true;
        ServeLies(&stranger, ++generation);
        return HasFailure();
      },
      absl::Minutes(3)));
  EXPECT_GE(generation, 1u);
  EXPECT_EQ(Metric(kRejected) - rejected_before, 3 * generation);
}

TEST_F(FaultRow22, AMessageThatCannotBeReadEndsItsStreamAndIsCounted) {
  Stranger stranger(LearnerAddress(&cluster_), CoordinatorAddress(&cluster_));
  const std::string whole = StrangersFragment(1).Bytes();
  v1::CollectRequest goodbye;
  goodbye.mutable_goodbye();
  const std::vector<std::string> messages = {whole.substr(0, 20),                        // Cut off within its header.
                                             FrameHead(goodbye) + "block",               // Values of no fragment.
                                             std::string("SKF\x02\xff\xff\xff\x7f", 8),  // Says that 2 GiB follow.
                                             goodbye.SerializeAsString(),                // Without a frame.
                                             "GET / HTTP/1.1\r\n\r\n",
                                             std::string(500, '\xff')};
  const double before = Metric(kMalformed);
  uint64_t generation = 100;
  for (const std::string& message : messages) {
    ASSERT_TRUE(stranger.Enter(++generation));
    stranger.SendBytes(message);
    const grpc::Status end = stranger.End();
    EXPECT_EQ(end.error_code(), grpc::StatusCode::INVALID_ARGUMENT) << end.error_message();
    EXPECT_THAT(end.error_message(), StartsWith("message: "));
  }
  EXPECT_EQ(Metric(kMalformed) - before, messages.size());
  WaitForTraining();
}

TEST_F(FaultRow22, MutatedFragmentsNeitherStopTheLearnerNorFillItsMemory) {
  const std::string whole = StrangersFragment(1).Bytes();
  const size_t memory_before = ResidentBytes(cluster_.learner().pid());
  Stranger stranger(LearnerAddress(&cluster_), CoordinatorAddress(&cluster_));
  std::mt19937 random = FaultRandom(22);
  SayChoice("630 mutations of a fragment");
  uint64_t generation = 1000;
  // Fewer streams than a connection may have reset at once (base/net/connection_guard.h).
  for (int i = 0; i < 90; ++i) {
    ASSERT_TRUE(stranger.Enter(++generation));
    for (int j = 0; j < 7; ++j) stranger.SendBytes(fuzz::Mutate(whole, &random));
    v1::CollectRequest goodbye;
    goodbye.mutable_goodbye();
    stranger.Send(goodbye);
    // Whatever has become of them, an answer or the end comes.
    const auto response = stranger.Read();
    if (response) continue;
    const grpc::Status end = stranger.End();
    EXPECT_EQ(end.error_code(), grpc::StatusCode::INVALID_ARGUMENT) << i << ": " << end.error_message();
  }
  WaitForTraining();
  EXPECT_FALSE(cluster_.learner().ended());
  // Accounts of closed connections stay; what was declared would be gigabytes.
  EXPECT_LT(ResidentBytes(cluster_.learner().pid()), memory_before + (64 << 20));
}

TEST(FaultRow23, MessagesOverTheLimitAreRefusedAndTheirMemoryServesTheNext) {
  Cluster cluster({"total_steps=1000000000"});
  cluster.StartCoordinator();
  cluster.StartLearner();
  Stranger stranger(ServingLearner(&cluster), CoordinatorAddress(&cluster));
  uint64_t generation = 0;
  const auto send = [&](int messages) {
    for (int i = 0; i < messages; ++i) {
      ASSERT_TRUE(stranger.Enter(++generation));
      stranger.SendBytes(std::string(kMaxMessageBytes + 1, 'x'));
      const grpc::Status end = stranger.End();
      EXPECT_EQ(end.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED) << end.error_message();
      EXPECT_THAT(end.error_message(), HasSubstr("33554433"));
    }
  };
  // gRPC puts a message together before it looks at its size. What that took is given back at the next heartbeat.
  const size_t before = ResidentBytes(cluster.learner().pid());
  send(18);
  EXPECT_TRUE(WaitUntil([&] { return ResidentBytes(cluster.learner().pid()) < before + kMaxMessageBytes; }));
  // The stream reopens, on the same connection, and one byte less is received: it is only no message of ours.
  ASSERT_TRUE(stranger.Enter(++generation));
  stranger.SendBytes(std::string(kMaxMessageBytes, 'x'));
  const grpc::Status refused = stranger.End();
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::INVALID_ARGUMENT) << refused.error_message();
  const auto actor = cluster.StartActor();
  EXPECT_TRUE(cluster.WaitForStatus(
      [](const v1::StatusResponse& status) { return status.progress().account().trained() > 0; }));
}

TEST(FaultRow23, AnIterationThatNoMessageCanCarryIsSplitIntoFragmentsThatFit) {
  // Ten UAVs: 2,048 steps of 4 environments may take 61 MB.
  constexpr uint64_t kIteration = 8 * 2048, kFragment = 4 * 2048;
  Cluster cluster({kEndless, "env.id=UavNavigate-v0", "rollout.steps_per_iteration=16384", "ppo.epochs=1",
                   "ppo.minibatch_size=16384"});
  cluster.StartCoordinator();
  cluster.StartLearner();
  const auto actor = cluster.StartActor();
  uint64_t trained = 0;
  ASSERT_TRUE(cluster.WaitForStatus(
      [&](const v1::StatusResponse& status) {
        EXPECT_EQ(status.progress().account().rejected(), 0u);
        trained = status.progress().account().trained();
        return trained > 0;
      },
      absl::Minutes(2)));
  EXPECT_EQ(trained % kIteration, 0u);
  uint64_t delivered = 0;
  for (const HistoryEvent& fragment : cluster.History()) {
    if (fragment.event != "batch" || fragment.Text("result") != "accepted") continue;
    EXPECT_LE(fragment.Number("env_steps"), kFragment / 2);
    delivered += fragment.Number("env_steps");
  }
  EXPECT_GE(delivered, trained);
  EXPECT_EQ(actor->Output().find("broke"), std::string::npos);
}

TEST(FaultRow23, FragmentsThatNoMessageCanCarryAreRefusedAtTheStartWithWhatToSet) {
  // 400,000 steps x 4 environments of 2 x 16 bytes of observations and more: over 32 MiB.
  Cluster cluster({"rollout.num_envs=4", "rollout.envs_per_runner=4", "rollout.steps_per_iteration=1600000",
                   "rollout.fragment_steps=400000"});
  cluster.StartCoordinator();
  Running learner("skein-learner", {"--coordinator", CoordinatorAddress(&cluster), "--run-dir", cluster.run_folder()});
  EXPECT_EQ(learner.WaitForEnd(), 64);
  EXPECT_THAT(learner.Output(), HasSubstr("messages are limited to 33554432; lower rollout.fragment_steps"));
}

}  // namespace
}  // namespace skein
