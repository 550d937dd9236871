// SPDX-License-Identifier: Apache-2.0
#include "coordinator/service.h"

#include <algorithm>
#include <utility>

#include "base/grpc_transport.h"
#include "base/printable.h"
#include "coordinator/peer_address.h"
#include "spdlog/spdlog.h"

namespace skein {
namespace {

void Log(const MembershipChange& change) {
  const Member& member = change.member;
  switch (change.kind) {
    case MembershipChange::kJoined:
      spdlog::info("{} joined from {}, pid {}, generation {}", member.id, member.host, member.pid, member.generation);
      return;
    case MembershipChange::kLeft:
      spdlog::info("{} left", member.id);
      return;
    case MembershipChange::kExpired:
      spdlog::warn("{} on {}, pid {}, fell silent: its lease has ended", member.id, member.host, member.pid);
      return;
  }
}

grpc::ServerUnaryReactor* FinishNow(grpc::CallbackServerContext* context, const absl::Status& status) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  reactor->Finish(ToGrpc(status));
  return reactor;
}

}  // namespace

// One call that waits at a barrier. gRPC deletes it through OnDone(); Finish() is called by whoever has taken it out of
// waiters_.
class CoordinatorService::Waiter final : public grpc::ServerUnaryReactor {
 public:
  Waiter(CoordinatorService* service, WaiterId id, v1::BarrierResponse* response, MonotonicTime arrived)
      : service_(service), id_(id), response_(response), arrived_(arrived) {}

  void OnCancel() override { service_->CancelWaiter(id_); }
  void OnDone() override { delete this; }

  MonotonicTime arrived() const { return arrived_; }
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
  v1::BarrierResponse* const response_;
  const MonotonicTime arrived_;
};

struct CoordinatorService::Outcome {
  Effects effects;
  std::vector<std::pair<Waiter*, BarrierReply>> ended;
};

CoordinatorService::CoordinatorService(CoordinatorState::Options options, std::string announced_host,
                                       CoordinatorMetrics* metrics,
                                       std::function<void(const v1::StatusResponse&)> on_report)
    : announced_host_(std::move(announced_host)),
      metrics_(metrics),
      on_report_(std::move(on_report)),
      state_(std::move(options)) {
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
}

MonotonicTime CoordinatorService::Now() const { return absl::FromChrono(std::chrono::steady_clock::now() - start_); }

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
  for (BarrierReply& reply : outcome.effects.replies) {
    auto found = waiters_.find(reply.waiter);
    if (found == waiters_.end()) continue;
    outcome.ended.emplace_back(found->second, std::move(reply));
    waiters_.erase(found);
  }
  return outcome;
}

void CoordinatorService::Carry(Outcome outcome) {
  const MonotonicTime now = Now();
  for (const auto& [waiter, reply] : outcome.ended) {
    metrics_->BarrierWaitEnded(now - waiter->arrived());
    if (!reply.status.ok()) {
      metrics_->CallRefused("ArriveAtBarrier", reply.status.code());
      spdlog::warn("{}", Printable(std::string(reply.status.message())));
    }
    waiter->End(reply);
  }
  metrics_->BarriersTimedOut(outcome.effects.barriers_timed_out);
  for (const MembershipChange& change : outcome.effects.changes) {
    metrics_->MemberChanged(change);
    Log(change);
  }
  for (const Assignment::Move& move : outcome.effects.moves) {
    metrics_->ActorMoved(move);
    spdlog::info("{} goes from {} to {}{}", move.actor, LearnerId(move.from), LearnerId(move.to),
                 move.starvation ? ", which starves" : "");
  }
  if (!outcome.effects.changes.empty() || !outcome.effects.moves.empty()) Report();
}

absl::StatusOr<v1::JoinRequest> CoordinatorService::Complete(const v1::JoinRequest& request,
                                                             const std::string& peer) const {
  std::string host = HostOfPeer(peer);
  if (IsLoopback(host) && !announced_host_.empty()) host = announced_host_;
  v1::JoinRequest complete = request;
  for (std::string* address : {complete.mutable_data_address(), complete.mutable_metrics_address()}) {
    absl::StatusOr<std::string> completed = CompleteAddress(*address, host);
    if (!completed.ok()) return completed.status();
    *address = *std::move(completed);
  }
  complete.set_host(Printable(complete.host().empty() ? host : complete.host()));
  return complete;
}

