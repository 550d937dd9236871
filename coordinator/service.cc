// SPDX-License-Identifier: Apache-2.0
#include "coordinator/service.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/net/call_authorization.h"
#include "base/net/grpc_credentials.h"
#include "base/net/grpc_transport.h"
#include "base/process/steady_wait.h"
#include "base/telemetry/history_recorder.h"
#include "base/telemetry/printable.h"
#include "coordinator/peer_address.h"
#include "spdlog/spdlog.h"

namespace skein {
namespace {

grpc::ServerUnaryReactor* FinishNow(grpc::CallbackServerContext* context, const absl::Status& status) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  reactor->Finish(ToGrpc(status));
  return reactor;
}

absl::Status NotThePrimary() { return absl::UnavailableError("this coordinator is not the primary any more"); }

}  // namespace

// One call that waits at a barrier. gRPC deletes it through OnDone(); Finish() is called by the thread that has taken
// it out of waiters_.
class CoordinatorService::Waiter final : public grpc::ServerUnaryReactor {
 public:
  // gRPC keeps `request` and `response` until the call is done.
  Waiter(CoordinatorService* service, WaiterId id, const v1::BarrierRequest* request, v1::BarrierResponse* response,
         MonotonicTime arrived)
      : service_(service), id_(id), request_(request), response_(response), arrived_(arrived) {}

  void OnCancel() override { service_->CancelWaiter(id_); }
  void OnDone() override { delete this; }

  MonotonicTime arrived() const { return arrived_; }
  void Record(const BarrierReply& reply) const {
    if (!reply.status.ok() || !HistoryIsOn()) return;
    RecordHistory("barrier", {{"name", request_->name()},
                              {"barrier_generation", reply.generation},
                              {"member", request_->member_id()},
                              {"members", absl::StrJoin(reply.members, " ")}});
  }
  void End(const BarrierReply& reply) {
    if (reply.status.ok()) {
      response_->mutable_members()->Add(reply.members.begin(), reply.members.end());
      response_->mutable_payloads()->Add(reply.payloads.begin(), reply.payloads.end());
    }
    Finish(ToGrpc(reply.status));
  }

 private:
  CoordinatorService* const service_;
  const WaiterId id_;
  const v1::BarrierRequest* const request_;
  v1::BarrierResponse* const response_;
  const MonotonicTime arrived_;
};

struct CoordinatorService::Outcome {
  Effects effects;
  std::vector<std::pair<Waiter*, BarrierReply>> ended;
};

CoordinatorService::CoordinatorService(CoordinatorState::Options options, AddressRules addresses,
                                       CoordinatorMetrics* metrics,
                                       std::function<void(const v1::StatusResponse&)> on_report, StateStore* store,
                                       const CallQuota::Options& arrivals)
    : addresses_(std::move(addresses)),
      metrics_(metrics),
      on_report_(std::move(on_report)),
      history_(options),
      gate_(metrics, arrivals),
      state_(std::move(options)),
      store_(store) {
  if (store_ != nullptr) {
    // Before any member gets a generation: a successor's must be higher.
    const StateChange run = state_.RunChange();
    NoteWrite(store_->Write({run}));
    writer_ = std::make_unique<StateWriter>(store_, [this](const absl::Status& status) { NoteWrite(status); });
  }
  Report();
  timer_ = std::thread([this] { RunTimer(); });
}

CoordinatorService::~CoordinatorService() { Shutdown(); }

void CoordinatorService::Shutdown() {
  std::map<WaiterId, Waiter*> waiters;
  {
    absl::MutexLock lock(&mu_);
    stopping_ = true;
    waiters.swap(waiters_);
    for (const auto& [id, waiter] : waiters) state_.CancelWaiter(id);
  }
  for (const auto& [id, waiter] : waiters) {
    metrics_->BarrierWaitEnded(Now() - waiter->arrived());
    waiter->End({id, absl::UnavailableError("the coordinator is shutting down"), {}, {}});
  }
  if (timer_.joinable()) timer_.join();
  KeepHistory(history_.TakeChanges());
  if (writer_ != nullptr) writer_->Stop();
}

