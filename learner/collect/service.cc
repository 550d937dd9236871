// SPDX-License-Identifier: Apache-2.0
#include "learner/collect/service.h"

#include <deque>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/net/grpc_credentials.h"
#include "base/net/grpc_transport.h"
#include "base/process/clock.h"
#include "base/process/fault_hook.h"
#include "base/process/steady_wait.h"
#include "base/telemetry/log.h"
#include "base/telemetry/printable.h"
#include "grpcpp/support/slice.h"
#include "trajectory/frame.h"

namespace skein {
namespace {

// An actor whose batches are refused this often in a row is sent away.
constexpr int kMaxRejectedInARow = 3;

// Of one connection; an actor makes two, and two more when it connects again, after a back-off.
constexpr CallQuota::Options kStreams = {.per_second = 100, .burst = 500};

}  // namespace

// One actor's stream. Reads one request at a time; answers and tickets queue up behind the write in flight.
// Lives until gRPC is done with it and nobody else holds it.
class LearnerService::Stream : public grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>,
                               public std::enable_shared_from_this<Stream> {
 public:
  Stream(LearnerService* service, std::string certificate) : service_(service), certificate_(std::move(certificate)) {}

  void Start() {
    self_ = shared_from_this();
    StartRead(&received_);
  }

  // A ticket goes with what waits before it, if that has none.
  void Send(v1::CollectResponse response) {
    absl::MutexLock lock(&mu_);
    if (status_) return;
    const bool ticket_only = response.message_case() == v1::CollectResponse::MESSAGE_NOT_SET;
    if (ticket_only && !outgoing_.empty() && !outgoing_.back().has_ticket()) {
      *outgoing_.back().mutable_ticket() = std::move(*response.mutable_ticket());
    } else {
      outgoing_.push_back(std::move(response));
    }
    WriteNext();
  }

  // Ends the stream after what is queued has been sent.
  void End(grpc::Status status) {
    absl::MutexLock lock(&mu_);
    if (status_) return;
    status_ = std::move(status);
    WriteNext();
  }

  // The next message is read while this one is handled; they are handled one after the other all the same, by whichever
  // reaction is at it.
  void OnReadDone(bool ok) override {
    {
      absl::MutexLock lock(&mu_);
      arrived_.emplace(ok && service_->serving_ ? std::optional(std::move(received_)) : std::nullopt);
      if (handling_) return;
      handling_ = true;
    }
    Message message;
    while (TakeArrived(&message)) {
      if (!message) {
        End(grpc::Status::OK);
        continue;
      }
      StartRead(&received_);
      Hold(true);
      const absl::Status s = HandleRequest(*message);
      Hold(false);
      if (!s.ok()) {
        const std::string refusal =
            absl::StrCat("stream of ", actor_ ? actor_->actor_id : "a new actor", " refused: ", s.message());
        if (actor_) {
          spdlog::warn("{}", Printable(refusal));
        } else {
          service_->strangers_.Warn(refusal);
        }
        End(ToGrpc(s));
      }
    }
  }

  void OnWriteDone(bool ok) override {
    absl::MutexLock lock(&mu_);
    writing_ = false;
    if (!ok) {
      outgoing_.clear();
      if (!status_) status_ = grpc::Status::CANCELLED;
    }
    WriteNext();
  }

  void OnCancel() override {
    absl::MutexLock lock(&mu_);
    if (!status_) status_ = grpc::Status::CANCELLED;
    cancelled_ = true;
    WriteNext();
  }

  void OnDone() override {
    service_->stream_ended_ = true;
    if (actor_ && service_->Dismiss(*actor_, this)) service_->SendGrants();
    self_.reset();  // May delete this.
  }

 private:
  using Message = std::optional<grpc::ByteBuffer>;  // nullopt: there will be none.

  // False: nothing has arrived, and the next reaction handles what does.
  bool TakeArrived(Message* message) {
    absl::MutexLock lock(&mu_);
    handling_ = arrived_.has_value();
    if (handling_) *message = *std::exchange(arrived_, std::nullopt);
    return handling_;
  }

  absl::Status HandleRequest(const grpc::ByteBuffer& received) {
    if (ended()) return absl::OkStatus();
    // The slices are views of what was received; they and the pieces live until the batch is copied into place.
    std::vector<grpc::Slice> slices;
    if (!received.Dump(&slices).ok()) return absl::InvalidArgumentError("message: cannot be read");
    Pieces pieces;
    for (const grpc::Slice& slice : slices) {
      pieces.emplace_back(reinterpret_cast<const char*>(slice.begin()), slice.size());
    }
    const auto frame = ReadFrame(pieces);
    if (!frame.ok()) {
      if (const auto hello = HelloWithoutFrame(pieces); hello && !actor_) {
        if (absl::Status s = CheckProtocol(*hello); !s.ok()) return s;
      }
      service_->collector_->ReceiveMalformed();
      return frame.status();
    }
    return frame->header.has_batch() ? HandleBatch(*frame, received.Length()) : HandleOther(frame->header);
  }

  absl::Status HandleBatch(const Frame& frame, uint64_t bytes) {
    if (!actor_) return absl::InvalidArgumentError("the first message must be hello");
    v1::CollectResponse response;
    *response.mutable_receipt() = service_->collector_->Receive(*actor_, frame, bytes);
    const bool rejected = response.receipt().result() == v1::RECEIPT_RESULT_REJECTED;
    rejected_in_a_row_ = rejected ? rejected_in_a_row_ + 1 : 0;
    if (response.receipt().result() == v1::RECEIPT_RESULT_ACCEPTED && FaultsInstalled()) {
      if (const absl::Status s = LoseReceipt(response.receipt()); !s.ok()) return s;
    }
    Send(response);
    if (rejected_in_a_row_ >= kMaxRejectedInARow) {
      return absl::InvalidArgumentError("three batches in a row were rejected, the last because of " +
                                        response.receipt().message());
    }
    service_->SendGrants();
    return absl::OkStatus();
  }

  // Whether SKEIN_FAULTS wants this receipt lost, and the connection with it. "forget": the learner does not say at the
  // next hello either that the batch has arrived, so that it is sent again.
  absl::Status LoseReceipt(const v1::Receipt& receipt) {
    const FaultKind fault = NextFault(FaultPoint::kReceipt);
    if (fault == FaultKind::kNone) return absl::OkStatus();
    if (fault == FaultKind::kForget) {
      absl::MutexLock lock(&service_->mu_);
      service_->forgotten_[*actor_] = receipt.sequence();
    }
    return absl::UnavailableError("SKEIN_FAULTS: the receipt is lost");
  }

  absl::Status HandleOther(const v1::CollectRequest& request) {
    if (request.has_hello()) {
      if (actor_) return absl::InvalidArgumentError("hello came twice");
      const ActorKey actor{request.hello().actor_id(), request.hello().generation(), certificate_};
      if (absl::Status s = service_->Admit(actor, request.hello(), shared_from_this()); !s.ok()) return s;
      actor_ = actor;
      service_->SendGrants();
      return absl::OkStatus();
    }
    if (!actor_) return absl::InvalidArgumentError("the first message must be hello");
    if (!request.has_goodbye()) return absl::InvalidArgumentError("message: is empty or unknown");
    service_->collector_->Depart(*actor_, request.goodbye());
    service_->SendGrants();
    return absl::OkStatus();
  }

  // While a message is handled the answer waits for the ticket that may go with it.
  void Hold(bool held) {
    absl::MutexLock lock(&mu_);
    held_ = held;
    WriteNext();
  }

  bool ended() {
    absl::MutexLock lock(&mu_);
    return status_.has_value();
  }

  // Starts the next write or the finish, if neither is under way. gRPC never runs a reaction from inside these calls.
  void WriteNext() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    if (writing_ || ended_ || held_) return;
    if (!outgoing_.empty() && !cancelled_) {
      writing_ = true;
      bool owned = false;
      sent_.Clear();
      grpc::SerializationTraits<v1::CollectResponse>::Serialize(outgoing_.front(), &sent_, &owned);
      outgoing_.pop_front();
      StartWrite(&sent_);
    } else if (status_) {
      ended_ = true;
      grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>::Finish(*status_);
    }
  }