grpc::ServerUnaryReactor* CoordinatorService::Join(grpc::CallbackServerContext* context, const v1::JoinRequest* request,
                                                   v1::JoinResponse* response) {
  absl::StatusOr<v1::JoinRequest> complete = Complete(*request, context->peer());
  absl::Status status = complete.status();
  if (status.ok()) {
    Effects effects;
    Outcome outcome;
    {
      absl::MutexLock lock(&mu_);
      absl::StatusOr<v1::JoinResponse> joined = state_.Join(*complete, Now(), &effects);
      outcome = Take(std::move(effects));
      status = joined.status();
      if (joined.ok()) *response = *std::move(joined);
    }
    Carry(std::move(outcome));
  }
  if (!status.ok()) {
    metrics_->CallRefused("Join", status.code());
    spdlog::warn("refused a join from {}: {}", context->peer(), Printable(std::string(status.message())));
  }
  return FinishNow(context, status);
}

grpc::ServerUnaryReactor* CoordinatorService::Heartbeat(grpc::CallbackServerContext* context,
                                                        const v1::HeartbeatRequest* request,
                                                        v1::HeartbeatResponse* response) {
  Effects effects;
  Outcome outcome;
  absl::Status status;
  {
    absl::MutexLock lock(&mu_);
    absl::StatusOr<v1::HeartbeatResponse> answer = state_.Heartbeat(*request, Now(), &effects);
    outcome = Take(std::move(effects));
    status = answer.status();
    if (answer.ok()) *response = *std::move(answer);
  }
  Carry(std::move(outcome));
  if (status.ok()) {
    metrics_->HeartbeatTaken();
    if (request->has_progress()) Report();
  } else {
    metrics_->CallRefused("Heartbeat", status.code());
  }
  return FinishNow(context, status);
}

grpc::ServerUnaryReactor* CoordinatorService::Leave(grpc::CallbackServerContext* context,
                                                    const v1::LeaveRequest* request, v1::LeaveResponse*) {
  Effects effects;
  Outcome outcome;
  {
    absl::MutexLock lock(&mu_);
    state_.Leave(*request, Now(), &effects);
    outcome = Take(std::move(effects));
  }
  Carry(std::move(outcome));
  return FinishNow(context, absl::OkStatus());
}

grpc::ServerUnaryReactor* CoordinatorService::ArriveAtBarrier(grpc::CallbackServerContext* context,
                                                              const v1::BarrierRequest* request,
                                                              v1::BarrierResponse* response) {
  Effects effects;
  Outcome outcome;
  Waiter* waiter = nullptr;
  {
    absl::MutexLock lock(&mu_);
    if (!stopping_) {
      const WaiterId id = ++last_waiter_;
      waiter = new Waiter(this, id, response, Now());
      waiters_[id] = waiter;
      metrics_->BarrierWaitBegan();
      state_.Arrive(id, *request, Now(), &effects);
      outcome = Take(std::move(effects));
    }
  }
  if (waiter == nullptr) return FinishNow(context, absl::UnavailableError("the coordinator is shutting down"));
  Carry(std::move(outcome));
  return waiter;
}

void CoordinatorService::CancelWaiter(WaiterId id) {
  Waiter* waiter = nullptr;
  {
    absl::MutexLock lock(&mu_);
    auto found = waiters_.find(id);
    if (found == waiters_.end()) return;  // Somebody else is finishing it.
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
  Effects effects;
  Outcome outcome;
  absl::Status status;
  {
    absl::MutexLock lock(&mu_);
    status = state_.Drain(request->member_id(), Now(), &effects);
    outcome = Take(std::move(effects));
  }
  Carry(std::move(outcome));
  if (status.ok()) {
    spdlog::info("{} is asked by {} to leave", request->member_id(), context->peer());
  } else {
    metrics_->CallRefused("Drain", status.code());
  }
  return FinishNow(context, status);
}

grpc::ServerUnaryReactor* CoordinatorService::GetStatus(grpc::CallbackServerContext* context,
                                                        const v1::GetStatusRequest*, v1::StatusResponse* response) {
  *response = Status();
  return FinishNow(context, absl::OkStatus());
}

std::string CoordinatorService::HistoryText(size_t count) {
  absl::MutexLock lock(&history_mu_);
  return HistoryJson(history_, count);
}

void CoordinatorService::AddToHistory() {
  const v1::StatusResponse status = Status();
  absl::MutexLock lock(&history_mu_);
  history_.Add(status, Now());
}

void CoordinatorService::RunTimer() {
  MonotonicTime next_point = Now();
  while (true) {
    if (Now() >= next_point) {
      next_point = Now() + History::kPeriod;
      AddToHistory();
    }
    Outcome outcome;
    {
      absl::MutexLock lock(&mu_);
      const MonotonicTime deadline = std::min(state_.NextDeadline(), next_point);
      auto woken = [this, deadline]()
                       ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) { return stopping_ || state_.NextDeadline() < deadline; };
      mu_.AwaitWithTimeout(absl::Condition(&woken), deadline - Now());
      if (stopping_) return;
      Effects effects;
      state_.Tick(Now(), &effects);
      outcome = Take(std::move(effects));
    }
    Carry(std::move(outcome));
  }
}

}  // namespace skein
