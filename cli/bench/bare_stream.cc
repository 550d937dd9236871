// SPDX-License-Identifier: Apache-2.0
#include "cli/bench/bare_stream.h"

#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "base/clock.h"
#include "base/grpc_transport.h"
#include "grpcpp/generic/async_generic_service.h"
#include "grpcpp/grpcpp.h"
#include "grpcpp/support/sync_stream.h"

namespace skein {
namespace {

using ByteStream = grpc::ClientReaderWriter<grpc::ByteBuffer, grpc::ByteBuffer>;

// Reads and forgets; one answer for each message.
class Discard final : public grpc::ServerGenericBidiReactor {
 public:
  Discard() : answer_(&slice_, 1) { StartRead(&message_); }

  void OnReadDone(bool ok) override {
    {
      absl::MutexLock lock(&mu_);
      if (!ok) {
        closing_ = true;
      } else {
        ++owed_;
      }
      Advance();
    }
    if (ok) StartRead(&message_);
  }
  void OnWriteDone(bool ok) override {
    absl::MutexLock lock(&mu_);
    writing_ = false;
    if (!ok) closing_ = true;
    Advance();
  }
  void OnDone() override { delete this; }

 private:
  void Advance() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    if (writing_ || finished_) return;
    if (closing_) {
      finished_ = true;
      Finish(grpc::Status::OK);
    } else if (owed_ > 0) {
      --owed_;
      writing_ = true;
      StartWrite(&answer_);
    }
  }

  const grpc::Slice slice_{"."};
  grpc::ByteBuffer message_, answer_;
  absl::Mutex mu_;
  int owed_ ABSL_GUARDED_BY(mu_) = 0;
  bool writing_ ABSL_GUARDED_BY(mu_) = false;
  bool closing_ ABSL_GUARDED_BY(mu_) = false;
  bool finished_ ABSL_GUARDED_BY(mu_) = false;
};

class DiscardService final : public grpc::CallbackGenericService {
 public:
  grpc::ServerGenericBidiReactor* CreateReactor(grpc::GenericCallbackServerContext*) override { return new Discard; }
};

}  // namespace

struct BareStream::Impl {
  explicit Impl(int most_in_flight) : in_flight(most_in_flight) {}

  void ReadAnswers() {
    grpc::ByteBuffer answer;
    while (stream->Read(&answer)) {
      absl::MutexLock lock(&mu);
      ++answered;
    }
    absl::MutexLock lock(&mu);
    broken = true;
  }
  bool MaySend() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu) {
    return broken || sent - answered < static_cast<uint64_t>(in_flight);
  }
  bool AllAnswered() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu) { return broken || sent == answered; }

  const int in_flight;
  std::vector<grpc::ByteBuffer> messages;
  DiscardService service;
  std::unique_ptr<grpc::Server> server;
  std::shared_ptr<grpc::Channel> channel;
  grpc::ClientContext context;
  std::unique_ptr<ByteStream> stream;
  std::thread reader;
  absl::Mutex mu;
  uint64_t sent ABSL_GUARDED_BY(mu) = 0;
  uint64_t answered ABSL_GUARDED_BY(mu) = 0;
  bool broken ABSL_GUARDED_BY(mu) = false;
};

BareStream::BareStream(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

absl::StatusOr<std::unique_ptr<BareStream>> BareStream::Make(const std::string& message, int copies, int in_flight) {
  auto impl = std::make_unique<Impl>(in_flight);
  for (int i = 0; i < copies; ++i) {
    const grpc::Slice slice(message);
    impl->messages.emplace_back(&slice, 1);
  }
  int port = 0;
  grpc::ServerBuilder builder;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
  builder.RegisterCallbackGenericService(&impl->service);
  builder.SetMaxReceiveMessageSize(kMaxMessageBytes);
  impl->server = builder.BuildAndStart();
  if (impl->server == nullptr || port == 0) return absl::UnavailableError("cannot listen on 127.0.0.1");
  impl->channel = OpenChannel(JoinHostPort("127.0.0.1", port));
  // What generated stubs do, with bytes for messages.
  const grpc::internal::RpcMethod method("/skein.bench/Bytes", grpc::internal::RpcMethod::BIDI_STREAMING);
  impl->stream.reset(grpc::internal::ClientReaderWriterFactory<grpc::ByteBuffer, grpc::ByteBuffer>::Create(
      impl->channel.get(), method, &impl->context));
  impl->reader = std::thread([raw = impl.get()] { raw->ReadAnswers(); });
  return std::unique_ptr<BareStream>(new BareStream(std::move(impl)));
}

BareStream::~BareStream() {
  impl_->stream->WritesDone();
  impl_->reader.join();
  impl_->stream->Finish();
  impl_->stream.reset();
  impl_->channel.reset();
  impl_->server->Shutdown(absl::ToChronoTime(absl::Now() + absl::Seconds(1)));
}

absl::StatusOr<BareStream::Sent> BareStream::Send(absl::Duration duration) {
  const absl::Duration begin = MonotonicNow();
  uint64_t messages = 0;
  bool broken = false;
  do {
    const grpc::ByteBuffer& message = impl_->messages[messages++ % impl_->messages.size()];
    {
      absl::MutexLock lock(&impl_->mu);
      impl_->mu.Await(absl::Condition(impl_.get(), &Impl::MaySend));
      broken = impl_->broken;
      ++impl_->sent;
    }
    if (broken || !impl_->stream->Write(message)) return absl::UnavailableError("the bare stream broke");
  } while (MonotonicNow() - begin < duration);
  absl::MutexLock lock(&impl_->mu);
  impl_->mu.Await(absl::Condition(impl_.get(), &Impl::AllAnswered));
  if (impl_->broken) return absl::UnavailableError("the bare stream broke");
  return Sent{messages, MonotonicNow() - begin};
}

}  // namespace skein
