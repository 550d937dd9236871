// SPDX-License-Identifier: Apache-2.0
#include "actor/learner_link.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "actor/frame_bytes.h"
#include "actor/policy_call.h"
#include "base/net/backoff.h"
#include "base/net/grpc_transport.h"
#include "base/process/clock.h"
#include "base/process/steady_wait.h"
#include "base/telemetry/history_recorder.h"
#include "base/telemetry/log.h"

namespace skein {
namespace {

constexpr absl::Duration kFirstBackoff = absl::Milliseconds(50);
constexpr absl::Duration kLongestBackoff = absl::Seconds(2);

// One ticket beyond what the runners work on, so that none waits for the learner between two fragments.
constexpr uint32_t kPrefetchedTickets = 1;

bool IsFinal(const absl::Status& status) {
  return absl::IsAborted(status) || absl::IsFailedPrecondition(status) || absl::IsInvalidArgument(status) ||
         absl::IsUnauthenticated(status);
}

bool SameMember(const LearnerLink::Target& a, const LearnerLink::Target& b) {
  return a.run_id == b.run_id && a.actor_id == b.actor_id && a.generation == b.generation;
}

}  // namespace

void LearnerLink::SetTarget(const Target& target) {
  uint64_t left_stream = 0;
  {
    absl::MutexLock lock(&mu_);
    if (target == target_) return;
    if (target_.address.empty()) alone_since_ = MonotonicNow();
    target_ = target;
    if (collect_context_ == nullptr) return;
    if (connected_.address.empty() || target.address.empty() || !SameMember(connected_, target)) {
      collect_context_->TryCancel();
      return;
    }
    if (!std::exchange(leaving_, true)) {
      spdlog::info("leaving the learner at {} for the one at {}", connected_.address, target.address);
    }
    left_stream = stream_;
  }
  options_.outbox->LeaveStream(left_stream);  // May send, which looks at what this mutex guards.
}

void LearnerLink::Stop() {
  absl::MutexLock lock(&mu_);
  stopping_ = true;
}

void LearnerLink::Abort() {
  absl::MutexLock lock(&mu_);
  aborted_ = true;
  if (collect_context_ != nullptr) collect_context_->TryCancel();
  if (subscribe_context_ != nullptr) subscribe_context_->TryCancel();
}

bool LearnerLink::finished() const {
  absl::MutexLock lock(&mu_);
  return finished_;
}

absl::Duration LearnerLink::undelivered() const {
  const absl::Duration waiting = options_.outbox->waiting();
  absl::MutexLock lock(&mu_);
  const bool alone = !target_.address.empty() && connected_.address.empty() && !ended_;
  return std::max(waiting, alone ? MonotonicNow() - alone_since_ : absl::ZeroDuration());
}

void LearnerLink::SetContext(const Target& target, grpc::ClientContext* collect) {
  absl::MutexLock lock(&mu_);
  collect_context_ = collect;
  if (collect != nullptr && (aborted_ || !(target == target_))) collect->TryCancel();
}

absl::Status LearnerLink::Run() {
  const absl::Status status = ServeConnections();
  absl::MutexLock lock(&mu_);
  ended_ = true;
  return status;
}

void LearnerLink::WaitUntilEnded(absl::Duration timeout) {
  absl::MutexLock lock(&mu_);
  AwaitFor(&mu_, absl::Condition(&ended_), timeout);
}

absl::Status LearnerLink::ServeConnections() {
  Backoff backoff(kFirstBackoff, kLongestBackoff);
  Target target;
  uint64_t stay = 0;
  while (true) {
    {
      absl::MutexLock lock(&mu_);
      mu_.Await(absl::Condition(this, &LearnerLink::ReadyToConnect));
      if (StopWaiting()) return absl::OkStatus();
      if (!SameMember(target, target_)) {
        stay = 0;
      } else if (course_.left || target.address != target_.address) {
        ++stay;
      }
      target = target_;
    }
    const absl::Status status = ServeOneConnection(target, stay);
    absl::MutexLock lock(&mu_);
    if (finished_ || StopWaiting()) return absl::OkStatus();
    if (!too_large_.ok()) return too_large_;
    if (!(target == target_) || course_.left) continue;
    if (IsFinal(status)) return status;
    if (course_.welcomed) {
      spdlog::warn("connection to the learner at {} broke: {}; connecting again", target.address, status.ToString());
      options_.metrics->CountReconnection();
      backoff.Reset();
    } else {
      spdlog::debug("no connection to the learner at {} yet: {}", target.address, status.ToString());
    }
    AwaitFor(&mu_, absl::Condition(this, &LearnerLink::StopWaiting), backoff.Next());
  }
}

absl::Status LearnerLink::ServeOneConnection(const Target& target, uint64_t stay) {
  const std::shared_ptr<grpc::Channel> channel = OpenChannel(target.address);
  const auto stub = v1::Learner::NewStub(channel);
  {
    absl::MutexLock lock(&mu_);
    ++stream_;
    course_ = {};
  }
  grpc::ClientContext context;
  SetContext(target, &context);
  CollectCall collect({
      .next = [this] { return NextRequest(); },
      .on_response = [&](const v1::CollectResponse& response) { Receive(target, response); },
      .on_sent = [this](absl::Duration took) { NoteTaken(took); },
      .on_done = [this] { CollectIsOver(); },
  });
  collect.Start(channel, &context, FrameBytes(MakeHello(target, stay)));
  options_.outbox->Watch([&] { collect.Pump(); });
  if (AwaitWelcome()) {
    spdlog::info("connected to the learner at {}", target.address);
    // First: behind a backlog on a slow link the request for policies, without which no ticket is begun, would wait.
    Subscribe(target, stub.get(), [&] {
      {
        absl::MutexLock lock(&mu_);
        course_.may_send = true;
      }
      collect.Pump();
    });
  }
  options_.outbox->Watch(nullptr);
  const absl::Status status = collect.Wait();
  {
    absl::MutexLock lock(&mu_);
    if (course_.welcomed) alone_since_ = MonotonicNow();
    leaving_ = false;
    connected_ = {};
  }
  SetContext(target, nullptr);
  return status;
}

v1::CollectRequest LearnerLink::MakeHello(const Target& target, uint64_t stay) {
  const uint64_t generation = target.generation + stay;
  const Outbox::Connection before = options_.outbox->BeginConnection(
      target.actor_id, generation, stay > 0 ? Outbox::Undelivered::kSentAgain : Outbox::Undelivered::kGivenUp);
  v1::CollectRequest request;
  v1::Hello& hello = *request.mutable_hello();
  hello.set_protocol_major(kProtocolMajor);
  hello.set_protocol_minor(kProtocolMinor);
  hello.set_run_id(target.run_id);
  hello.set_actor_id(target.actor_id);
  hello.set_generation(generation);
  hello.set_ticket_credits(options_.runners + kPrefetchedTickets);
  hello.set_runners(options_.runners);
  *hello.mutable_env_spec() = options_.env_spec;
  hello.set_previous_actor_id(before.actor_id);
  hello.set_previous_generation(before.generation);
  hello.set_previous_env_steps_collected(before.env_steps_collected);
  return request;
}

void LearnerLink::Receive(const Target& target, const v1::CollectResponse& response) {
  uint64_t stream;
  bool welcomed;
  {
    absl::MutexLock lock(&mu_);
    stream = stream_;
    welcomed = course_.welcomed;
    if (!welcomed && !response.has_welcome()) {
      collect_context_->TryCancel();
      return;
    }
    if (response.has_finished()) finished_ = true;
  }
  if (!welcomed) {
    options_.policies->BeginStream(stream);
    options_.outbox->BeginStream(stream, response.welcome().last_sequence());
    absl::MutexLock lock(&mu_);
    course_.welcomed = true;
    connected_ = target;
    sent_.clear();
  }
  if (response.has_receipt()) {
    options_.outbox->Acknowledge(response.receipt());
    NoteReceipt(response.receipt());
    if (!response.receipt().message().empty()) {
      spdlog::debug("fragment {}: {}", response.receipt().sequence(), response.receipt().message());
    }
  }
  if (response.has_ticket()) options_.outbox->AddTicket(stream, response.ticket());
}

bool LearnerLink::AwaitWelcome() {
  absl::MutexLock lock(&mu_);
  mu_.Await(absl::Condition(this, &LearnerLink::WelcomedOrOver));
  return course_.welcomed;
}

void LearnerLink::CollectIsOver() {
  uint64_t stream;
  {
    absl::MutexLock lock(&mu_);
    stream = stream_;
    course_.over = true;
    if (subscribe_context_ != nullptr) subscribe_context_->TryCancel();
  }
  options_.outbox->EndStream(stream);
}

void LearnerLink::NoteTaken(absl::Duration took) {
  options_.metrics->AddStage(ActorMetrics::Stage::kSend, took);
  absl::MutexLock lock(&mu_);
  options_.metrics->CountSent(sending_bytes_, sending_saved_bytes_);
}

std::optional<CollectCall::Request> LearnerLink::NextRequest() {
  uint64_t stream;
  {
    absl::MutexLock lock(&mu_);
    if (!course_.may_send || !too_large_.ok()) return std::nullopt;
    stream = stream_;
  }
  const Outbox::ToSend next = options_.outbox->TryNextToSend(stream);
  if (next.fragment != nullptr) {
    const v1::FragmentHeader& header = next.fragment->header;
    grpc::ByteBuffer bytes = FrameBytes(*next.fragment);
    if (bytes.Length() > static_cast<size_t>(kMaxMessageBytes)) {
      GiveUpOn(header, bytes.Length());
      return std::nullopt;
    }
    NoteSent(header.sequence());
    {
      absl::MutexLock lock(&mu_);
      sending_bytes_ = bytes.Length();
      sending_saved_bytes_ = next.fragment->saved_bytes;
    }
    return CollectCall::Request{.bytes = std::move(bytes)};
  }
  if (!next.over) return std::nullopt;
  {
    absl::MutexLock lock(&mu_);
    if (!stopping_ && !leaving_) return std::nullopt;
    course_.left = true;
  }
  v1::CollectRequest request;
  request.mutable_goodbye()->set_env_steps_collected(options_.outbox->connection().env_steps_collected);
  return CollectCall::Request{.bytes = FrameBytes(request), .last = true};
}

void LearnerLink::GiveUpOn(const v1::FragmentHeader& fragment, size_t bytes) {
  absl::MutexLock lock(&mu_);
  too_large_ = absl::ResourceExhaustedError(absl::StrCat(
      "a fragment of ", fragment.steps(), " steps x ", fragment.group_envs(), " environments takes ", bytes,
      " bytes, messages are limited to ", kMaxMessageBytes,
      "; lower rollout.fragment_steps or rollout.envs_per_runner, or set transport.trajectory_compression to zstd"));
  if (collect_context_ != nullptr) collect_context_->TryCancel();
}

void LearnerLink::NoteSent(uint64_t sequence) {
  absl::MutexLock lock(&mu_);
  sent_[sequence] = MonotonicNow();
}

void LearnerLink::NoteReceipt(const v1::Receipt& receipt) {
  options_.metrics->CountReceipt(receipt.result());
  absl::MutexLock lock(&mu_);
  const auto sent = sent_.find(receipt.sequence());
  if (sent == sent_.end()) return;
  options_.metrics->ObserveReceipt(MonotonicNow() - sent->second);
  sent_.erase(sent);
}

void LearnerLink::Subscribe(const Target& target, v1::Learner::Stub* stub, const std::function<void()>& subscribed) {
  Backoff backoff(kFirstBackoff, kLongestBackoff);
  uint64_t stream;
  {
    absl::MutexLock lock(&mu_);
    stream = stream_;
  }
  for (bool first = true;; first = false) {
    grpc::ClientContext context;
    {
      absl::MutexLock lock(&mu_);
      if (course_.over) return;
      subscribe_context_ = &context;
    }
    v1::SubscribePolicyRequest request;
    request.set_run_id(target.run_id);
    request.set_actor_id(target.actor_id);
    request.set_generation(target.generation);
    request.set_newest_version(options_.policies->newest_version());
    PolicyCall call([&](const v1::PolicySnapshot& snapshot) {
      RecordHistory("policy", {{"actor", target.actor_id},
                               {"generation", target.generation},
                               {"learner", target.address},
                               {"connection", stream},
                               {"version", uint64_t{snapshot.version()}}});
      if (absl::Status s = options_.on_policy(stream, snapshot); !s.ok()) {
        spdlog::error("policy {} refused: {}", snapshot.version(), s.ToString());
        context.TryCancel();
        return;
      }
      backoff.Reset();
      options_.metrics->SetPolicyVersion(snapshot.version());
    });
    call.Start(stub, &context, request);
    if (first) subscribed();
    call.Wait();
    absl::MutexLock lock(&mu_);
    subscribe_context_ = nullptr;
    AwaitFor(&mu_, absl::Condition(&course_.over), backoff.Next());
  }
}

}  // namespace skein
