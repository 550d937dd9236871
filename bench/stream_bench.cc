// SPDX-License-Identifier: Apache-2.0
// skein bench stream: our trajectory stream against a bare gRPC byte stream of the same message size.
#include <algorithm>
#include <memory>
#include <thread>

#include "CLI/CLI.hpp"
#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "actor/learner_link.h"
#include "actor/metrics.h"
#include "actor/outbox.h"
#include "actor/policy_store.h"
#include "base/net/host_port.h"
#include "base/process/cores.h"
#include "base/process/freed_memory.h"
#include "base/telemetry/format_count.h"
#include "bench/bare_stream.h"
#include "bench/fragments.h"
#include "bench/process_cpu.h"
#include "bench/receiving_learner.h"
#include "bench/verb.h"
#include "bench/verbs.h"
#include "env/env_config.h"
#include "env/registry.h"
#include "learner/run/trainer.h"

namespace skein {
namespace {

constexpr char kRate[] = "bytes_per_second";
constexpr char kRunId[] = "bench";
constexpr uint64_t kAnyLag = 1000000;
constexpr uint32_t kIterationFragments = 2;  // As the default configuration has.
constexpr uint64_t kBurstBytes = uint64_t{64} << 20;

struct StreamBenchOptions : BenchOptions {
  uint32_t in_flight = Cores() + 1;
};

// The real client side and the real server side in one process. Fragments are ready before the clock runs.
//   Outbox -> LearnerLink ==Collect stream==> LearnerService -> Collector
class StreamUnderTest {
 public:
  // `fragment` is what every message is a copy of; `in_flight` >= 1.
  static absl::StatusOr<std::unique_ptr<StreamUnderTest>> Start(const FragmentShape& shape, Fragment fragment,
                                                                uint32_t in_flight, int burst);
  ~StreamUnderTest();

  // Sends bursts until they took `duration` in all.
  absl::StatusOr<Json> Measure(absl::Duration duration, size_t message_bytes, const ShutdownSignal& shutdown);

 private:
  StreamUnderTest(Fragment fragment, int burst) : fragment_(std::move(fragment)), burst_(burst) {}
  // Answers tickets with what is ready until the outbox is stopped.
  void AnswerTickets();

