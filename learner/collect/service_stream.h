// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "base/net/grpc_transport.h"
#include "base/process/fault_hook.h"
#include "base/telemetry/log.h"
#include "base/telemetry/printable.h"
#include "grpcpp/support/slice.h"
#include "learner/collect/service.h"
#include "trajectory/frame.h"

namespace skein {

// One actor's Collect stream. Reads one request at a time; receipts and tickets queue behind the write in flight.
// Owned by itself until OnDone, and by others through shared pointers.
class LearnerService::Stream : public grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>,
                               public std::enable_shared_from_this<Stream> {
 public:
  Stream(LearnerService* service, std::string certificate) : service_(service), certificate_(std::move(certificate)) {}

  void Start() {
    self_ = shared_from_this();
    StartRead(&received_);
  }

  // A ticket is added to the last queued response if that has none.
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

  // The next message is read while this one is handled. Messages are handled one after the other: the reaction that is
  // handling one also takes the messages that arrive meanwhile.
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
  // The stream ends after this many rejected fragments in a row.
  static constexpr int kMaxRejectedInARow = 3;

  using Message = std::optional<grpc::ByteBuffer>;  // nullopt: no message will follow.

  // False: nothing has arrived; the next reaction handles the next message.
  bool TakeArrived(Message* message) {
    absl::MutexLock lock(&mu_);
    handling_ = arrived_.has_value();
    if (handling_) *message = *std::exchange(arrived_, std::nullopt);
    return handling_;
  }

  absl::Status HandleRequest(const grpc::ByteBuffer& received) {
    if (ended()) return absl::OkStatus();
    // The slices are views of the received bytes; they and the pieces live until the fragment is copied into place.
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
    return frame->header.has_fragment() ? HandleFragment(*frame, received.Length()) : HandleOther(frame->header);
  }

  absl::Status HandleFragment(const Frame& frame, uint64_t bytes) {
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
      return absl::InvalidArgumentError("three fragments in a row were rejected, the last because of " +
                                        response.receipt().message());
    }
    service_->SendGrants();
    return absl::OkStatus();
  }

  // Fault injection: Unavailable if SKEIN_FAULTS asks to lose this receipt, and the stream with it. "forget": the
  // learner also omits the fragment from the last sequence in its next welcome, so that the actor sends it again.
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
      const ConnectionId actor{request.hello().actor_id(), request.hello().generation(), certificate_};
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

  // While a message is handled no write starts, so that a ticket can be added to the answer.
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
  grpc::ByteBuffer received_;  // Of the read under way.
  // Used only by the reaction that handles messages.
  std::optional<ConnectionId> actor_;
  int rejected_in_a_row_ = 0;

  absl::Mutex mu_;
  std::optional<Message> arrived_ ABSL_GUARDED_BY(mu_);
  bool handling_ ABSL_GUARDED_BY(mu_) = false;
  grpc::ByteBuffer sent_ ABSL_GUARDED_BY(mu_);  // Of the write under way.
  std::deque<v1::CollectResponse> outgoing_ ABSL_GUARDED_BY(mu_);
  std::optional<grpc::Status> status_ ABSL_GUARDED_BY(mu_);  // Set once the stream is to end.
  bool held_ ABSL_GUARDED_BY(mu_) = false;
  bool writing_ ABSL_GUARDED_BY(mu_) = false;
  bool cancelled_ ABSL_GUARDED_BY(mu_) = false;
  bool ended_ ABSL_GUARDED_BY(mu_) = false;
};

}  // namespace skein
