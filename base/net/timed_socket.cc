// SPDX-License-Identifier: Apache-2.0
#include "base/net/timed_socket.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/process/clock.h"
#include "openssl/err.h"
#include "openssl/ssl.h"

namespace skein {
namespace {

constexpr size_t kMostAtOnce = size_t{1} << 20;  // OpenSSL counts in int.

}  // namespace

TimedSocket::TimedSocket(int descriptor, ssl_ctx_st* tls, absl::Duration deadline)
    : descriptor_(descriptor),
      tls_(tls != nullptr),
      ssl_(tls == nullptr ? nullptr : SSL_new(tls)),
      deadline_(deadline) {
  fcntl(descriptor_, F_SETFL, fcntl(descriptor_, F_GETFL) | O_NONBLOCK);
  if (ssl_ != nullptr) SSL_set_fd(ssl_, descriptor_);
}

TimedSocket::~TimedSocket() {
  if (ssl_ != nullptr) {
    if (SSL_is_init_finished(ssl_)) SSL_shutdown(ssl_);
    SSL_free(ssl_);
    ERR_clear_error();
  }
  shutdown(descriptor_, SHUT_RDWR);
  close(descriptor_);
}

bool TimedSocket::Open() {
  if (!tls_) return true;
  return ssl_ != nullptr && Move(POLLIN, [this] { return SSL_accept(ssl_); }) > 0;
}

ssize_t TimedSocket::Read(char* to, size_t size) {
  size = std::min(size, kMostAtOnce);
  return Move(POLLIN, [&]() -> ssize_t {
    return tls_ ? SSL_read(ssl_, to, static_cast<int>(size)) : recv(descriptor_, to, size, 0);
  });
}

bool TimedSocket::Write(const char* from, size_t size) {
  while (size > 0) {
    const size_t some = std::min(size, kMostAtOnce);
    const ssize_t sent = Move(POLLOUT, [&]() -> ssize_t {
      return tls_ ? SSL_write(ssl_, from, static_cast<int>(some)) : send(descriptor_, from, some, MSG_NOSIGNAL);
    });
    if (sent <= 0) return false;
    from += sent;
    size -= static_cast<size_t>(sent);
  }
  return true;
}

template <typename Attempt>
ssize_t TimedSocket::Move(short wanted, Attempt attempt) {
  while (MonotonicNow() < deadline_) {
    if (tls_) ERR_clear_error();  // SSL_get_error() looks at what is left of others' errors, too.
    const ssize_t moved = attempt();
    if (moved > 0) return moved;
    if (tls_) {
      const int error = SSL_get_error(ssl_, static_cast<int>(moved));
      if (error == SSL_ERROR_ZERO_RETURN) return 0;
      if (error != SSL_ERROR_WANT_READ && error != SSL_ERROR_WANT_WRITE) return -1;
      wanted = error == SSL_ERROR_WANT_READ ? POLLIN : POLLOUT;
    } else if (moved == 0) {
      return 0;
    } else if (errno != EAGAIN && errno != EINTR) {
      return -1;
    }
    if (!WaitFor(wanted)) return -1;
  }
  return -1;
}

bool TimedSocket::WaitFor(short events) {
  pollfd entry = {descriptor_, events, 0};
  while (true) {
    const int64_t left = absl::ToInt64Milliseconds(absl::Ceil(deadline_ - MonotonicNow(), absl::Milliseconds(1)));
    const int ready = poll(&entry, 1, static_cast<int>(std::clamp<int64_t>(left, 0, 1 << 30)));
    if (ready > 0) return true;
    if (ready == 0 || errno != EINTR) return false;
  }
}

}  // namespace skein
