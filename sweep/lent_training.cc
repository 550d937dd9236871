// SPDX-License-Identifier: Apache-2.0
#include "sweep/lent_training.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/process/clock.h"
#include "base/process/exit_code.h"
#include "sweep/place_file.h"

namespace skein {
namespace {

constexpr absl::Duration kLookAtAnswer = absl::Milliseconds(200);
constexpr int kLockAttempts = 200;  // To lock an order, 1 ms apart: the worker has the lock for a moment when it looks.

struct Look {
  bool lent = false;
  std::optional<SlotAnswer> answer;
};

// Opens the file anew: a network file system then asks its server.
Look LookAt(const std::string& path) {
  Look look;
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
  if (fd < 0) return look;
  // The lock first: a worker's last answer comes before its end.
  look.lent = flock(fd, LOCK_SH | LOCK_NB) != 0;
  look.answer = AnswerOf(ReadAll(fd));
  close(fd);
  return look;
}

}  // namespace

absl::StatusOr<std::unique_ptr<LentTraining>> LentTraining::Begin(const std::string& slot, SlotOrder order) {
  const std::string path = OrderPath(order.folder, slot);
  const auto gone = [&] { return absl::UnavailableError(absl::StrCat("slot ", slot, " is lent no more")); };
  if (!IsLent(WorkerPath(order.folder, slot))) return gone();
  const int fd = open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW);
  if (fd < 0) return gone();
  bool locked = false;
  for (int i = 0; i < kLockAttempts && !locked; ++i) {
    if (i > 0) absl::SleepFor(absl::Milliseconds(1));
    locked = flock(fd, LOCK_EX | LOCK_NB) == 0;
  }
  if (!locked) {
    close(fd);
    return absl::UnavailableError(absl::StrCat(path, " is in use"));
  }
  std::unique_ptr<LentTraining> training(new LentTraining(slot, std::move(order), fd));
  if (absl::Status s = Rewrite(fd, path, ToText(training->order_)); !s.ok()) return s;
  return training;
}

LentTraining::~LentTraining() {
  Rewrite(fd_, "", "").IgnoreError();
  close(fd_);
}

std::optional<int> LentTraining::Poll() {
  const absl::Duration now = MonotonicNow();
  if (code_ || now < next_look_) return code_;
  next_look_ = now + kLookAtAnswer;
  const Look look = LookAt(WorkerPath(order_.folder, slot_));
  if (look.answer && look.answer->id == order_.id) {
    code_ = look.answer->code;
    why_ = look.answer->why;
  } else if (!look.lent) {
    lost_ = true;
    code_ = kExitTryAgain;
    why_ = absl::StrCat(order_.name, ": the worker with slot ", slot_, " has ended");
  }
  return code_;
}

void LentTraining::Stop() {
  if (std::exchange(order_.stop, true)) return;
  Rewrite(fd_, "", ToText(order_)).IgnoreError();  // One character: no disk is too full for that.
}

}  // namespace skein
