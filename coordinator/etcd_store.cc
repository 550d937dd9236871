// SPDX-License-Identifier: Apache-2.0
#include "coordinator/etcd_store.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/process/clock.h"
#include "base/process/steady_wait.h"
#include "spdlog/spdlog.h"

namespace skein {
namespace {

constexpr int kMostOperations = 100;      // Of a transaction; etcd takes 128,
constexpr size_t kMostBytes = 1'000'000;  // and 1.5 MiB.
constexpr absl::Duration kAskAgain = absl::Milliseconds(250);
// etcd counts a lease's seconds from when it receives the request, this process from before it sends it. This share is
// subtracted in addition, for clocks of different speed.
constexpr double kMargin = 0.05;

etcdserverpb::RequestOp Put(const std::string& key, const std::string& value) {
  etcdserverpb::RequestOp operation;
  operation.mutable_request_put()->set_key(key);
  operation.mutable_request_put()->set_value(value);
  return operation;
}

etcdserverpb::RequestOp Delete(const std::string& key) {
  etcdserverpb::RequestOp operation;
  operation.mutable_request_delete_range()->set_key(key);
  return operation;
}

// Of all keys that begin with `prefix`, in one operation.
etcdserverpb::RequestOp DeleteAll(const std::string& prefix) {
  etcdserverpb::RequestOp operation = Delete(prefix);
  operation.mutable_request_delete_range()->set_range_end(EndOfPrefix(prefix));
  return operation;
}

}  // namespace

EtcdStore::EtcdStore(Options options)
    : options_(std::move(options)),
      key_(options_.etcd.prefix + "/primary"),
      folder_(options_.etcd.prefix + "/state/"),
      client_(options_.etcd, std::min(absl::Seconds(2), options_.lease / 3)) {}

absl::StatusOr<std::unique_ptr<EtcdStore>> EtcdStore::Acquire(Options options) {
  std::unique_ptr<EtcdStore> store(new EtcdStore(std::move(options)));
  if (absl::Status status = store->WaitToTake(); !status.ok()) return status;
  store->keeper_ = std::thread([store = store.get()] { store->KeepAlive(); });
  return store;
}

EtcdStore::~EtcdStore() {
  {
    absl::MutexLock lock(&mu_);
    stop_ = true;
  }
  if (keeper_.joinable()) keeper_.join();
  if (lease_ != 0) client_.Revoke(lease_).IgnoreError();
}

absl::Status EtcdStore::WaitToTake() {
  const absl::Duration deadline = MonotonicNow() + options_.patience;
  bool told = false;
  while (true) {
    const absl::StatusOr<std::string> holder = TryToTake();
    if (holder.ok() && holder->empty()) return absl::OkStatus();
    if (!holder.ok() && !absl::IsUnavailable(holder.status())) return holder.status();
    const std::string why =
        holder.ok() ? absl::StrCat(*holder, " is the primary") : std::string(holder.status().message());
    if (!std::exchange(told, true) && options_.on_wait) options_.on_wait(why);
    if (MonotonicNow() >= deadline) {
      return absl::UnavailableError(absl::StrCat(why, "; with --standby this coordinator would wait for its turn"));
    }
    absl::Mutex mu;
    bool cancelled = false;
    if (options_.cancel != nullptr) {
      options_.cancel->OnCancel([&] {
        absl::MutexLock lock(&mu);
        cancelled = true;
      });
    }
    {
      absl::MutexLock lock(&mu);
      AwaitFor(&mu, absl::Condition(&cancelled), kAskAgain);
    }
    if (options_.cancel == nullptr) continue;
    options_.cancel->OnCancel({});
    if (absl::Status status = options_.cancel->status(); !status.ok()) return status;
  }
}

absl::StatusOr<std::string> EtcdStore::TryToTake() {
  const auto held = client_.ReadKey(key_);
  if (!held.ok()) return held.status();
  if (held->kvs_size() > 0) return held->kvs(0).value();

  const absl::Duration begin = MonotonicNow();
  const int64_t seconds = std::max<int64_t>(2, absl::ToInt64Seconds(absl::Ceil(options_.lease, absl::Seconds(1))));
  const auto granted = client_.Grant(seconds);
  if (!granted.ok()) return granted.status();
  etcdserverpb::TxnRequest take;
  etcdserverpb::Compare* free = take.add_compare();
  free->set_target(etcdserverpb::Compare::CREATE);
  free->set_key(key_);
  free->set_create_revision(0);
  etcdserverpb::PutRequest* put = take.add_success()->mutable_request_put();
  put->set_key(key_);
  put->set_value(options_.address);
  put->set_lease(granted->id());
  const auto taken = client_.Transact(take);
  // If the answer was lost, the next attempt sees the key; the lease of the key shows whether it was this
  // coordinator's. That lease ends by itself.
  if (!taken.ok() || !taken->succeeded()) {
    client_.Revoke(granted->id()).IgnoreError();
    if (!taken.ok()) return taken.status();
    return std::string("another coordinator");
  }
  lease_ = granted->id();
  create_revision_ = taken->header().revision();
  absl::MutexLock lock(&mu_);
  serving_until_ = begin + absl::Seconds(granted->ttl()) * (1 - kMargin);
  return std::string();
}

void EtcdStore::KeepAlive() {
  const absl::Duration period = options_.lease / 4;
  absl::Duration pause = period;
  while (true) {
    {
      absl::MutexLock lock(&mu_);
      if (AwaitFor(&mu_, absl::Condition(&stop_), std::min(pause, serving_until_ - MonotonicNow()))) return;
      if (lost_) return;
    }
    const absl::Duration begin = MonotonicNow();
    const absl::StatusOr<int64_t> seconds = client_.KeepAlive(lease_);
    bool over = false;
    {
      absl::MutexLock lock(&mu_);
      if (stop_) return;
      // An answer that arrives after this process has stopped serving has no effect.
      over = MonotonicNow() >= serving_until_;
      if (seconds.ok() && !over) serving_until_ = begin + absl::Seconds(*seconds) * (1 - kMargin);
    }
    if (over || absl::IsNotFound(seconds.status())) {
      Lose(absl::AbortedError(absl::StrCat("the lease in etcd has ended: ",
                                           seconds.ok() ? "this process was too late" : seconds.status().message())));
      return;
    }
    if (!seconds.ok())
      spdlog::warn("the lease in etcd was not kept alive: {}", std::string(seconds.status().message()));
    pause = seconds.ok() ? period : std::min(period, kAskAgain);
  }
}

void EtcdStore::Lose(const absl::Status& why) {
  {
    absl::MutexLock lock(&mu_);
    if (std::exchange(lost_, true)) return;
  }
  if (options_.on_lost) options_.on_lost(why);
}

bool EtcdStore::Serving() const {
  absl::MutexLock lock(&mu_);
  return !lost_ && MonotonicNow() < serving_until_;
}

absl::StatusOr<std::map<std::string, std::string>> EtcdStore::Load() {
  const auto all = client_.ReadPrefix(folder_);
  if (!all.ok()) return all.status();
  std::map<std::string, std::string> records;
  for (const etcdserverpb::KeyValue& pair : all->kvs()) records[pair.key().substr(folder_.size())] = pair.value();
  return records;
}

absl::Status EtcdStore::Write(const std::vector<StateChange>& changes) {
  std::vector<etcdserverpb::RequestOp> operations;
  for (const StateChange& change : changes) {
    operations.push_back(change.value ? Put(folder_ + change.key, *change.value) : Delete(folder_ + change.key));
  }
  return Do(operations);
}

absl::StatusOr<std::string> EtcdStore::SetAside(const std::string& name) {
  const std::string aside = absl::StrCat(options_.etcd.prefix, "/aside/", name, "/");
  const auto records = Load();
  if (!records.ok()) return records.status();
  if (records->empty()) return aside;
  // All records stay in place until all copies exist, and are then removed in one transaction. A primary that follows
  // one interrupted here starts the move again.
  if (absl::Status status = Do({DeleteAll(aside)}); !status.ok()) return status;
  std::vector<etcdserverpb::RequestOp> copies;
  for (const auto& [key, value] : *records) copies.push_back(Put(aside + key, value));
  if (absl::Status status = Do(copies); !status.ok()) return status;
  if (absl::Status status = Do({DeleteAll(folder_)}); !status.ok()) return status;
  return aside;
}

absl::Status EtcdStore::Do(const std::vector<etcdserverpb::RequestOp>& operations) {
  for (size_t at = 0; at < operations.size();) {
    etcdserverpb::TxnRequest request;
    etcdserverpb::Compare* still = request.add_compare();
    still->set_target(etcdserverpb::Compare::CREATE);
    still->set_key(key_);
    still->set_create_revision(create_revision_);
    size_t bytes = 0;
    do {  // At least one, whatever its size: the size of a record is bounded where it is made.
      bytes += operations[at].ByteSizeLong();
      *request.add_success() = operations[at];
      ++at;
    } while (at < operations.size() && request.success_size() < kMostOperations &&
             bytes + operations[at].ByteSizeLong() <= kMostBytes);
    const auto done = client_.Transact(request);
    if (!done.ok()) return done.status();
    if (done->succeeded()) continue;
    const absl::Status why = absl::AbortedError("another coordinator is the primary now");
    Lose(why);
    return why;
  }
  return absl::OkStatus();
}

}  // namespace skein
