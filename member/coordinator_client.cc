// SPDX-License-Identifier: Apache-2.0
#include "member/coordinator_client.h"

#include <algorithm>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/net/backoff.h"
#include "base/net/grpc_transport.h"
#include "base/net/host_port.h"
#include "base/process/clock.h"
#include "base/process/steady_wait.h"
#include "member/coordinator_calls.h"
#include "skein/v1/coordinator_service.grpc.pb.h"
#include "spdlog/spdlog.h"

namespace skein {
namespace {

constexpr absl::Duration kJoinAttemptTimeout = absl::Seconds(5);
constexpr absl::Duration kLeaveTimeout = absl::Seconds(2);
constexpr absl::Duration kWaitingForLearnerPeriod = absl::Milliseconds(200);
constexpr absl::Duration kRetryBase = absl::Milliseconds(100);
constexpr absl::Duration kRetryCap = absl::Seconds(5);  // At most half a lease.
constexpr absl::Duration kJoinRetryCap = absl::Milliseconds(500);
constexpr absl::Duration kShortestStatusTimeout = absl::Milliseconds(50);
constexpr absl::Duration kBarrierSlack = absl::Seconds(2);  // For the coordinator's own answer to arrive.

// Trying to join again would end the same way.
bool IsFinalRefusal(const absl::Status& status) {
  return absl::IsFailedPrecondition(status) || absl::IsInvalidArgument(status);
}

bool IsForgotten(const absl::Status& status) { return absl::IsNotFound(status) || absl::IsFailedPrecondition(status); }

// gRPC nests the cause behind its own layers: "failed to connect to ...: Connection refused".
std::string LastCause(const absl::Status& status) {
  const std::string message(status.message());
  const size_t colon = message.rfind(": ");
  return absl::AsciiStrToLower(colon == std::string::npos ? message : message.substr(colon + 2));
}

class CoordinatorClientImpl : public CoordinatorClient {
 public:
  using CoordinatorClient::ArriveAtBarrier;

  CoordinatorClientImpl(Options options, std::vector<std::string> addresses)
      : options_(std::move(options)), calls_(std::move(addresses)) {
    options_.join.set_protocol_major(kProtocolMajor);
    options_.join.set_protocol_minor(kProtocolMinor);
  }

  ~CoordinatorClientImpl() override { Stop(); }

  // Joins for the first time and starts the thread.
  absl::Status Start() {
    if (options_.cancel_join == nullptr) return JoinAndStart();
    options_.cancel_join->OnCancel([this] { CancelJoin(); });
    const absl::Status status = JoinAndStart();
    options_.cancel_join->OnCancel({});
    return status;
  }

  absl::Status JoinAndStart() {
    const absl::Duration deadline = MonotonicNow() + options_.timeout;
    Backoff backoff(kRetryBase, kJoinRetryCap);
    absl::Status away;  // Why there is no answer, as far as the transport knows.
    while (true) {
      absl::StatusOr<v1::JoinResponse> response = CallJoin(std::min(deadline - MonotonicNow(), kJoinAttemptTimeout));
      if (response.ok()) {
        config_ = response->config();
        heartbeat_period_ = absl::Seconds(std::max(response->heartbeat_seconds(), 0.001));
        call_timeout_ = absl::Seconds(std::clamp(response->lease_seconds(), 1.0, 10.0));
        status_timeout_ = std::max(absl::Seconds(response->lease_seconds() / 4), kShortestStatusTimeout);
        retry_cap_ = std::min(kRetryCap, absl::Seconds(std::max(response->lease_seconds() / 2, 0.1)));
        options_.join.set_run_id(response->run_id());
        Adopt(*response);
        absl::MutexLock lock(&mu_);
        if (std::exchange(join_cancelled_, false)) calls_.Resume();  // Too late for that.
        thread_ = std::thread([this] { Run(); });
        return absl::OkStatus();
      }
      if (JoinIsCancelled()) {
        return absl::CancelledError(absl::StrCat("stopped before the coordinator at ", options_.address, " answered"));
      }
      if (!IsAway(response.status())) return Refusal(response.status());
      if (away.ok()) spdlog::debug("waiting for the coordinator at {}", options_.address);
      if (away.ok() || absl::IsUnavailable(response.status())) away = response.status();
      if (MonotonicNow() >= deadline) {
        return absl::UnavailableError(absl::StrCat("no coordinator answers at ", options_.address, " (waited ",
                                                   absl::FormatDuration(options_.timeout), "): ", LastCause(away),
                                                   "; start one with `skein head` or check --address"));
      }
      absl::MutexLock lock(&mu_);
      AwaitFor(&mu_, absl::Condition(&join_cancelled_), std::min(deadline - MonotonicNow(), backoff.Next()));
    }
  }

  const v1::RunConfig& config() const override { return config_; }

  Membership membership() const override ABSL_LOCKS_EXCLUDED(mu_) {
    absl::MutexLock lock(&mu_);
    return membership_;
  }

