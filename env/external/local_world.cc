// SPDX-License-Identifier: Apache-2.0
#include "env/external/local_world.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/net/credential_flags.h"
#include "base/process/clock.h"
#include "base/process/message_text.h"
#include "base/process/subprocess.h"
#include "env/external/welcome.h"
#include "spdlog/spdlog.h"

namespace skein {
namespace {

// How long a wait looks before it sleeps: a server that answers sooner costs no system call.
constexpr absl::Duration kSpin = absl::Microseconds(30);
constexpr int kLooksBetweenClocks = 64;
// A waiter looks again so often, whatever happens to the byte that should wake it.
constexpr int kLookAgainMs = 20;
constexpr absl::Duration kFarewell = absl::Seconds(2);
// The exit code of a server in Python of which only this failed.
constexpr int kClosingFailed = 71;
constexpr size_t kLongestMessage = 256 << 10;

uint32_t* Word(char* memory, size_t at) { return reinterpret_cast<uint32_t*>(memory + at); }

void Pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

class Descriptor {
 public:
  explicit Descriptor(int fd = -1) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Descriptor() {
    if (fd_ >= 0) close(fd_);
  }
  int get() const { return fd_; }

 private:
  int fd_;
};

class LocalWorld final : public World {
 public:
  explicit LocalWorld(const LocalWorldOptions& options) : options_(options) {}
  ~LocalWorld() override {
    socket_ = Descriptor();  // It ends by itself, with what its environments have to put away; or is ended.
    if (child_ != nullptr && greeted_ && !broken_ && child_->Wait(kFarewell) == kClosingFailed) {
      spdlog::warn("{}: its environments could not be closed; what its server said of it stands above", options_.id);
    }
    child_.reset();
    if (memory_ != nullptr) munmap(memory_, memory_bytes_);
  }

  absl::Status Start();

  const EnvSpec& spec() const override { return spec_; }
  const std::string& server() const override { return server_; }
  size_t size() const override { return options_.count; }
  const WorldColumns& columns() const override { return columns_; }
  absl::Status Exchange(WorldRequest request, absl::Duration timeout) override;
  std::vector<env::v1::Failure> TakeFailures() override { return std::exchange(failures_, {}); }

 private:
  // Waits for the next packet, for so many milliseconds at most. OK: one has come; a message is then in received_, or
  // nothing if the packet only wakes. DeadlineExceeded: none. Else as Exchange.
  absl::Status Receive(int milliseconds);
  absl::Status ReadPacket();
  absl::Status Await(uint32_t sequence, absl::Duration timeout);
  absl::Status Send(const env::v1::ClientMessage& message);
  absl::Status Greet();
  absl::Status MakeMemory();
  // Why the server is gone.
  absl::Status Ended();

