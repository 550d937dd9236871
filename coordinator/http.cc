// SPDX-License-Identifier: Apache-2.0
#include "coordinator/http.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "coordinator/history.h"
#include "coordinator/status_page.h"
#include "google/protobuf/util/json_util.h"
#include "nlohmann/json.hpp"

namespace skein {
namespace {

nlohmann::json Target(const std::string& address, const std::string& role, const std::string& member,
                      const std::string& run, bool tls) {
  nlohmann::json labels = {{"role", role}, {"member", member}, {"run", run}};
  if (tls) labels["__scheme__"] = "https";
  return {{"targets", {address}}, {"labels", std::move(labels)}};
}

}  // namespace

std::string ScrapeTargets(const v1::StatusResponse& status, const std::string& own_address, bool tls) {
  const std::string& run = status.run_name().empty() ? status.run_id() : status.run_name();
  nlohmann::json targets = nlohmann::json::array({Target(own_address, "coordinator", "coordinator", run, tls)});
  for (const v1::MemberStatus& member : status.members()) {
    if (member.metrics_address().empty()) continue;
    targets.push_back(Target(member.metrics_address(), member.role(), member.member_id(), run, tls));
  }
  // Names may come from anywhere: what is not UTF-8 is replaced, not thrown.
  return targets.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

std::string StatusJson(const v1::StatusResponse& status) {
  google::protobuf::util::JsonPrintOptions options;
  options.add_whitespace = true;
  options.always_print_primitive_fields = true;
  options.preserve_proto_field_names = true;
  std::string json;
  if (!google::protobuf::util::MessageToJsonString(status, &json, options).ok()) return "{}\n";
  return json;
}

void ServePages(HttpServer* server, PageSources sources, const std::string& own_address,
                std::shared_ptr<prometheus::Collectable> metrics) {
  using Response = HttpServer::Response;
  static constexpr char kJson[] = "application/json";
  server->ServeMetrics(std::move(metrics));
  for (const StatusPageFile& file : StatusPageFiles()) {
    server->Handle(file.path, [&file] { return Response{200, file.content_type, std::string(file.bytes)}; });
  }
  server->Handle("/api/status", [sources] { return Response{200, kJson, StatusJson(sources.status())}; });
  server->Handle("/api/history", [sources] { return Response{200, kJson, sources.history(History::kMostPoints)}; });
  server->Handle("/api/history/recent", [sources] { return Response{200, kJson, sources.history(kRecentPoints)}; });
  const std::string& token = ProcessCredentials().token;
  const std::string config = token.empty() ? sources.config : absl::StrReplaceAll(sources.config, {{token, "[token]"}});
  server->Handle("/api/config", [config] { return Response{200, "text/plain; charset=utf-8", config}; });
  server->Handle("/api/log", [sources] {
    const absl::StatusOr<std::string> log = sources.log();
    if (!log.ok()) return Response{503, "text/plain", absl::StrCat(log.status().message(), "\n")};
    return Response{200, kJson, *log};
  });
  server->Handle("/sd/prometheus", [sources, own_address] {
    return Response{200, kJson, ScrapeTargets(sources.status(), own_address, ProcessCredentials().has_tls())};
  });
  for (const char* path : {"/healthz", "/readyz"}) {
    server->Handle(path, [] { return Response{200, "text/plain", "ok\n"}; });
  }
}

}  // namespace skein