MonotonicTime CoordinatorService::Now() const { return absl::FromChrono(std::chrono::steady_clock::now() - start_); }

absl::Status CoordinatorService::CheckServing() const {
  if (store_ == nullptr || store_->Serving()) return absl::OkStatus();
  return NotThePrimary();
}

template <typename Request>
absl::Status CoordinatorService::Admit(const grpc::CallbackServerContext& context, const Request& request,
                                       const char* call) {
  if (absl::Status s = CheckServing(); !s.ok()) return s;
  return gate_.Admit(context.peer(), request, call, Now());
}

v1::StatusResponse CoordinatorService::Status() {
  absl::MutexLock lock(&mu_);
  return state_.Status(Now());
}

void CoordinatorService::Report() {
  const v1::StatusResponse status = Status();
  metrics_->RunReported(status);
  if (on_report_) on_report_(status);
}

CoordinatorService::Outcome CoordinatorService::Take(Effects effects) {
  metrics_->SetBarrierAbsentees(state_.barrier_absentees());
  Outcome outcome{std::move(effects), {}};
  // In the order in which it happened: who departs opens barriers, and a learner that joins starts their count anew.
  const auto record = [&outcome](bool joins) {
    for (const MembershipChange& change : outcome.effects.changes) {
      if ((change.kind == MembershipChange::kJoined) == joins) RecordChange(change);
    }
  };
  record(false);
  for (BarrierReply& reply : outcome.effects.replies) {
    auto found = waiters_.find(reply.waiter);
    if (found == waiters_.end()) continue;
    found->second->Record(reply);
    outcome.ended.emplace_back(found->second, std::move(reply));
    waiters_.erase(found);
  }
  record(true);
  return outcome;
}

void CoordinatorService::NoteWrite(const absl::Status& status) {
  if (!status.ok()) metrics_->StateWriteFailed();
  if (!status.ok() && last_write_.ok()) {
    spdlog::error("the coordinator's state cannot be kept, trying on: {}", std::string(status.message()));
  }
  if (status.ok() && !last_write_.ok()) spdlog::info("the coordinator's state is kept again");
  last_write_ = status;
}

void CoordinatorService::KeepAndCarry(Outcome outcome) {
  ++outcomes_;
  // A repeated call for an open barrier changes nothing, but its reply must wait until the opening is stored.
  const bool opens = std::any_of(outcome.ended.begin(), outcome.ended.end(),
                                 [](const auto& waiter_and_reply) { return waiter_and_reply.second.status.ok(); });
  if (writer_ == nullptr || (outcome.effects.records.empty() && !opens)) {
    Carry(std::move(outcome), absl::OkStatus());
    return;
  }
  std::vector<StateChange> records = std::exchange(outcome.effects.records, {});
  const auto kept = std::make_shared<Outcome>(std::move(outcome));
  writer_->Add(std::move(records), [this, kept](const absl::Status& written) { Carry(std::move(*kept), written); });
}

void CoordinatorService::Carry(Outcome outcome, const absl::Status& written) {
  absl::Status fenced = CheckServing();
  // A successor will not know what was not written. (Changes that a disk refuses are retried and delay no call.)
  if (absl::IsAborted(written) || absl::IsUnavailable(written)) fenced = NotThePrimary();
  if (outcome.effects.state_was_lost) {
    spdlog::warn(
        "a member of a coordinator before this one has called, and its state is not here: it was lost, members join "
        "again");
  }
  metrics_->BarriersTimedOut(outcome.effects.barriers_timed_out);  // Before anybody is told.
  const MonotonicTime now = Now();
  for (auto& [waiter, reply] : outcome.ended) {
    metrics_->BarrierWaitEnded(now - waiter->arrived());
    if (!fenced.ok()) reply.status = fenced;
    if (!reply.status.ok()) gate_.ArrivalEnded(reply.status);
    waiter->End(reply);
  }
  for (const MembershipChange& change : outcome.effects.changes) {
    metrics_->MemberChanged(change);
    membership_log_.Log(change, now);
  }
  for (const Assignment::Move& move : outcome.effects.moves) {
    metrics_->ActorMoved(move);
    membership_log_.Log(move, now);
  }
  if (!outcome.effects.changes.empty() || !outcome.effects.moves.empty()) report_due_ = true;
  // The last of several outcomes reports for all: a report iterates over every member.
  if (--outcomes_ == 0 && report_due_.exchange(false)) Report();
}