  const LocalWorldOptions options_;
  std::unique_ptr<Subprocess> child_;
  Descriptor socket_, shared_, life_;
  EnvSpec spec_;
  std::string server_;
  char* memory_ = nullptr;
  size_t memory_bytes_ = 0;
  WorldColumns columns_ = {};
  uint32_t sequence_ = 0;
  bool greeted_ = false;
  bool broken_ = false;
  std::vector<char> packet_ = std::vector<char>(kLongestMessage);
  std::optional<env::v1::ServerMessage> received_;
  std::vector<env::v1::Failure> failures_;
};

absl::Status System(const std::string& what) { return absl::InternalError(absl::StrCat(what, ": ", strerror(errno))); }

absl::Status GivenUp() { return absl::CancelledError("no caller waits for its server any longer"); }

absl::Status LocalWorld::Ended() {
  // The socket ends a moment before the process does.
  const std::optional<int> code = child_->Wait(absl::Seconds(1));
  std::string how = "has closed its socket";
  if (code && *code > 128) {
    how = absl::StrCat("was ended by signal ", *code - 128, " (", strsignal(*code - 128), ")");
  } else if (code) {
    how = absl::StrCat("ended with exit code ", *code);
  }
  // Its last words, if it had any.
  const std::string said = failures_.empty() ? "" : absl::StrCat(": ", OneLine(failures_.back().message()));
  const std::string hint = greeted_ || options_.hint.empty() ? "" : absl::StrCat("; ", options_.hint);
  return absl::UnavailableError(
      absl::StrCat("its server ", how, greeted_ ? "" : " before it had made the environment", said, hint));
}

absl::Status LocalWorld::Send(const env::v1::ClientMessage& message) {
  const std::string bytes = message.SerializeAsString();
  while (send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL) < 0) {
    if (errno == EINTR) continue;
    return errno == EPIPE || errno == ECONNRESET ? Ended() : System("cannot write to the server");
  }
  return absl::OkStatus();
}

absl::Status LocalWorld::Receive(int milliseconds) {
  pollfd source = {socket_.get(), POLLIN, 0};
  return poll(&source, 1, milliseconds) > 0 ? ReadPacket() : absl::DeadlineExceededError("");
}

absl::Status LocalWorld::ReadPacket() {
  received_.reset();
  const ssize_t got = recv(socket_.get(), packet_.data(), packet_.size(), MSG_DONTWAIT | MSG_TRUNC);
  if (got < 0 && (errno == EINTR || errno == EAGAIN)) return absl::DeadlineExceededError("");
  if (got <= 0) return Ended();
  if (got == 1) return absl::OkStatus();
  if (static_cast<size_t>(got) > packet_.size()) {
    return absl::DataLossError(absl::StrCat("its server sent ", got, " bytes as one message"));
  }
  env::v1::ServerMessage message;
  if (!message.ParseFromArray(packet_.data(), static_cast<int>(got))) {
    return absl::DataLossError("its server sent bytes that are no message of skein.env.v1");
  }
  if (greeted_) {
    if (!message.has_failure()) return absl::DataLossError("its server sent a message that has no place here");
    constexpr size_t kMostFailures = 64;
    if (failures_.size() < kMostFailures) failures_.push_back(std::move(*message.mutable_failure()));
  } else {
    received_ = std::move(message);
  }
  return absl::OkStatus();
}

absl::Status LocalWorld::Start() {
  int pair[2], pipe_ends[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0) return System("cannot make a socket");
  socket_ = Descriptor(pair[0]);
  Descriptor theirs(pair[1]);
  if (pipe2(pipe_ends, O_CLOEXEC) != 0) return System("cannot make a pipe");
  Descriptor their_life(pipe_ends[0]);
  life_ = Descriptor(pipe_ends[1]);
  shared_ = Descriptor(memfd_create("skein-env", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (shared_.get() < 0) return System("cannot make shared memory");

  Subprocess::Options child;
  child.argv = options_.argv;
  child.stdout_to_stderr = true;
  child.foreign = true;
  child.inherited_fds = {theirs.get(), shared_.get(), their_life.get()};
  child.extra_env = options_.extra_env;
  child.unset_env = CredentialFileVariables();  // None of its business.
  child.extra_env.push_back("SKEIN_ENV_FD=3");
  auto started = Subprocess::Spawn(child);
  if (!started.ok()) return started.status();
  child_ = *std::move(started);
  theirs = Descriptor();
  their_life = Descriptor();
  if (absl::Status status = Greet(); !status.ok()) return status;
  return MakeMemory();
}

absl::Status LocalWorld::Greet() {
  env::v1::ClientMessage hello;
  hello.mutable_hello()->set_version(WorldHead::kVersion);
  hello.mutable_hello()->set_arguments(options_.arguments);
  hello.mutable_hello()->set_num_envs(static_cast<uint32_t>(options_.count));
  if (absl::Status status = Send(hello); !status.ok()) return status;
  const absl::Duration deadline = MonotonicNow() + options_.start_timeout;
  while (!received_) {
    const absl::Duration left = deadline - MonotonicNow();
    if (left <= absl::ZeroDuration()) {
      return absl::DeadlineExceededError(absl::StrCat("its server has not made the environment within ",
                                                      absl::ToDoubleSeconds(options_.start_timeout),
                                                      " s (env.external.start_timeout_seconds)"));
    }
    const absl::Status status =
        Receive(static_cast<int>(std::clamp<int64_t>(absl::ToInt64Milliseconds(left), 1, kLookAgainMs)));
    if (!status.ok() && !absl::IsDeadlineExceeded(status)) return status;
    if (options_.given_up()) return GivenUp();
  }
  auto welcomed = TakeWelcome(*received_, options_.id);
  if (!welcomed.ok()) return welcomed.status();
  spec_ = std::move(welcomed->spec);
  server_ = std::move(welcomed->server);
  greeted_ = true;
  return absl::OkStatus();
}

absl::Status LocalWorld::MakeMemory() {
  WorldColumns columns;
  const size_t bytes = LayOutWorld(spec_, options_.count, nullptr, &columns);
  if (ftruncate(shared_.get(), static_cast<off_t>(bytes)) != 0) return System("cannot size shared memory");
  // The server cannot take away what this process has mapped.
  if (fcntl(shared_.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)
    return System("cannot seal it");
  void* const mapped = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, shared_.get(), 0);
  if (mapped == MAP_FAILED) return System("cannot map shared memory");
  memory_ = static_cast<char*>(mapped);
  memory_bytes_ = bytes;
  LayOutWorld(spec_, options_.count, memory_, &columns_);
  *Word(memory_, WorldHead::kMagicAt) = WorldHead::kMagic;
  *Word(memory_, WorldHead::kVersionAt) = WorldHead::kVersion;
  env::v1::ClientMessage ready;
  ready.mutable_memory()->set_size_bytes(bytes);
  return Send(ready);
}

absl::Status LocalWorld::Await(uint32_t sequence, absl::Duration timeout) {
  uint32_t* const reply = Word(memory_, WorldHead::kReplyAt);
  uint32_t* const sleeps = Word(memory_, WorldHead::kClientSleepsAt);
  const auto answered = [&] { return __atomic_load_n(reply, __ATOMIC_ACQUIRE) == sequence; };
  const absl::Duration begin = MonotonicNow();
  do {
    for (int i = 0; i < kLooksBetweenClocks; ++i) {
      if (answered()) return absl::OkStatus();
      Pause();
    }
  } while (MonotonicNow() - begin < kSpin);
  while (true) {
    __atomic_store_n(sleeps, 1, __ATOMIC_SEQ_CST);
    if (answered()) break;
    const absl::Status status = Receive(kLookAgainMs);
    if (absl::IsDataLoss(status)) return status;  // Also where it has answered meanwhile.
    if (answered()) break;
    if (!status.ok() && !absl::IsDeadlineExceeded(status)) return status;
    if (options_.given_up()) return GivenUp();
    if (MonotonicNow() - begin >= timeout) {
      return absl::DeadlineExceededError(absl::StrCat("its server has not answered within ",
                                                      absl::ToDoubleSeconds(timeout),
                                                      " s (rollout.step_timeout_seconds) and is ended"));
    }
  }
  __atomic_store_n(sleeps, 0, __ATOMIC_SEQ_CST);
  return absl::OkStatus();
}

absl::Status LocalWorld::Exchange(WorldRequest request, absl::Duration timeout) {
  *Word(memory_, WorldHead::kKindAt) = static_cast<uint32_t>(request);
  __atomic_store_n(Word(memory_, WorldHead::kRequestAt), ++sequence_, __ATOMIC_SEQ_CST);
  if (__atomic_exchange_n(Word(memory_, WorldHead::kServerSleepsAt), 0, __ATOMIC_SEQ_CST) != 0) {
    const char wake = 1;
    // A full socket wakes as well; one that has ended is seen below.
    (void)!send(socket_.get(), &wake, 1, MSG_NOSIGNAL | MSG_DONTWAIT);
  }
  broken_ = true;  // Until it has answered.
  if (absl::Status status = Await(sequence_, timeout); !status.ok()) return status;
  broken_ = false;
  while (true) {  // What it said before it answered.
    const absl::Status status = ReadPacket();
    if (absl::IsDataLoss(status)) return status;
    if (!status.ok()) return absl::OkStatus();
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<World>> StartLocalWorld(const LocalWorldOptions& options) {
  auto world = std::make_unique<LocalWorld>(options);
  if (absl::Status status = world->Start(); !status.ok()) return status;
  return world;
}

absl::StatusOr<std::string> FindProgram(const std::string& name) {
  if (name.find('/') != std::string::npos) return name;
  const char* const path = std::getenv("PATH");
  for (const absl::string_view folder : absl::StrSplit(path == nullptr ? "" : path, ':', absl::SkipEmpty())) {
    const std::string candidate = absl::StrCat(folder, "/", name);
    if (access(candidate.c_str(), X_OK) == 0) return candidate;
  }
  return absl::NotFoundError(absl::StrCat("no program ", Quoted(name), " on the PATH"));
}

}  // namespace skein