  absl::Status Leave() override ABSL_LOCKS_EXCLUDED(mu_) {
    Stop();
    {
      absl::MutexLock lock(&mu_);
      if (std::exchange(left_, true)) return absl::OkStatus();
    }
    v1::HeartbeatRequest last = NextHeartbeat();
    v1::LeaveRequest request;
    request.set_member_id(last.member_id());
    request.set_generation(last.generation());
    if (last.has_report()) *request.mutable_report() = std::move(*last.mutable_report());
    if (last.has_progress()) *request.mutable_progress() = std::move(*last.mutable_progress());
    v1::LeaveResponse response;
    return calls_.CallAny(kLeaveTimeout,
                          [&](auto* stub, auto* context) { return stub->Leave(context, request, &response); });
  }

  absl::StatusOr<BarrierResult> ArriveAtBarrier(const Barrier& barrier) override ABSL_LOCKS_EXCLUDED(mu_) {
    const absl::Duration timeout = barrier.timeout > absl::ZeroDuration()
                                       ? barrier.timeout
                                       : absl::Seconds(config_.coordinator().barrier_timeout_seconds());
    const absl::Duration deadline = MonotonicNow() + timeout;
    Backoff backoff(kRetryBase, absl::Seconds(1));
    v1::BarrierRequest request;
    request.set_name(barrier.name);
    request.set_barrier_generation(barrier.generation);
    request.set_participants(barrier.participants);
    request.set_payload(barrier.payload);
    while (true) {
      const Membership member = membership();
      request.set_member_id(member.member_id);
      request.set_member_generation(member.generation);
      request.set_timeout_seconds(std::max(absl::ToDoubleSeconds(deadline - MonotonicNow()), 0.001));
      v1::BarrierResponse response;
      const absl::Status status = calls_.Call(
          deadline - MonotonicNow() + kBarrierSlack,
          [&](auto* stub, auto* context) { return stub->ArriveAtBarrier(context, request, &response); }, true);
      if (status.ok()) {
        return BarrierResult{{response.members().begin(), response.members().end()},
                             {response.payloads().begin(), response.payloads().end()}};
      }
      // Arriving twice is idempotent, so a coordinator that comes back in time is asked again.
      if (!absl::IsUnavailable(status) || MonotonicNow() >= deadline) return status;
      absl::MutexLock lock(&mu_);
      AwaitFor(&mu_, absl::Condition(&stop_), std::min(deadline - MonotonicNow(), backoff.Next()));
    }
  }

 private:
  void CancelJoin() ABSL_LOCKS_EXCLUDED(mu_) {
    absl::MutexLock lock(&mu_);
    if (thread_.joinable()) return;  // Joined already.
    join_cancelled_ = true;
    calls_.Cancel();
  }

  bool JoinIsCancelled() const ABSL_LOCKS_EXCLUDED(mu_) {
    absl::MutexLock lock(&mu_);
    return join_cancelled_;
  }

  absl::Status Refusal(const absl::Status& status) const {
    return absl::Status(status.code(),
                        absl::StrCat("the coordinator at ", options_.address, " refused: ", status.message()));
  }

  absl::StatusOr<v1::JoinResponse> CallJoin(absl::Duration timeout) {
    v1::JoinResponse response;
    const absl::Status status =
        calls_.Call(timeout, [&](auto* stub, auto* context) { return stub->Join(context, options_.join, &response); });
    if (!status.ok()) return status;
    return response;
  }

  void Adopt(const v1::JoinResponse& response) ABSL_LOCKS_EXCLUDED(mu_) {
    absl::MutexLock lock(&mu_);
    membership_ = {response.member_id(), response.generation(), response.run_id(), response.learner_address()};
  }

  v1::HeartbeatRequest NextHeartbeat() ABSL_LOCKS_EXCLUDED(mu_) {
    const Membership member = membership();
    v1::HeartbeatRequest request;
    request.set_member_id(member.member_id);
    request.set_generation(member.generation);
    if (options_.fill_report) options_.fill_report(&request);
    return request;
  }

  // The client's thread.
  void Run() ABSL_LOCKS_EXCLUDED(mu_) {
    NotifyMembership();
    Backoff backoff(kRetryBase, retry_cap_);
    bool away = false;
    absl::Duration delay = Period();
    while (WaitForBeat(delay)) {
      absl::Status status = Heartbeat();
      if (IsForgotten(status)) {
        status = Rejoin(status);
        if (IsFinalRefusal(status)) {
          status = Refusal(status);
          spdlog::error("{}", std::string(status.message()));
          if (options_.on_fatal) options_.on_fatal(status);
          return;
        }
      }
      if (status.ok()) {
        if (std::exchange(away, false)) spdlog::info("the coordinator at {} answers again", options_.address);
        backoff.Reset();
        delay = Period();
      } else {
        if (absl::IsCancelled(status)) continue;  // Being stopped.
        if (!std::exchange(away, true)) {
          spdlog::warn("the coordinator at {} does not answer, trying on: {}", options_.address, LastCause(status));
        }
        delay = backoff.Next();
      }
    }
  }

