// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/process/cancellation.h"
#include "coordinator/etcd_client.h"
#include "coordinator/state_store.h"

namespace skein {

// A StateStore in etcd, for the coordinator that holds the key PREFIX/primary. The key is attached to a lease.
//   Acquire: waits until the key is free, then takes it    records: PREFIX/state/...
//   records set aside: PREFIX/aside/NAME/...
// A thread keeps the lease alive. Each Write() is a transaction that checks the key, so a coordinator that has lost it
// writes nothing. Serving() turns false, by this process's own steady clock, before etcd can give the key to another
// coordinator.
class EtcdStore final : public StateStore {
 public:
  struct Options {
    EtcdAddress etcd;
    std::string address;                                 // Of this coordinator, for others to see.
    absl::Duration lease = absl::Seconds(5);             // At least 2 s; whole seconds, rounded up.
    absl::Duration patience = absl::InfiniteDuration();  // How long to wait for another primary, or for etcd.
    Cancellation* cancel = nullptr;                      // Ends the wait; not owned, not used after it.
    // Called once when it must wait, with the primary's address or why that is not known; on the caller's thread.
    std::function<void(const std::string&)> on_wait;
    // Called once when the lease is lost, on the store's thread; must not block.
    std::function<void(const absl::Status&)> on_lost;
  };

  // Blocks until this coordinator is the primary. Unavailable: for longer than `patience` another one is the primary,
  // or etcd does not answer. Cancelled: `cancel`. Others as EtcdClient.
  static absl::StatusOr<std::unique_ptr<EtcdStore>> Acquire(Options options);
  // Releases the key, so that a standby need not wait for the lease to end.
  ~EtcdStore() override;

  absl::StatusOr<std::map<std::string, std::string>> Load() override;
  absl::Status Write(const std::vector<StateChange>& changes) override;
  // Moves the records to PREFIX/aside/NAME/, replacing what was there. If it is interrupted, all records are still in
  // place and the next primary repeats the move.
  absl::StatusOr<std::string> SetAside(const std::string& name) override;
  bool Serving() const override ABSL_LOCKS_EXCLUDED(mu_);

 private:
  explicit EtcdStore(Options options);
  // Takes the key if it is free. Returns "" if this coordinator took it, else the holder's address.
  absl::StatusOr<std::string> TryToTake();
  absl::Status WaitToTake();
  // Executes the operations if this is still the primary.
  absl::Status Do(const std::vector<etcdserverpb::RequestOp>& operations);
  void KeepAlive() ABSL_LOCKS_EXCLUDED(mu_);
  void Lose(const absl::Status& why) ABSL_LOCKS_EXCLUDED(mu_);

  const Options options_;
  const std::string key_;     // PREFIX/primary
  const std::string folder_;  // PREFIX/state/
  EtcdClient client_;
  int64_t lease_ = 0;            // Constant once acquired, as is
  int64_t create_revision_ = 0;  // of the key.

  mutable absl::Mutex mu_;
  absl::Duration serving_until_ ABSL_GUARDED_BY(mu_);  // As MonotonicNow().
  bool lost_ ABSL_GUARDED_BY(mu_) = false;
  bool stop_ ABSL_GUARDED_BY(mu_) = false;
  std::thread keeper_;
};

}  // namespace skein