  LearnerService* const service_;
  const std::string certificate_;
  std::shared_ptr<Stream> self_;
  grpc::ByteBuffer received_;  // Of the read that is under way.
  // Of the reaction that handles messages.
  std::optional<ActorKey> actor_;
  int rejected_in_a_row_ = 0;

  absl::Mutex mu_;
  std::optional<Message> arrived_ ABSL_GUARDED_BY(mu_);
  bool handling_ ABSL_GUARDED_BY(mu_) = false;
  grpc::ByteBuffer sent_ ABSL_GUARDED_BY(mu_);  // Of the write that is under way.
  std::deque<v1::CollectResponse> outgoing_ ABSL_GUARDED_BY(mu_);
  std::optional<grpc::Status> status_ ABSL_GUARDED_BY(mu_);  // Set once the stream is to end.
  bool held_ ABSL_GUARDED_BY(mu_) = false;
  bool writing_ ABSL_GUARDED_BY(mu_) = false;
  bool cancelled_ ABSL_GUARDED_BY(mu_) = false;
  bool ended_ ABSL_GUARDED_BY(mu_) = false;
};

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
  const ActorKey* actor = FindStream(request->actor_id(), request->generation(), certificate);
  if (actor != nullptr) return publisher_->Subscribe(*actor, request->newest_version());
  return new Refused(
      absl::FailedPreconditionError("actor_id: has no trajectory stream here; say hello by Collect first"));
}

