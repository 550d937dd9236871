// SPDX-License-Identifier: Apache-2.0
#include "learner/collect/service.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/net/grpc_credentials.h"
#include "base/net/grpc_transport.h"
#include "base/process/clock.h"
#include "base/process/steady_wait.h"
#include "learner/collect/service_stream.h"

namespace skein {
namespace {

// Of one connection; an actor makes two, and two more when it connects again, after a back-off.
constexpr CallQuota::Options kStreams = {.per_second = 100, .burst = 500};

}  // namespace

LearnerService::LearnerService() : quota_(kStreams) {}
LearnerService::~LearnerService() = default;

void LearnerService::Serve(std::string run_id, Collector* collector, PolicyPublisher* publisher, absl::Duration lease) {
  run_id_ = std::move(run_id);
  collector_ = collector;
  publisher_ = publisher;
  lease_ = lease;
  serving_ = true;
  on_serving_(true);
}

absl::Status LearnerService::CheckCall(const grpc::CallbackServerContext& context) {
  if (absl::Status s = quota_.Take(context.peer(), MonotonicNow()); !s.ok()) return s;
  return serving_ ? absl::OkStatus() : absl::UnavailableError("the learner is still starting");
}

grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>* LearnerService::Collect(
    grpc::CallbackServerContext* context) {
  auto stream = std::make_shared<Stream>(this, CertificateDigest(*context));
  stream->Start();
  if (const absl::Status s = CheckCall(*context); !s.ok()) stream->End(ToGrpc(s));
  return stream.get();
}

grpc::ServerWriteReactor<v1::PolicySnapshot>* LearnerService::SubscribePolicy(
    grpc::CallbackServerContext* context, const v1::SubscribePolicyRequest* request) {
  class Refused : public grpc::ServerWriteReactor<v1::PolicySnapshot> {
   public:
    explicit Refused(const absl::Status& status) { Finish(ToGrpc(status)); }
    void OnDone() override { delete this; }
  };
  absl::Status status = CheckCall(*context);
  if (status.ok() && request->run_id() != run_id_) {
    status = absl::FailedPreconditionError("run_id: this learner serves another run");
  }
  if (!status.ok()) return new Refused(status);
  const std::string certificate = CertificateDigest(*context);
  absl::MutexLock lock(&mu_);
  const ConnectionId* actor = FindStream(request->actor_id(), request->generation(), certificate);
  if (actor != nullptr) return publisher_->Subscribe(*actor, request->newest_version());
  return new Refused(
      absl::FailedPreconditionError("actor_id: has no trajectory stream here; say hello by Collect first"));
}

const ConnectionId* LearnerService::FindStream(const std::string& actor_id, uint64_t generation,
                                               const std::string& certificate) const {
  const ConnectionId* newest = nullptr;
  for (auto it = streams_.lower_bound({actor_id, generation}); it != streams_.end(); ++it) {
    const ConnectionId& connection = it->first;
    if (connection.actor_id != actor_id) break;
    if (connection.certificate == certificate && IsConnectionOf(connection, generation)) newest = &connection;
  }
  return newest;
}

absl::Status LearnerService::Admit(const ConnectionId& actor, const v1::Hello& hello, std::shared_ptr<Stream> stream) {
  std::shared_ptr<Stream> before;
  bool finished;
  {
    absl::MutexLock lock(&mu_);
    const bool known = collector_->Knows(actor);
    if (!known && unconfirmed_.size() >= UnconfirmedConnections::kMost) {
      return absl::ResourceExhaustedError(
          absl::StrCat(unconfirmed_.size(), " new actors wait for the coordinator to say that they are members"));
    }
    auto welcome = collector_->Open(hello, actor.certificate);
    if (!welcome.ok()) return welcome.status();
    if (const auto ended = unconfirmed_.Greet(actor, hello, known, MonotonicNow())) {
      collector_->Close(ended->connection, ended->env_steps_collected);
    }
    v1::CollectResponse response;
    *response.mutable_welcome() = *welcome;
    if (const auto forgotten = forgotten_.find(actor); forgotten != forgotten_.end()) {
      response.mutable_welcome()->set_last_sequence(forgotten->second - 1);
      forgotten_.erase(forgotten);
    }
    stream->Send(response);  // Before any ticket.
    before = std::exchange(streams_[actor], std::move(stream));
    finished = finished_;
  }
  if (before != nullptr) {
    before->End(grpc::Status(grpc::StatusCode::ABORTED, "a newer stream of this actor took over"));
  }
  if (finished) Finish();
  return absl::OkStatus();
}

bool LearnerService::HasUnconfirmed() {
  absl::MutexLock lock(&mu_);
  return !unconfirmed_.empty();
}

void LearnerService::Confirm(const v1::StatusResponse& status, absl::Duration asked) {
  std::vector<std::shared_ptr<Stream>> strangers;
  {
    absl::MutexLock lock(&mu_);
    const UnconfirmedConnections::Verdict verdict = unconfirmed_.Judge(status, asked, lease_);
    // Ended connections come first: they have step counts, and may also be among the strangers.
    for (const auto& [connection, env_steps_collected] : verdict.ended) {
      collector_->Close(connection, env_steps_collected);
    }
    for (const ConnectionId& actor : verdict.strangers) {
      collector_->Close(actor, 0);
      publisher_->Dismiss(actor);
      // Removed now, not in OnDone: that comes only after the peer has read all responses.
      if (auto stream = streams_.extract(actor)) strangers.push_back(std::move(stream.mapped()));
      strangers_.Warn(absl::StrCat(actor.actor_id, " (generation ", actor.generation,
                                   ") is not a member of the run: what it sends is not wanted"));
    }
  }
  for (const auto& stream : strangers) {
    stream->End(ToGrpc(absl::AbortedError("the coordinator knows no such member; join again")));
  }
  SendGrants();
}

bool LearnerService::Dismiss(const ConnectionId& actor, const Stream* stream) {
  absl::MutexLock lock(&mu_);
  auto it = streams_.find(actor);
  if (it == streams_.end() || it->second.get() != stream) return false;
  streams_.erase(it);
  collector_->Disconnect(actor);
  if (!finished_) publisher_->Dismiss(actor);
  return true;
}

void LearnerService::SendGrants() {
  std::vector<std::pair<std::shared_ptr<Stream>, v1::CollectResponse>> sends;
  {
    absl::MutexLock lock(&mu_);
    for (auto& [actor, ticket] : collector_->TakeGrants()) {
      auto it = streams_.find(actor);
      if (it == streams_.end()) continue;
      sends.emplace_back(it->second, v1::CollectResponse());
      *sends.back().second.mutable_ticket() = std::move(ticket);
    }
  }
  for (auto& [stream, response] : sends) stream->Send(response);
}

void LearnerService::Finish() {
  on_serving_(false);
  std::vector<std::shared_ptr<Stream>> streams;
  {
    absl::MutexLock lock(&mu_);
    finished_ = true;
    for (auto& [actor, stream] : streams_) streams.push_back(stream);
  }
  v1::CollectResponse finished;
  finished.mutable_finished();
  for (auto& stream : streams) {
    stream->Send(finished);
    stream->End(grpc::Status::OK);
  }
}

void LearnerService::WaitUntilIdle(absl::Duration timeout) {
  absl::MutexLock lock(&mu_);
  AwaitFor(&mu_, absl::Condition(this, &LearnerService::Idle), timeout);
}

}  // namespace skein
