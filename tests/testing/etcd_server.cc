// SPDX-License-Identifier: Apache-2.0
#include "tests/testing/etcd_server.h"

#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/testing/loopback.h"
#include "tests/testing/wait_until.h"

namespace skein {
namespace {

constexpr char kProgram[] = "/usr/bin/etcd";

bool Listens(int port) {
  const int fd = ConnectTo(port);
  if (fd < 0) return false;
  close(fd);
  return true;
}

}  // namespace

bool EtcdServer::Installed() { return access(kProgram, X_OK) == 0; }

EtcdServer::EtcdServer()
    : address_(absl::StrCat("127.0.0.1:", FreePort())), peer_(absl::StrCat("http://127.0.0.1:", FreePort())) {
  Start();
}

void EtcdServer::Start() {
  const std::string client = "http://" + address_;
  process_ = std::make_unique<Running>(
      kProgram, std::vector<std::string>{"--data-dir", folder_.path() + "/data", "--listen-client-urls", client,
                                         "--advertise-client-urls", client, "--listen-peer-urls", peer_,
                                         "--initial-advertise-peer-urls", peer_, "--initial-cluster",
                                         "default=" + peer_, "--log-level", "error"});
  const int port = std::stoi(address_.substr(address_.rfind(':') + 1));
  WaitUntil([&] { return Listens(port) || process_->ended(); }, absl::Seconds(30), absl::Milliseconds(20));
  EXPECT_FALSE(process_->ended());
}

}  // namespace skein