absl::StatusOr<v1::JoinRequest> CoordinatorService::Complete(const v1::JoinRequest& request,
                                                             const std::string& peer) const {
  std::string host = HostOfPeer(peer);
  if (IsLoopback(host) && !addresses_.announced_host.empty()) host = addresses_.announced_host;
  v1::JoinRequest complete = request;
  for (std::string* address : {complete.mutable_data_address(), complete.mutable_metrics_address()}) {
    absl::StatusOr<std::string> completed = CompleteAddress(*address, host);
    if (!completed.ok()) return completed.status();
    *address = *std::move(completed);
  }
  if (!addresses_.foreign_metrics) {
    complete.set_metrics_address(AddressOfPeer(complete.metrics_address(), HostOfPeer(peer)));
  }
  complete.set_host(Printable(complete.host().empty() ? host : complete.host()));
  return complete;
}

grpc::ServerUnaryReactor* CoordinatorService::Join(grpc::CallbackServerContext* context, const v1::JoinRequest* request,
                                                   v1::JoinResponse* response) {
  if (absl::Status s = Admit(*context, *request, "Join"); !s.ok()) return FinishNow(context, s);
  absl::StatusOr<v1::JoinRequest> complete = Complete(*request, context->peer());
  const std::string certificate = CertificateDigest(*context);
  absl::Status status = CheckCertificateName(
      *context, request->role() == v1::ROLE_LEARNER ? kLearnerName : kActorName);  // Callers cannot choose their role.
  if (status.ok()) status = complete.status();
  if (status.ok()) {
    Effects effects;
    Outcome outcome;
    {
      absl::MutexLock lock(&mu_);
      absl::StatusOr<v1::JoinResponse> joined = state_.Join(*complete, Now(), &effects, certificate);
      outcome = Take(std::move(effects));
      status = joined.status();
      if (joined.ok()) *response = *std::move(joined);
    }
    KeepAndCarry(std::move(outcome));
  }
  if (!status.ok()) gate_.JoinRefused(context->peer(), status);
  return FinishNow(context, status);
}

grpc::ServerUnaryReactor* CoordinatorService::Heartbeat(grpc::CallbackServerContext* context,
                                                        const v1::HeartbeatRequest* request,
                                                        v1::HeartbeatResponse* response) {
  if (absl::Status s = Admit(*context, *request, "Heartbeat"); !s.ok()) return FinishNow(context, s);
  const std::string certificate = CertificateDigest(*context);
  Effects effects;
  Outcome outcome;
  absl::Status status;
  {
    absl::MutexLock lock(&mu_);
    status = state_.CheckCaller(request->member_id(), request->generation(), certificate);
    if (status.ok()) {
      absl::StatusOr<v1::HeartbeatResponse> answer = state_.Heartbeat(*request, Now(), &effects);
      outcome = Take(std::move(effects));
      status = answer.status();
      if (answer.ok()) *response = *std::move(answer);
    }
  }
  KeepAndCarry(std::move(outcome));
  if (status.ok()) {
    metrics_->HeartbeatTaken();
    if (request->has_progress()) Report();
  } else {
    gate_.Refused("Heartbeat", status);
  }
  return FinishNow(context, status);
}

grpc::ServerUnaryReactor* CoordinatorService::Leave(grpc::CallbackServerContext* context,
                                                    const v1::LeaveRequest* request, v1::LeaveResponse*) {
  if (absl::Status s = Admit(*context, *request, "Leave"); !s.ok()) return FinishNow(context, s);
  const std::string certificate = CertificateDigest(*context);
  Effects effects;
  Outcome outcome;
  absl::Status status;
  {
    absl::MutexLock lock(&mu_);
    status = state_.CheckCaller(request->member_id(), request->generation(), certificate);
    if (status.ok()) {
      state_.Leave(*request, Now(), &effects);
      outcome = Take(std::move(effects));
    }
  }
  KeepAndCarry(std::move(outcome));
  if (!status.ok()) gate_.Refused("Leave", status);
  return FinishNow(context, status);
}

