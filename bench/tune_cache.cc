// SPDX-License-Identifier: Apache-2.0
#include "bench/tune_cache.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <thread>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/process/file.h"
#include "nlohmann/json.hpp"

namespace skein {
namespace {

using Json = nlohmann::ordered_json;

constexpr uint64_t kMaxBytes = 1 << 20;
constexpr size_t kMaxEntries = 1000;

std::string Processor() {
  const std::string text = ReadFile("/proc/cpuinfo").value_or("");
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    if (!absl::ConsumePrefix(&line, "model name")) continue;
    return std::string(absl::StripAsciiWhitespace(absl::StripPrefix(absl::StripLeadingAsciiWhitespace(line), ":")));
  }
  return "";
}

Json KeyJson(const TuneKey& key) {
  return {{"processor", key.processor}, {"cores", key.cores},   {"env", key.env},
          {"hidden", key.hidden},       {"device", key.device}, {"version", key.version}};
}

// The entries, newest last; none if the file is not one of ours.
std::vector<Json> ReadEntries(const std::string& path) {
  if (path.empty()) return {};
  const auto text = ReadFile(path, kMaxBytes);
  if (!text.ok()) return {};
  const Json json = Json::parse(*text, nullptr, false);
  if (!json.is_object() || !json.contains("entries") || !json["entries"].is_array()) return {};
  return {json["entries"].begin(), json["entries"].end()};
}

std::optional<TuneChoice> ChoiceOf(const Json& entry) {
  try {
    TuneChoice choice;
    choice.runners = entry.at("runners").get<uint32_t>();
    choice.envs_per_runner = entry.at("envs_per_runner").get<uint32_t>();
    choice.env_steps_per_second = entry.at("env_steps_per_second").get<double>();
    choice.source = absl::StrCat("by `skein tune` of ", entry.at("date").get<std::string>());
    if (choice.runners == 0 || choice.envs_per_runner == 0) return std::nullopt;
    return choice;
  } catch (const nlohmann::json::exception&) {
    return std::nullopt;
  }
}

template <typename Fits>
std::optional<TuneChoice> FindNewest(const std::string& path, const Fits& fits) {
  const std::vector<Json> entries = ReadEntries(path);
  for (auto entry = entries.rbegin(); entry != entries.rend(); ++entry) {
    if (!entry->is_object() || !fits(entry->value("key", Json()))) continue;
    if (auto choice = ChoiceOf(*entry)) return choice;
  }
  return std::nullopt;
}

}  // namespace

TuneKey MakeTuneKey(const v1::RunConfig& config) {
  TuneKey key;
  key.processor = Processor();
  key.cores = std::max(1u, std::thread::hardware_concurrency());
  key.env = config.env().id();
  key.hidden.assign(config.model().hidden().begin(), config.model().hidden().end());
  key.device = config.learner().device();
  key.version = SKEIN_VERSION;
  return key;
}

std::string TuneCachePath() {
  const char* cache = std::getenv("XDG_CACHE_HOME");
  if (cache != nullptr && *cache != '\0') return absl::StrCat(cache, "/skein/tune.json");
  const char* home = std::getenv("HOME");
  if (home != nullptr && *home != '\0') return absl::StrCat(home, "/.cache/skein/tune.json");
  return "";
}

std::optional<TuneChoice> FindTuned(const std::string& path, const TuneKey& key) {
  return FindNewest(path, [wanted = KeyJson(key)](const Json& found) { return found == wanted; });
}

std::optional<TuneChoice> FindTunedForEnv(const std::string& path, const TuneKey& key) {
  Json wanted = KeyJson(key);
  for (const char* any : {"hidden", "device"}) wanted.erase(any);
  return FindNewest(path, [&wanted](Json found) {
    for (const char* any : {"hidden", "device"}) {
      if (found.is_object()) found.erase(any);
    }
    return found == wanted;
  });
}

absl::Status StoreTuned(const std::string& path, const TuneKey& key, const TuneChoice& choice,
                        const std::string& date) {
  std::vector<Json> entries = ReadEntries(path);
  const Json wanted = KeyJson(key);
  const auto replaced = [&wanted](const Json& one) { return !one.is_object() || one.value("key", Json()) == wanted; };
  entries.erase(std::remove_if(entries.begin(), entries.end(), replaced), entries.end());
  if (entries.size() >= kMaxEntries) entries.erase(entries.begin());
  entries.push_back({{"key", wanted},
                     {"runners", choice.runners},
                     {"envs_per_runner", choice.envs_per_runner},
                     {"env_steps_per_second", choice.env_steps_per_second},
                     {"date", date}});
  std::error_code error;
  std::filesystem::create_directories(std::filesystem::path(path).parent_path(), error);
  if (error) return absl::PermissionDeniedError(absl::StrCat(path, ": its folder cannot be made: ", error.message()));
  Json json;
  json["entries"] = entries;
  return WriteFileAtomically(path, json.dump(1) + "\n");
}

}  // namespace skein
