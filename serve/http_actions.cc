// SPDX-License-Identifier: Apache-2.0
#include "serve/http_actions.h"

#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "nlohmann/json.hpp"

namespace skein {
namespace {

using Json = nlohmann::ordered_json;
using Response = HttpServer::Response;

constexpr char kJson[] = "application/json";

Response Error(const absl::Status& status) {
  const int code = absl::IsAborted(status) ? 409 : absl::IsResourceExhausted(status) ? 503 : 400;
  const Json json = {{"error", std::string(status.message())}};
  return {code, kJson, json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n"};
}

absl::Status Add(const Json& numbers, std::vector<float>* all) {
  if (!numbers.is_array()) return absl::InvalidArgumentError("an observation is a list of numbers");
  for (const Json& number : numbers) {
    if (!number.is_number()) return absl::InvalidArgumentError("an observation is a list of numbers");
    all->push_back(number.get<float>());
  }
  return absl::OkStatus();
}

absl::StatusOr<Json> ParseJson(const std::string& text) {
  try {
    Json json = Json::parse(text);
    if (json.is_object()) return json;
  } catch (const Json::exception& error) {
    const std::string what = error.what();  // "[json.exception.parse_error.101] parse error at ..."
    return absl::InvalidArgumentError("the body is no JSON: " + what.substr(what.find("] ") + 2));
  }
  return absl::InvalidArgumentError("expected a JSON object");
}

struct Parsed {
  Step step;
  bool one = false;  // An answer of one row is wanted.
};

absl::StatusOr<Parsed> Parse(const std::string& body, size_t observation_size) {
  const auto parsed_json = ParseJson(body);
  if (!parsed_json.ok()) return parsed_json.status();
  const Json& json = *parsed_json;
  for (const std::string one : {"observation", "reset"}) {
    if (json.contains(one) && json.contains(one + "s")) {
      return absl::InvalidArgumentError(absl::StrCat("there are ", one, " and ", one, "s; give one of them"));
    }
  }
  Parsed parsed;
  for (const auto& [key, value] : json.items()) {
    if (key == "session" && value.is_string()) {
      parsed.step.session = value.get<std::string>();
    } else if (key == "sample" && value.is_boolean()) {
      parsed.step.sample = value.get<bool>();
    } else if (key == "reset" && value.is_boolean()) {
      parsed.step.resets = {static_cast<uint8_t>(value.get<bool>())};
    } else if (key == "resets" && value.is_array()) {
      for (const Json& one : value) {
        if (!one.is_boolean()) return absl::InvalidArgumentError("resets: expected a list of true and false");
        parsed.step.resets.push_back(static_cast<uint8_t>(one.get<bool>()));
      }
    } else if (key == "observation") {
      parsed.one = true;
      if (absl::Status status = Add(value, &parsed.step.observations); !status.ok()) return status;
      if (const size_t got = parsed.step.observations.size(); got != observation_size) {
        return absl::InvalidArgumentError(absl::StrCat("observation: got ", got, " numbers, want ", observation_size,
                                                       "; observations for more rows"));
      }
    } else if (key == "observations" && value.is_array()) {
      for (const Json& row : value) {
        const size_t before = parsed.step.observations.size();
        if (absl::Status status = Add(row, &parsed.step.observations); !status.ok()) return status;
        if (const size_t got = parsed.step.observations.size() - before; got != observation_size) {
          return absl::InvalidArgumentError(
              absl::StrCat("observations: a row of ", got, " numbers, want ", observation_size));
        }
      }
    } else {
      return absl::InvalidArgumentError(
          absl::StrCat("unknown key or value of another type: '", key.substr(0, 40),
                       "'; there are session, observation, reset, observations, resets, sample"));
    }
  }
  return parsed;
}

Json ActionJson(const Acted& acted, size_t row) {
  const bool discrete = acted.policy->actor.portable().spec.discrete;
  const size_t size = acted.actions.size() / acted.rows;
  if (discrete) return static_cast<int>(acted.actions[row]);
  const auto begin = acted.actions.begin() + static_cast<std::ptrdiff_t>(row * size);
  return std::vector<float>(begin, begin + static_cast<std::ptrdiff_t>(size));
}

Json Describe(const ServedPolicy& policy) {
  const EnvSpec& spec = policy.actor.portable().spec;
  return {{"env_id", spec.id},
          {"observation_size", policy.actor.observation_size()},
          {"discrete", spec.discrete},
          {"action_size", spec.action_size},
          {"state_size", policy.actor.state_size()},
          {"checkpoint", policy.checkpoint},
          {"digest", policy.digest},
          {"env_steps", policy.env_steps}};
}

std::string Text(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n"; }

}  // namespace

Response ActByJson(ActionServer* server, const std::string& body) {
  auto parsed = Parse(body, static_cast<size_t>(server->policy()->actor.observation_size()));
  if (!parsed.ok()) {
    server->CountRefusal();
    return Error(parsed.status());
  }
  absl::StatusOr<Acted> acted = absl::InternalError("not answered");
  absl::Notification answered;
  server->Act(std::move(parsed->step), [&](absl::StatusOr<Acted> got) {
    acted = std::move(got);
    answered.Notify();
  });
  answered.WaitForNotification();
  if (!acted.ok()) return Error(acted.status());
  Json json;
  if (parsed->one && acted->rows == 1) {
    json["action"] = ActionJson(*acted, 0);
  } else {
    json["actions"] = Json::array();
    for (size_t row = 0; row < acted->rows; ++row) json["actions"].push_back(ActionJson(*acted, row));
  }
  json["env_steps"] = acted->policy->env_steps;
  return {200, kJson, Text(json)};
}

void ServeActions(HttpServer* http, ActionServer* server, std::shared_ptr<prometheus::Collectable> metrics) {
  http->ServeMetrics(std::move(metrics));
  http->HandlePost("/v1/act", [server](const std::string& body) { return ActByJson(server, body); });
  http->Handle("/v1/policy", [server] { return Response{200, kJson, Text(Describe(*server->policy()))}; });
  for (const char* path : {"/healthz", "/readyz"}) {
    http->Handle(path, [] { return Response{200, "text/plain", "ok\n"}; });
  }
}

}  // namespace skein
