// SPDX-License-Identifier: Apache-2.0
#include "bench/bare_stream.h"

#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "base/net/grpc_transport.h"
#include "base/process/clock.h"
#include "grpcpp/generic/async_generic_service.h"
#include "grpcpp/grpcpp.h"
#include "grpcpp/support/sync_stream.h"

namespace skein {
namespace {

constexpr size_t kFirstMessages = 100;

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

// One call, which sends with a limited number of unanswered messages. The thread that reads answers lives as long as
// this object.
class Sender {
 public:
  Sender(grpc::Channel* channel, int in_flight) : in_flight_(static_cast<uint64_t>(in_flight)) {
    // What generated stubs do, with bytes for messages. gRPC's public generic stub has no calls that block.
    const grpc::internal::RpcMethod method("/skein.bench/Bytes", grpc::internal::RpcMethod::BIDI_STREAMING);
    stream_.reset(grpc::internal::ClientReaderWriterFactory<grpc::ByteBuffer, grpc::ByteBuffer>::Create(channel, method,
                                                                                                        &context_));
    reader_ = std::thread([this] { ReadAnswers(); });
  }
  ~Sender() {
    stream_->WritesDone();
    reader_.join();
    stream_->Finish();
  }

  // Whether it was sent, once it may be.
  bool Send(const grpc::ByteBuffer& message) {
    {
      absl::MutexLock lock(&mu_);
      mu_.Await(absl::Condition(this, &Sender::MaySend));
      if (broken_) return false;
      ++sent_;
    }
    return stream_->Write(message);
  }
  // Whether all was answered.
  bool AwaitAnswers() {
    absl::MutexLock lock(&mu_);
    mu_.Await(absl::Condition(this, &Sender::AllAnswered));
    return !broken_;
  }

 private:
  void ReadAnswers() {
    grpc::ByteBuffer answer;
    while (stream_->Read(&answer)) {
      absl::MutexLock lock(&mu_);
      ++answered_;
    }
    absl::MutexLock lock(&mu_);
    broken_ = true;
  }
  bool MaySend() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) { return broken_ || sent_ - answered_ < in_flight_; }
  bool AllAnswered() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) { return broken_ || sent_ == answered_; }

  const uint64_t in_flight_;
  grpc::ClientContext context_;
  std::unique_ptr<ByteStream> stream_;
  std::thread reader_;
  absl::Mutex mu_;
  uint64_t sent_ ABSL_GUARDED_BY(mu_) = 0;
  uint64_t answered_ ABSL_GUARDED_BY(mu_) = 0;
  bool broken_ ABSL_GUARDED_BY(mu_) = false;
};

}  // namespace

struct BareStream::Impl {
  int in_flight = 1;
  std::vector<grpc::ByteBuffer> messages;
  DiscardService service;
  std::unique_ptr<grpc::Server> server;
  std::shared_ptr<grpc::Channel> channel;
};

BareStream::BareStream(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

absl::StatusOr<std::unique_ptr<BareStream>> BareStream::Make(const std::string& message, int copies, int in_flight) {
  auto impl = std::make_unique<Impl>();
  impl->in_flight = in_flight;
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
  return std::unique_ptr<BareStream>(new BareStream(std::move(impl)));
}

BareStream::~BareStream() {
  impl_->channel.reset();
  impl_->server->Shutdown(absl::ToChronoTime(absl::Now() + absl::Seconds(1)));
}

absl::StatusOr<BareStream::Sent> BareStream::Send(absl::Duration duration) {
  const auto broke = [] { return absl::UnavailableError("the bare stream broke"); };
  Sender sender(impl_->channel.get(), impl_->in_flight);
  // The first connect, and make gRPC's window as wide as it gets.
  for (size_t i = 0; i < kFirstMessages; ++i) {
    if (!sender.Send(impl_->messages[i % impl_->messages.size()])) return broke();
  }
  if (!sender.AwaitAnswers()) return broke();
  const absl::Duration begin = MonotonicNow();
  uint64_t messages = 0;
  do {
    if (!sender.Send(impl_->messages[messages++ % impl_->messages.size()])) return broke();
  } while (MonotonicNow() - begin < duration);
  if (!sender.AwaitAnswers()) return broke();
  return Sent{messages, MonotonicNow() - begin};
}

}  // namespace skein
