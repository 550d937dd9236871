// SPDX-License-Identifier: Apache-2.0
#include "learner/collect/policy_publisher.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/number/tensor_packing.h"

namespace skein {

// Fields are guarded by the publisher's mutex; gRPC calls the reactions one after another.
class PolicyPublisher::Stream : public grpc::ServerWriteReactor<v1::PolicySnapshot> {
 public:
  Stream(PolicyPublisher* publisher, const ConnectionId& actor, uint64_t newest_version)
      : publisher_(publisher), actor_(actor), sent_version_(newest_version) {}

  void OnWriteDone(bool ok) override {
    {
      absl::MutexLock lock(&publisher_->mu_);
      writing_ = nullptr;
      broken_ = broken_ || !ok;
    }
    publisher_->Advance(this);
  }
  void OnCancel() override {
    {
      absl::MutexLock lock(&publisher_->mu_);
      broken_ = true;
    }
    publisher_->Advance(this);
  }
  void OnDone() override {
    {
      absl::MutexLock lock(&publisher_->mu_);
      publisher_->streams_.erase(this);
    }
    delete this;
  }

 private:
  friend class PolicyPublisher;
  PolicyPublisher* const publisher_;
  const ConnectionId actor_;
  uint64_t sent_version_;
  std::shared_ptr<const v1::PolicySnapshot> writing_;
  bool broken_ = false;
  bool dismissed_ = false;
  bool ended_ = false;
};

void PolicyPublisher::Advance(Stream* stream) {
  std::shared_ptr<const v1::PolicySnapshot> next;
  bool end = false;
  grpc::Status status;
  {
    absl::MutexLock lock(&mu_);
    if (streams_.count(stream) == 0 || stream->writing_ != nullptr || stream->ended_) return;
    if (!finished_ && !stream->broken_ && !stream->dismissed_) {
      for (const auto& snapshot : kept_) {
        if (snapshot->version() <= stream->sent_version_) continue;
        next = snapshot;
        break;
      }
      if (next == nullptr) return;
      stream->sent_version_ = next->version();
      stream->writing_ = next;
    } else {
      stream->ended_ = end = true;
      if (!finished_ && stream->dismissed_) {
        status = grpc::Status(grpc::StatusCode::ABORTED, "the actor's trajectory stream has ended");
      }
    }
  }
  if (end) {
    stream->Finish(status);
  } else {
    metrics_->CountPolicySent(next->ByteSizeLong(), SavedBytes(next->tensors()));
    stream->StartWrite(next.get());
  }
}

void PolicyPublisher::Publish(std::shared_ptr<const v1::PolicySnapshot> snapshot) {
  std::vector<Stream*> streams;
  {
    absl::MutexLock lock(&mu_);
    kept_.push_back(std::move(snapshot));
    if (kept_.size() > 2) kept_.pop_front();
    streams.assign(streams_.begin(), streams_.end());
  }
  for (Stream* stream : streams) Advance(stream);
}

grpc::ServerWriteReactor<v1::PolicySnapshot>* PolicyPublisher::Subscribe(const ConnectionId& actor,
                                                                         uint64_t newest_version) {
  auto* stream = new Stream(this, actor, newest_version);
  {
    absl::MutexLock lock(&mu_);
    streams_.insert(stream);
  }
  Advance(stream);
  return stream;
}

void PolicyPublisher::Dismiss(const ConnectionId& actor) {
  std::vector<Stream*> streams;
  {
    absl::MutexLock lock(&mu_);
    for (Stream* stream : streams_) {
      if (!(stream->actor_ == actor)) continue;
      stream->dismissed_ = true;
      streams.push_back(stream);
    }
  }
  for (Stream* stream : streams) Advance(stream);
}

void PolicyPublisher::Finish() {
  std::vector<Stream*> streams;
  {
    absl::MutexLock lock(&mu_);
    finished_ = true;
    streams.assign(streams_.begin(), streams_.end());
  }
  for (Stream* stream : streams) Advance(stream);
}

}  // namespace skein