grpc::ServerUnaryReactor* CoordinatorService::ArriveAtBarrier(grpc::CallbackServerContext* context,
                                                              const v1::BarrierRequest* request,
                                                              v1::BarrierResponse* response) {
  if (absl::Status s = Admit(*context, *request, "ArriveAtBarrier"); !s.ok()) return FinishNow(context, s);
  const std::string certificate = CertificateDigest(*context);
  Effects effects;
  Outcome outcome;
  Waiter* waiter = nullptr;
  absl::Status status;
  {
    absl::MutexLock lock(&mu_);
    status = stopping_ ? absl::UnavailableError("the coordinator is shutting down")
                       : state_.CheckCaller(request->member_id(), request->member_generation(), certificate);
    if (status.ok()) {
      const WaiterId id = ++last_waiter_;
      waiter = new Waiter(this, id, request, response, Now());
      waiters_[id] = waiter;
      metrics_->BarrierWaitBegan();
      state_.Arrive(id, *request, Now(), &effects);
      outcome = Take(std::move(effects));
    }
  }
  if (waiter == nullptr) {
    gate_.Refused("ArriveAtBarrier", status);
    return FinishNow(context, status);
  }
  KeepAndCarry(std::move(outcome));
  return waiter;
}

void CoordinatorService::CancelWaiter(WaiterId id) {
  Waiter* waiter = nullptr;
  {
    absl::MutexLock lock(&mu_);
    auto found = waiters_.find(id);
    if (found == waiters_.end()) return;  // Another thread is finishing it.
    waiter = found->second;
    waiters_.erase(found);
    state_.CancelWaiter(id);
  }
  metrics_->BarrierWaitEnded(Now() - waiter->arrived());
  metrics_->CallRefused("ArriveAtBarrier", absl::StatusCode::kCancelled);
  waiter->End({id, absl::CancelledError("the caller is gone"), {}, {}});
}

grpc::ServerUnaryReactor* CoordinatorService::Drain(grpc::CallbackServerContext* context,
                                                    const v1::DrainRequest* request, v1::DrainResponse*) {
  if (absl::Status s = Admit(*context, *request, "Drain"); !s.ok()) return FinishNow(context, s);
  Effects effects;
  Outcome outcome;
  absl::Status status;
  {
    absl::MutexLock lock(&mu_);
    status = state_.Drain(request->member_id(), Now(), &effects);
    outcome = Take(std::move(effects));
  }
  KeepAndCarry(std::move(outcome));
  if (status.ok()) {
    spdlog::info("{} is asked by {} to leave", request->member_id(), context->peer());
  } else {
    metrics_->CallRefused("Drain", status.code());
  }
  return FinishNow(context, status);
}

grpc::ServerUnaryReactor* CoordinatorService::GetStatus(grpc::CallbackServerContext* context,
                                                        const v1::GetStatusRequest* request,
                                                        v1::StatusResponse* response) {
  if (absl::Status s = Admit(*context, *request, "GetStatus"); !s.ok()) return FinishNow(context, s);
  *response = Status();
  return FinishNow(context, absl::OkStatus());
}

void CoordinatorService::KeepHistory(std::vector<StateChange> changes) {
  if (writer_ != nullptr && !changes.empty()) writer_->Add(std::move(changes), [](const absl::Status&) {});
}

void CoordinatorService::RunTimer() {
  MonotonicTime next_point = Now();
  while (true) {
    if (Now() >= next_point) {
      next_point = Now() + History::kPeriod;
      KeepHistory(history_.Add(Status(), Now()));
    }
    Outcome outcome;
    {
      absl::MutexLock lock(&mu_);
      const MonotonicTime deadline = std::min(state_.NextDeadline(), next_point);
      auto woken = [this, deadline]()
                       ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) { return stopping_ || state_.NextDeadline() < deadline; };
      AwaitFor(&mu_, absl::Condition(&woken), deadline - Now());
      if (stopping_) return;
      Effects effects;
      state_.Tick(Now(), &effects);
      outcome = Take(std::move(effects));
    }
    KeepAndCarry(std::move(outcome));
  }
}

}  // namespace skein
