// SPDX-License-Identifier: Apache-2.0
#include "base/process/shutdown.h"

#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/numbers.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "base/process/clock.h"
#include "base/process/exit_code.h"

namespace skein {
namespace {

// The thread that reads signals; valid while ForwardToReader() is installed.
pthread_t reader_of_signals;

// Runs on threads that a library started before main() and that block nothing.
void ForwardToReader(int signal_number) { pthread_kill(reader_of_signals, signal_number); }

}  // namespace

// Two threads, so that a second signal ends the process even while the callback hangs.
class ShutdownSignal::Impl {
 public:
  explicit Impl(absl::Duration same) : same_(same) {
    std::signal(SIGPIPE, SIG_IGN);
    struct sigaction hangup = {};
    sigaction(SIGHUP, nullptr, &hangup);
    if (hangup.sa_handler != SIG_IGN) handled_.push_back({SIGHUP, {}});  // nohup: the terminal's end means nothing.
    sigset_t signals;
    sigemptyset(&signals);
    for (const Handled& one : handled_) sigaddset(&signals, one.number);
    pthread_sigmask(SIG_BLOCK, &signals, &mask_before_);
    signal_fd_ = signalfd(-1, &signals, SFD_CLOEXEC);
    stop_fd_ = eventfd(0, EFD_CLOEXEC);
    reader_ = std::thread([this] { ReadSignals(); });
    reader_of_signals = reader_.native_handle();
    struct sigaction forward = {};
    forward.sa_handler = ForwardToReader;
    forward.sa_flags = SA_RESTART;
    for (Handled& one : handled_) sigaction(one.number, &forward, &one.before);
    caller_ = std::thread([this] { CallBack(); });
  }

  ~Impl() {
    {
      absl::MutexLock lock(&mu_);
      stop_ = true;
    }
    for (const Handled& one : handled_) sigaction(one.number, &one.before, nullptr);
    const uint64_t one = 1;
    (void)!write(stop_fd_, &one, sizeof(one));
    reader_.join();
    caller_.join();
    close(signal_fd_);
    close(stop_fd_);
    pthread_sigmask(SIG_SETMASK, &mask_before_, nullptr);
  }

  void OnSignal(std::function<void()> on_signal) ABSL_LOCKS_EXCLUDED(mu_) {
    absl::MutexLock lock(&mu_);
    const auto not_calling = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) { return !calling_; };
    if (std::this_thread::get_id() != caller_.get_id()) mu_.Await(absl::Condition(&not_calling));
    on_signal_ = std::move(on_signal);
  }

  bool signalled() const ABSL_LOCKS_EXCLUDED(mu_) {
    absl::MutexLock lock(&mu_);
    return signalled_;
  }

 private:
  struct Handled {
    int number;
    struct sigaction before;
  };

  void ReadSignals() ABSL_LOCKS_EXCLUDED(mu_) {
    pollfd sources[2] = {{signal_fd_, POLLIN, 0}, {stop_fd_, POLLIN, 0}};
    while (true) {
      if (poll(sources, 2, -1) < 0) continue;
      if (sources[1].revents != 0) return;
      signalfd_siginfo info;
      if (read(signal_fd_, &info, sizeof(info)) != sizeof(info)) continue;
      absl::MutexLock lock(&mu_);
      const absl::Duration now = MonotonicNow();
      // Shells and the kernel may both tell of a closed terminal: that is no second wish.
      if (signalled_ && info.ssi_signo != SIGHUP && now - first_ >= same_)
        _exit(128 + static_cast<int>(info.ssi_signo));
      if (!signalled_) first_ = now;
      signalled_ = true;
    }
  }

  void CallBack() ABSL_LOCKS_EXCLUDED(mu_) {
    const auto something_to_do = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
      return stop_ || (signalled_ && on_signal_ != nullptr);
    };
    while (true) {
      std::function<void()> on_signal;
      {
        absl::MutexLock lock(&mu_);
        mu_.Await(absl::Condition(&something_to_do));
        if (stop_) return;
        on_signal = std::exchange(on_signal_, nullptr);
        calling_ = true;
      }
      on_signal();
      absl::MutexLock lock(&mu_);
      calling_ = false;
    }
  }

  const absl::Duration same_;
  sigset_t mask_before_;
  std::vector<Handled> handled_ = {{SIGTERM, {}}, {SIGINT, {}}};
  int signal_fd_ = -1;
  int stop_fd_ = -1;
  mutable absl::Mutex mu_;
  bool signalled_ ABSL_GUARDED_BY(mu_) = false;
  absl::Duration first_ ABSL_GUARDED_BY(mu_);  // When the first signal came.
  bool stop_ ABSL_GUARDED_BY(mu_) = false;
  bool calling_ ABSL_GUARDED_BY(mu_) = false;
  std::function<void()> on_signal_ ABSL_GUARDED_BY(mu_);
  std::thread reader_;
  std::thread caller_;
};

ShutdownSignal::ShutdownSignal(absl::Duration same) : impl_(new Impl(same)) {}

ShutdownSignal::~ShutdownSignal() { delete impl_; }

void ShutdownSignal::OnSignal(std::function<void()> on_signal) { impl_->OnSignal(std::move(on_signal)); }

bool ShutdownSignal::signalled() const { return impl_->signalled(); }

void ExitWithParent(absl::Duration limit) {
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  int parent = getppid();
  const int parent_fd = static_cast<int>(syscall(SYS_pidfd_open, parent, 0));
  // The parent may have died before that; Subprocess tells its children its process id.
  const char* expected = std::getenv("SKEIN_PARENT_PID");
  const bool orphan = expected != nullptr && absl::SimpleAtoi(expected, &parent) && parent != getppid();
  std::thread([parent_fd, orphan, limit] {
    // Without a pidfd only SIGTERM is left.
    if (!orphan && parent_fd < 0) return;
    pollfd ended = {parent_fd, POLLIN, 0};
    while (!orphan && poll(&ended, 1, -1) < 1) continue;
    absl::SleepFor(limit);
    _exit(kExitTryAgain);
  }).detach();
  if (orphan) kill(getpid(), SIGTERM);
}

}  // namespace skein
