// SPDX-License-Identifier: Apache-2.0
#include "tests/integration/run_files.h"

#include <filesystem>
#include <fstream>

#include "gtest/gtest.h"

namespace skein {

namespace fs = std::filesystem;

std::string NewestCheckpoint(const std::string& run_folder) {
  std::string newest;
  std::error_code error;
  for (fs::directory_iterator it(run_folder + "/checkpoints", error), end; !error && it != end; it.increment(error)) {
    const std::string path = it->path();
    std::error_code ignored;
    const bool complete = it->path().filename().string().rfind("step_", 0) == 0 && fs::exists(path + "/DONE", ignored);
    if (complete && path > newest) newest = path;
  }
  return newest;
}

nlohmann::json ReadJson(const std::string& path) {
  std::ifstream file(path);
  const auto json = nlohmann::json::parse(file, nullptr, false);
  EXPECT_TRUE(json.is_object()) << path;
  return json.is_object() ? json : nlohmann::json::object();
}

std::string Digest(const std::string& run_folder) {
  return ReadJson(NewestCheckpoint(run_folder) + "/manifest.json").value("digest", "");
}

v1::StepAccount Account(const std::string& run_folder) {
  v1::StepAccount account;
  const auto manifest = ReadJson(NewestCheckpoint(run_folder) + "/manifest.json");
  const google::protobuf::Reflection* reflection = v1::StepAccount::GetReflection();
  for (const auto& counter : manifest.value("counters", nlohmann::json::array())) {
    const auto* field = v1::StepAccount::GetDescriptor()->FindFieldByName(counter.at(0).get<std::string>());
    if (field != nullptr) reflection->SetUInt64(&account, field, counter.at(1).get<uint64_t>());
  }
  return account;
}

bool Balances(const v1::StepAccount& account) {
  return account.collected() ==
         account.trained() + account.stale() + account.rejected() + account.lost() + account.pending();
}

}  // namespace skein
