// SPDX-License-Identifier: Apache-2.0
#include "actor/learner_link.h"

#include <algorithm>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "actor/request_bytes.h"
#include "base/backoff.h"
#include "base/clock.h"
#include "base/grpc_transport.h"
#include "base/history_recorder.h"
#include "base/log.h"
#include "base/steady_wait.h"
#include "base/tensor_packing.h"

namespace skein {
namespace {

constexpr char kCollect[] = "/skein.v1.Learner/Collect";

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
  absl::MutexLock lock(&mu_);
  if (target == target_) return;
  if (target_.address.empty()) alone_since_ = MonotonicNow();
  target_ = target;
  if (collect_context_ == nullptr) return;
  if (!connected_.address.empty() && !target.address.empty() && SameMember(connected_, target)) {
    if (!std::exchange(leaving_, true)) {
      spdlog::info("leaving the learner at {} for the one at {}", connected_.address, target.address);
    }
    options_.outbox->LeaveEpoch(epoch_);
  } else {
    collect_context_->TryCancel();
  }
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
  Course course;
  while (true) {
    {
      absl::MutexLock lock(&mu_);
      mu_.Await(absl::Condition(this, &LearnerLink::ReadyToConnect));
      if (StopWaiting()) return absl::OkStatus();
      if (!SameMember(target, target_)) {
        stay = 0;
      } else if (course.left || target.address != target_.address) {
        ++stay;
      }
      target = target_;
    }
    course = {};
    const absl::Status status = ServeOneConnection(target, stay, &course);
    absl::MutexLock lock(&mu_);
    if (finished_ || StopWaiting()) return absl::OkStatus();
    if (!too_large_.ok()) return too_large_;
    if (!(target == target_) || course.left) continue;
    if (IsFinal(status)) return status;
    if (course.welcomed) {
      spdlog::warn("connection to the learner at {} broke: {}; connecting again", target.address, status.ToString());
      options_.metrics->CountReconnection();
      backoff.Reset();
    } else {
      spdlog::debug("no connection to the learner at {} yet: {}", target.address, status.ToString());
    }
    AwaitFor(&mu_, absl::Condition(this, &LearnerLink::StopWaiting), backoff.Next());
  }
}

absl::Status LearnerLink::ServeOneConnection(const Target& target, uint64_t stay, Course* course) {
  const std::shared_ptr<grpc::Channel> channel = OpenChannel(target.address);
  const auto stub = v1::Learner::NewStub(channel);
  uint64_t epoch;
  {
    absl::MutexLock lock(&mu_);
    epoch = ++epoch_;
  }
  grpc::ClientContext context;
  SetContext(target, &context);
  // As stub->Collect, with requests as bytes.
  const grpc::internal::RpcMethod collect(kCollect, grpc::internal::RpcMethod::BIDI_STREAMING, channel);
  const std::unique_ptr<CollectStream> stream(
      grpc::internal::ClientReaderWriterFactory<grpc::ByteBuffer, v1::CollectResponse>::Create(channel.get(), collect,
                                                                                               &context));

  const uint64_t generation = target.generation + stay;
  const Outbox::Life before = options_.outbox->BeginLife(
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

  v1::CollectResponse response;
  absl::Status status;
  if (stream->Write(RequestBytes(request)) && stream->Read(&response)) {
    if (!response.has_welcome()) context.TryCancel();
    course->welcomed = response.has_welcome();
  }
  if (course->welcomed) {
    spdlog::info("connected to the learner at {}", target.address);
    options_.policies->BeginEpoch(epoch);
    options_.outbox->BeginEpoch(epoch, response.welcome().last_sequence());
    {
      absl::MutexLock lock(&mu_);
      subscribing_ = true;
      connected_ = target;
      sent_.clear();
    }
    // First: behind a backlog on a slow link the request for policies, without which no ticket is begun, would wait.
    std::thread subscriber(&LearnerLink::Subscribe, this, epoch, target, stub.get());
    std::thread writer(&LearnerLink::Write, this, epoch, stream.get(), &course->left);
    do {
      if (response.has_receipt()) {
        options_.outbox->Acknowledge(response.receipt());
        NoteReceipt(response.receipt());
        if (!response.receipt().message().empty()) {
          spdlog::debug("batch {}: {}", response.receipt().sequence(), response.receipt().message());
        }
      } else if (response.has_finished()) {
        absl::MutexLock lock(&mu_);
        finished_ = true;
      }
      if (response.has_ticket()) options_.outbox->AddTicket(epoch, response.ticket());
    } while (stream->Read(&response));
    options_.outbox->EndEpoch(epoch);
    status = FromGrpc(stream->Finish());  // A writer that waits for the peer to read gives up.
    writer.join();
    {
      absl::MutexLock lock(&mu_);
      subscribing_ = leaving_ = false;
      connected_ = {};
      alone_since_ = MonotonicNow();
      if (subscribe_context_ != nullptr) subscribe_context_->TryCancel();
    }
    subscriber.join();
  } else {
    status = FromGrpc(stream->Finish());
  }
  SetContext(target, nullptr);
  return status;
}

void LearnerLink::GiveUpOn(const v1::TrajectoryBatch& batch, size_t bytes) {
  absl::MutexLock lock(&mu_);
  too_large_ = absl::ResourceExhaustedError(absl::StrCat(
      "a fragment of ", batch.steps(), " steps x ", batch.num_envs(), " environments takes ", bytes,
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

void LearnerLink::Write(uint64_t epoch, CollectStream* stream, bool* left) {
  while (auto request = options_.outbox->NextToSend(epoch)) {
    const absl::Duration begin = MonotonicNow();
    // A write fails only when the call is over, which the reader notices too; its status must not be overwritten.
    const grpc::ByteBuffer bytes = BatchBytes(request);
    if (bytes.Length() > static_cast<size_t>(kMaxMessageBytes)) {
      GiveUpOn(request->batch(), bytes.Length());
      return;
    }
    NoteSent(request->batch().sequence());
    if (!stream->Write(bytes)) return;
    options_.metrics->AddStage(ActorMetrics::Stage::kSend, MonotonicNow() - begin);
    options_.metrics->CountSent(bytes.Length(), SavedBytes(request->batch().tensors()));
  }
  {
    absl::MutexLock lock(&mu_);
    if (!stopping_ && !leaving_) return;
  }
  *left = true;
  v1::CollectRequest request;
  request.mutable_goodbye()->set_env_steps_collected(options_.outbox->life().env_steps_collected);
  if (stream->Write(RequestBytes(request))) stream->WritesDone();
}

void LearnerLink::Subscribe(uint64_t epoch, const Target& target, v1::Learner::Stub* stub) {
  Backoff backoff(kFirstBackoff, kLongestBackoff);
  const auto ended = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) { return !subscribing_; };
  while (true) {
    grpc::ClientContext context;
    {
      absl::MutexLock lock(&mu_);
      if (!subscribing_) return;
      subscribe_context_ = &context;
    }
    v1::SubscribePolicyRequest request;
    request.set_run_id(target.run_id);
    request.set_actor_id(target.actor_id);
    request.set_generation(target.generation);
    request.set_newest_version(options_.policies->newest_version());
    const auto reader = stub->SubscribePolicy(&context, request);
    v1::PolicySnapshot snapshot;
    while (reader->Read(&snapshot)) {
      RecordHistory("policy", {{"actor", target.actor_id},
                               {"generation", target.generation},
                               {"learner", target.address},
                               {"connection", epoch},
                               {"version", uint64_t{snapshot.version()}}});
      if (absl::Status s = options_.on_policy(epoch, snapshot); !s.ok()) {
        spdlog::error("policy {} refused: {}", snapshot.version(), s.ToString());
        context.TryCancel();
        continue;
      }
      backoff.Reset();
      options_.metrics->SetPolicyVersion(snapshot.version());
    }
    reader->Finish();
    absl::MutexLock lock(&mu_);
    subscribe_context_ = nullptr;
    AwaitFor(&mu_, absl::Condition(&ended), backoff.Next());
    if (!subscribing_) return;
  }
}

}  // namespace skein
