// SPDX-License-Identifier: Apache-2.0
#include "serve/policy_source.h"

#include <filesystem>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/telemetry/log.h"
#include "eval/checkpoint_policy.h"

namespace skein {
namespace {

namespace fs = std::filesystem;

std::shared_ptr<const ServedPolicy> Serve(const CheckpointPolicy& loaded) {
  return std::make_shared<const ServedPolicy>(ServedPolicy{.actor = PortableActor(MakePortable(loaded), loaded.policy),
                                                           .checkpoint = loaded.path,
                                                           .digest = loaded.digest,
                                                           .env_steps = loaded.env_steps});
}

// The link to a run's newest checkpoint; empty if `path` is no run.
std::string LatestLink(const std::string& path) {
  std::error_code ignored;
  for (const std::string& folder : {path + "/checkpoints", path}) {
    if (fs::is_symlink(fs::symlink_status(folder + "/latest", ignored))) return folder + "/latest";
  }
  return "";
}

std::string Target(const std::string& link) {
  std::error_code error;
  const fs::path target = fs::read_symlink(link, error);
  return error ? "" : (fs::path(link).parent_path() / target).string();
}

}  // namespace

absl::StatusOr<std::shared_ptr<const ServedPolicy>> LoadServedPolicy(const std::string& path) {
  const auto loaded = LoadCheckpointPolicy(path);
  if (!loaded.ok()) return loaded.status();
  for (const std::string& warning : loaded->warnings) spdlog::warn("{}", warning);
  return Serve(*loaded);
}

PolicySource::PolicySource(const std::string& path, absl::Duration period, ActionServer* server, ServeMetrics* metrics)
    : server_(server), metrics_(metrics), seen_(server->policy()->checkpoint) {
  const std::string link = LatestLink(path);
  if (link.empty() || period <= absl::ZeroDuration()) return;
  thread_ = std::thread([this, link, period] { Watch(link, period); });
}

PolicySource::~PolicySource() {
  stop_.Notify();
  if (thread_.joinable()) thread_.join();
}

void PolicySource::Watch(const std::string& link, absl::Duration period) {
  while (!stop_.WaitForNotificationWithTimeout(period)) Look(link);
}

void PolicySource::Look(const std::string& link) {
  const std::string target = Target(link);
  if (target.empty() || target == seen_) return;
  seen_ = target;
  auto loaded = LoadServedPolicy(target);
  absl::Status status = loaded.status();
  if (status.ok() && (*loaded)->digest == server_->policy()->digest) return;
  const uint64_t env_steps = status.ok() ? (*loaded)->env_steps : 0;
  if (status.ok()) status = server_->Replace(*std::move(loaded));
  metrics_->Reloaded(status.ok());
  if (!status.ok()) {
    spdlog::warn("{} is not served: {}", target, std::string(status.message()));
    return;
  }
  metrics_->Loaded(env_steps);
  spdlog::info("serves {} ({} env steps)", target, env_steps);
}

}  // namespace skein