const ActorKey* LearnerService::FindStream(const std::string& actor_id, uint64_t generation,
                                           const std::string& certificate) const {
  const ActorKey* newest = nullptr;
  for (auto it = streams_.lower_bound({actor_id, generation}); it != streams_.end(); ++it) {
    const ActorKey& life = it->first;
    if (life.actor_id != actor_id) break;
    if (life.certificate == certificate && IsStayOf(life, generation)) newest = &life;
  }
  return newest;
}

absl::Status LearnerService::Admit(const ActorKey& actor, const v1::Hello& hello, std::shared_ptr<Stream> stream) {
  std::shared_ptr<Stream> before;
  bool finished;
  {
    absl::MutexLock lock(&mu_);
    const bool known = collector_->Knows(actor);
    if (!known && newcomers_.size() >= Newcomers::kMost) {
      return absl::ResourceExhaustedError(
          absl::StrCat(newcomers_.size(), " new actors wait for the coordinator to say that they are members"));
    }
    auto welcome = collector_->Open(hello, actor.certificate);
    if (!welcome.ok()) return welcome.status();
    if (const auto stay = newcomers_.Greet(actor, hello, known, MonotonicNow())) {
      collector_->Close(stay->life, stay->env_steps_collected);
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

bool LearnerService::HasNewcomers() {
  absl::MutexLock lock(&mu_);
  return !newcomers_.empty();
}

void LearnerService::Confirm(const v1::StatusResponse& status, absl::Duration asked) {
  std::vector<std::shared_ptr<Stream>> strangers;
  {
    absl::MutexLock lock(&mu_);
    const Newcomers::Verdict verdict = newcomers_.Judge(status, asked, lease_);
    // First what members say of their lives before, which may be strangers' now.
    for (const auto& [life, env_steps_collected] : verdict.ended) collector_->Close(life, env_steps_collected);
    for (const ActorKey& actor : verdict.strangers) {
      collector_->Close(actor, 0);
      publisher_->Dismiss(actor);
      // Now, not when its stream is done: that waits until it has read what was sent.
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

bool LearnerService::Dismiss(const ActorKey& actor, const Stream* stream) {
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