  absl::Status Heartbeat() {
    const v1::HeartbeatRequest request = NextHeartbeat();
    v1::HeartbeatResponse response;
    const absl::Duration begin = MonotonicNow();
    const absl::Status status = calls_.Call(
        call_timeout_, [&](auto* stub, auto* context) { return stub->Heartbeat(context, request, &response); });
    if (!status.ok()) return status;
    if (options_.on_heartbeat) options_.on_heartbeat(MonotonicNow() - begin);
    bool moved = false;
    {
      absl::MutexLock lock(&mu_);
      moved = membership_.learner_address != response.learner_address();
      membership_.learner_address = response.learner_address();
    }
    if (moved) NotifyMembership();
    if (response.run_state() != std::exchange(run_state_, response.run_state()) && options_.on_run_state) {
      options_.on_run_state(response.run_state());
    }
    if (response.drain() && !std::exchange(drain_, true) && options_.on_drain) options_.on_drain();
    if (options_.wants_status && options_.wants_status()) AskForStatus();
    return absl::OkStatus();
  }

  // One that does not come now is asked for after the next heartbeat, which must not be too late for that: a member
  // that waits here does not beat. The connection is kept, as the heartbeat before was answered.
  void AskForStatus() {
    const absl::Duration asked = MonotonicNow();
    v1::StatusResponse response;
    const absl::Status status = calls_.Call(
        status_timeout_, [&](auto* stub, auto* context) { return stub->GetStatus(context, {}, &response); }, true);
    if (status.ok()) options_.on_status(response, asked);
  }

  absl::Status Rejoin(const absl::Status& why) {
    absl::StatusOr<v1::JoinResponse> response = CallJoin(kJoinAttemptTimeout);
    if (!response.ok()) return response.status();
    Adopt(*response);
    spdlog::warn("joined again as {} (generation {}): {}", response->member_id(), response->generation(),
                 std::string(why.message()));
    NotifyMembership();
    return absl::OkStatus();
  }

  void NotifyMembership() {
    if (options_.on_membership) options_.on_membership(membership());
  }

  // An actor without a learner has nothing else to do than to ask for one.
  absl::Duration Period() const {
    const bool waiting = options_.join.role() == v1::ROLE_ACTOR && membership().learner_address.empty();
    return waiting ? std::min(heartbeat_period_, kWaitingForLearnerPeriod) : heartbeat_period_;
  }

  // False: stopped.
  bool WaitForBeat(absl::Duration delay) ABSL_LOCKS_EXCLUDED(mu_) {
    absl::MutexLock lock(&mu_);
    return !AwaitFor(&mu_, absl::Condition(&stop_), delay);
  }

  void Stop() ABSL_LOCKS_EXCLUDED(mu_) {
    std::thread thread;
    {
      absl::MutexLock lock(&mu_);
      stop_ = true;
      calls_.Cancel();
      thread = std::move(thread_);
    }
    if (thread.joinable()) thread.join();
  }

  // Constant once joined.
  Options options_;
  v1::RunConfig config_;
  absl::Duration heartbeat_period_ = absl::Seconds(1);
  absl::Duration call_timeout_ = absl::Seconds(5);
  absl::Duration status_timeout_ = absl::Seconds(1);
  absl::Duration retry_cap_ = kRetryCap;

  // Of the client's thread.
  v1::RunState run_state_ = v1::RUN_STATE_UNSPECIFIED;
  bool drain_ = false;

  CoordinatorCalls calls_;

  mutable absl::Mutex mu_;
  Membership membership_ ABSL_GUARDED_BY(mu_);
  bool join_cancelled_ ABSL_GUARDED_BY(mu_) = false;
  bool stop_ ABSL_GUARDED_BY(mu_) = false;
  bool left_ ABSL_GUARDED_BY(mu_) = false;
  std::thread thread_ ABSL_GUARDED_BY(mu_);
};

}  // namespace

absl::StatusOr<std::unique_ptr<CoordinatorClient>> CoordinatorClient::Join(Options options) {
  absl::StatusOr<std::vector<std::string>> addresses = ParseAddresses(options.address);
  if (!addresses.ok()) return addresses.status();
  auto client = std::make_unique<CoordinatorClientImpl>(std::move(options), *std::move(addresses));
  if (absl::Status status = client->Start(); !status.ok()) return status;
  return client;
}

absl::StatusOr<std::vector<std::string>> CoordinatorClient::ArriveAtBarrier(const std::string& name,
                                                                            uint64_t generation,
                                                                            absl::Duration timeout) {
  absl::StatusOr<BarrierResult> result = ArriveAtBarrier(Barrier{name, generation, timeout, 0, ""});
  if (!result.ok()) return result.status();
  return std::move(result->members);
}

}  // namespace skein