  const Fragment fragment_;
  const int burst_;  // Fragments, a multiple of kIterationFragments.
  prometheus::Registry registry_;
  std::unique_ptr<ActorMetrics> metrics_;
  Outbox outbox_;
  PolicyStore policies_;
  std::unique_ptr<ReceivingLearner> learner_;
  std::unique_ptr<LearnerLink> link_;
  bool MayAnswer() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) { return stopped_ || !ready_.empty(); }
  absl::Mutex mu_;
  std::vector<Fragment> ready_ ABSL_GUARDED_BY(mu_);
  bool stopped_ ABSL_GUARDED_BY(mu_) = false;
  std::thread link_thread_, runner_thread_;
};

absl::StatusOr<std::unique_ptr<StreamUnderTest>> StreamUnderTest::Start(const FragmentShape& shape, Fragment fragment,
                                                                        uint32_t in_flight, int burst) {
  std::unique_ptr<StreamUnderTest> test(new StreamUnderTest(std::move(fragment), burst));
  // Asynchronous, so that the stream never drains, and one env group for each message that may be in flight.
  auto learner = ReceivingLearner::Start({.shape = shape,
                                          .num_envs = in_flight * static_cast<uint32_t>(shape.group_envs),
                                          .async = Collector::Async{kIterationFragments, kAnyLag}});
  if (!learner.ok()) return learner.status();
  test->learner_ = *std::move(learner);
  test->learner_->Serve(kRunId);

  LearnerLink::Options options;
  options.env_spec = shape.spec;
  options.runners = in_flight;
  options.outbox = &test->outbox_;
  options.policies = &test->policies_;
  test->metrics_ = std::make_unique<ActorMetrics>(&test->registry_, options.runners);
  options.metrics = test->metrics_.get();
  options.on_policy = [](uint64_t, const v1::PolicySnapshot&) { return absl::OkStatus(); };
  test->link_ = std::make_unique<LearnerLink>(options);
  test->link_->SetTarget({JoinHostPort("127.0.0.1", test->learner_->port()), kRunId, "actor", 1});
  test->link_thread_ = std::thread([raw = test.get()] { raw->link_->Run().IgnoreError(); });
  test->runner_thread_ = std::thread([raw = test.get()] { raw->AnswerTickets(); });
  return test;
}

StreamUnderTest::~StreamUnderTest() {
  {
    absl::MutexLock lock(&mu_);
    stopped_ = true;
  }
  outbox_.Stop();
  if (link_ != nullptr) link_->Abort();
  if (runner_thread_.joinable()) runner_thread_.join();
  if (link_thread_.joinable()) link_thread_.join();
}

void StreamUnderTest::AnswerTickets() {
  while (auto held = outbox_.TakeTicket()) {
    Fragment fragment;
    {
      absl::MutexLock lock(&mu_);
      mu_.Await(absl::Condition(this, &StreamUnderTest::MayAnswer));
      if (stopped_) return;
      fragment = std::move(ready_.back());
      ready_.pop_back();
    }
    fragment.header.set_ticket_id(held->ticket.id());
    fragment.header.set_policy_version(1);
    fragment.header.set_first_env(held->ticket.first_env());
    outbox_.PutFragment(std::move(fragment));
  }
}

absl::StatusOr<Json> StreamUnderTest::Measure(absl::Duration duration, size_t message_bytes,
                                              const ShutdownSignal& shutdown) {
  const auto healthy = [&] {
    return shutdown.signalled() ? absl::CancelledError("stopped on request") : absl::OkStatus();
  };
  const uint64_t iterations = static_cast<uint64_t>(burst_) / kIterationFragments;
  ReceivingLearner::Received sum;
  double cpu_seconds = 0, receive = 0, admit = 0;
  while (sum.elapsed < duration) {
    std::vector<Fragment> ready(burst_, fragment_);
    // Each has values of its own, so that no message repeats the previous one.
    for (Fragment& fragment : ready) fragment.block = std::make_shared<const std::string>(*fragment_.block);
    const double cpu_before = OwnCpuSeconds();
    {
      absl::MutexLock lock(&mu_);
      ready_ = std::move(ready);
    }
    const auto received = learner_->Receive(
        [&](const ReceivingLearner::Received& so_far) { return so_far.iterations >= iterations; }, healthy);
    if (!received.ok()) return received.status();
    cpu_seconds += OwnCpuSeconds() - cpu_before;
    sum.batches += received->batches;
    sum.elapsed += received->elapsed;
    receive += received->learner_seconds.at("receive");
    admit += received->learner_seconds.at("admit");
  }
  const double fragments = static_cast<double>(sum.batches), seconds = absl::ToDoubleSeconds(sum.elapsed);
  return Json{{kRate, fragments * static_cast<double>(message_bytes) / seconds},
              {"microseconds_per_batch", 1e6 * seconds / fragments},
              {"cpu_microseconds_per_batch", 1e6 * cpu_seconds / fragments},
              {"check_microseconds_per_batch", 1e6 * receive / fragments},
              {"copy_microseconds_per_batch", 1e6 * admit / fragments}};
}

absl::Status RunStreamBench(const StreamBenchOptions& options, const ShutdownSignal& shutdown) {
  KeepFreedMemory();  // As skein-actor does.
  const auto plan = PlanBenchRun(options, "auto");
  if (!plan.ok()) return plan.status();
  const v1::RunConfig& config = plan->config;
  if (absl::Status s = CheckWritable(options.json_path); !s.ok()) return s;
  ProgressLine progress = StderrProgress();
  progress.Show("collecting a fragment", -absl::Seconds(1));

  const auto env = MakeEnv(config.env().id(), MakeEnvOptions(config.env()));
  if (!env.ok()) return env.status();
  const auto trainer = Trainer::Make(config, (*env)->spec());
  if (!trainer.ok()) return trainer.status();
  const auto snapshot = (*trainer)->Snapshot(1);
  if (!snapshot.ok()) return snapshot.status();
  const auto shape = MakeFragmentShape(config);
  if (!shape.ok()) return shape.status();
  const auto fragments = CollectFragments(config, *shape, **snapshot, 1);
  if (!fragments.ok()) return fragments.status();
  const std::string message = FrameHead(fragments->at(0).header) + *fragments->at(0).block;
  const int burst = static_cast<int>(kIterationFragments *
                                     std::clamp<uint64_t>(kBurstBytes / message.size() / kIterationFragments, 1, 1024));

  const auto ours = StreamUnderTest::Start(*shape, fragments->at(0), options.in_flight, burst);
  if (!ours.ok()) return ours.status();
  const auto limit = BareStream::Make(message, burst, static_cast<int>(options.in_flight));
  if (!limit.ok()) return limit.status();

  VerbRun run;
  run.heading = absl::StrCat(config.env().id(), ": trajectory stream against bare gRPC bytes, messages of ",
                             FormatCount(message.size()), " bytes, ", options.in_flight, " in flight, bytes/s");
  run.config = DescribeConfig("stream", options, config);
  run.config["message_bytes"] = message.size();
  run.config["in_flight"] = options.in_flight;
  run.contest.rate = kRate;
  run.contest.ours_title = "stream";
  run.contest.limit_title = "bare gRPC";
  run.contest.ours = [&](absl::Duration duration) { return (*ours)->Measure(duration, message.size(), shutdown); };
  run.contest.limit = [&](absl::Duration duration) -> absl::StatusOr<Json> {
    const double cpu_before = OwnCpuSeconds();
    const auto sent = (*limit)->Send(duration);
    if (!sent.ok()) return sent.status();
    const double messages = static_cast<double>(sent->messages), seconds = absl::ToDoubleSeconds(sent->elapsed);
    return Json{{absl::StrCat("limit_", kRate), messages * static_cast<double>(message.size()) / seconds},
                {"limit_microseconds_per_batch", 1e6 * seconds / messages},
                {"limit_cpu_microseconds_per_batch", 1e6 * (OwnCpuSeconds() - cpu_before) / messages}};
  };
  run.columns = {{"microseconds_per_batch", "us/fragment"}, {"cpu_microseconds_per_batch", "CPU us/fragment"}};
  // The first pass connects and allocates.
  if (const auto s = run.contest.ours(absl::Milliseconds(1)); !s.ok()) return s.status();
  if (const auto s = run.contest.limit(absl::Milliseconds(1)); !s.ok()) return s.status();
  return MeasureAndReport(run, options, shutdown, &progress);
}

}  // namespace

void AddBenchStream(CLI::App* app, BenchAction* action) {
  CLI::App* verb = app->add_subcommand("stream", "Our trajectory stream against a bare gRPC byte stream");
  auto options = std::make_shared<StreamBenchOptions>();
  AddBenchFlags(verb, options.get());
  verb->add_option("--in-flight", options->in_flight, "Messages under way at once; one more than there are cores")
      ->check(CLI::Range(2, 1024))
      ->capture_default_str();
  verb->footer(
      "The size of a message follows from rollout.*. Example:\n"
      "  skein bench stream --set rollout.steps_per_iteration=4096 --json stream.json");
  verb->callback([options, action] {
    *action = [options](const ShutdownSignal& shutdown) { return RunStreamBench(*options, shutdown); };
  });
}

}  // namespace skein
