// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "gtest/gtest.h"
#include "member/coordinator_client.h"
#include "tests/member/fake_coordinator.h"

namespace skein {

// Of an actor on the host "here".
inline CoordinatorClient::Options OptionsFor(const std::string& address) {
  CoordinatorClient::Options options;
  options.address = address;
  options.timeout = kPatience;
  options.join.set_role(v1::ROLE_ACTOR);
  options.join.set_host("here");
  return options;
}

// Fails the test if the coordinator refuses.
inline std::unique_ptr<CoordinatorClient> JoinOrDie(CoordinatorClient::Options options) {
  auto client = CoordinatorClient::Join(std::move(options));
  EXPECT_TRUE(client.ok()) << client.status();
  return *std::move(client);
}

}  // namespace skein
