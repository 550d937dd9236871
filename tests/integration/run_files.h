// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "nlohmann/json.hpp"
#include "skein/v1/status.pb.h"

// What a run leaves in its folder. What cannot be read fails the test.
namespace skein {

// Folder of the newest complete checkpoint; empty if there is none yet.
std::string NewestCheckpoint(const std::string& run_folder);

nlohmann::json ReadJson(const std::string& path);

// Of the newest checkpoint's manifest.
std::string Digest(const std::string& run_folder);
v1::StepAccount Account(const std::string& run_folder);

// Exactly once: collected = trained + stale + rejected + lost + pending.
bool Balances(const v1::StepAccount& account);

}  // namespace skein
