// SPDX-License-Identifier: Apache-2.0
#include "env/external/plugin_env.h"

#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <limits>
#include <stdexcept>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/process/message_text.h"
#include "env/external/external_counts.h"
#include "env/external/plugin_spec.h"
#include "skein/env_plugin.h"
#include "skein/env_server.h"
#include "spdlog/spdlog.h"

namespace skein {
namespace {

constexpr size_t kErrorBytes = 1024;

struct Plugin {
  const SkeinEnvPlugin* functions = nullptr;
  SkeinEnvSpec own_spec = {};
  EnvSpec spec;
};

class PluginEnv final : public Env {
 public:
  PluginEnv(const Plugin& plugin, void* env)
      : plugin_(plugin.functions),
        spec_(plugin.spec),
        env_(env),
        obs_(static_cast<size_t>(spec_.num_agents) * static_cast<size_t>(spec_.obs_size)) {}
  ~PluginEnv() override { plugin_->destroy(env_); }

  const EnvSpec& spec() const override { return spec_; }
  void Reset(RandomStream& random) override {
    truncated_ = 0;
    if (plugin_->reset(env_, random.NextUint32() >> 1, obs_.data()) != 0) {
      throw std::runtime_error(OneLine(skein_env_why(plugin_, env_, "its reset failed")));
    }
  }
  bool Step(const float* action, float* reward) override {
    uint8_t terminated = 0;
    truncated_ = 0;
    if (plugin_->step(env_, action, obs_.data(), reward, &terminated, &truncated_) == 0) return terminated != 0;
    truncated_ = 0;
    ++CountsOfExternalEnvs().lost_episodes;
    const std::string why = OneLine(skein_env_why(plugin_, env_, "its step failed"));
    spdlog::warn("{}: {}; its episode is truncated", spec_.id, why);
    std::fill_n(reward, spec_.num_agents, std::numeric_limits<float>::quiet_NaN());
    return false;
  }
  bool truncated() const override { return truncated_ != 0; }
  void Observe(float* obs) const override { std::copy(obs_.begin(), obs_.end(), obs); }
  void GlobalState(float* state) const override {
    if (spec_.global_state_size > 0) plugin_->global_state(env_, state);
  }
  void Active(uint8_t* active) const override {
    std::fill_n(active, spec_.num_agents, uint8_t{1});
    if (plugin_->active != nullptr) plugin_->active(env_, active);
  }
  void EpisodeMetrics(float* metrics) const override {
    if (!spec_.episode_metrics.empty()) plugin_->metrics(env_, metrics);
  }
  void SaveState(double* state) const override { plugin_->save(env_, state); }
  void LoadState(const double* state) override {
    plugin_->load(env_, state);
    plugin_->observe(env_, obs_.data());
  }

 private:
  const SkeinEnvPlugin* const plugin_;
  const EnvSpec spec_;
  void* const env_;
  std::vector<float> obs_;
  uint8_t truncated_ = 0;
};

// The loop of a server in C (skein/env_server.h), without the server.
class PluginWorld final : public World {
 public:
  PluginWorld(Plugin plugin, std::vector<void*> envs)
      : plugin_(std::move(plugin)),
        envs_(std::move(envs)),
        memory_(LayOutWorld(plugin_.spec, envs_.size(), nullptr, &columns_)) {
    LayOutWorld(plugin_.spec, envs_.size(), memory_.data(), &columns_);
    server_.fd = -1;  // Failures are told by TakeFailures.
    server_.plugin = plugin_.functions;
    server_.spec = plugin_.own_spec;
    server_.envs = envs_.size();
    server_.env = envs_.data();
    skein_env_lay_out(&server_.spec, envs_.size(), memory_.data(), &server_.columns);
  }
  ~PluginWorld() override {
    for (void* const env : envs_) plugin_.functions->destroy(env);
  }

  const EnvSpec& spec() const override { return plugin_.spec; }
  const std::string& server() const override { return name_; }
  size_t size() const override { return envs_.size(); }
  const WorldColumns& columns() const override { return columns_; }
  absl::Status Exchange(WorldRequest request, absl::Duration) override {
    if (request == WorldRequest::kStep) {
      for (size_t e = 0; e < envs_.size(); ++e) skein_env_step_one(&server_, e);
    } else if (request == WorldRequest::kReset) {
      skein_env_reset_all(&server_);
    } else {
      skein_env_bare(&server_, columns_.seed[0]);
      return absl::OkStatus();
    }
    for (size_t e = 0; e < envs_.size(); ++e) {
      if (columns_.failed[e] == 0 || (request == WorldRequest::kReset && columns_.mask[e] == 0)) continue;
      env::v1::Failure& failure = failures_.emplace_back();
      failure.set_env(static_cast<uint32_t>(e));
      failure.set_message(OneLine(skein_env_why(plugin_.functions, envs_[e], "it failed")));
    }
    return absl::OkStatus();
  }
  std::vector<env::v1::Failure> TakeFailures() override { return std::exchange(failures_, {}); }

 private:
  const Plugin plugin_;
  std::vector<void*> envs_;
  WorldColumns columns_ = {};
  std::vector<char> memory_;
  SkeinEnvServer server_ = {};
  std::vector<env::v1::Failure> failures_;
  const std::string name_ = "a library";
};

absl::Status Unusable(const std::string& id, const std::string& why) {
  return absl::FailedPreconditionError(absl::StrCat(id, ": ", why));
}

// Functions that the spec needs and the library does not have; null: none.
const char* Missing(const SkeinEnvPlugin& plugin, const SkeinEnvSpec& spec) {
  if (plugin.create == nullptr || plugin.destroy == nullptr || plugin.reset == nullptr || plugin.step == nullptr) {
    return "create, destroy, reset and step";
  }
  if (spec.global_state_size > 0 && plugin.global_state == nullptr) return "global_state, for its global_state_size";
  if (spec.num_metrics > 0 && (plugin.metrics == nullptr || spec.metric_names == nullptr)) return "metrics";
  const bool saves = plugin.save != nullptr && plugin.load != nullptr && plugin.observe != nullptr;
  if (spec.state_size > 0 && !saves) return "save, load and observe, for its state_size";
  return nullptr;
}

absl::StatusOr<Plugin> Load(const std::string& id, const std::string& path, const std::string& arguments) {
  // dlopen looks for a name without a slash in the system's folders.
  const std::string file = path.find('/') == std::string::npos ? absl::StrCat("./", path) : path;
  if (access(file.c_str(), R_OK) != 0) return absl::NotFoundError(absl::StrCat(id, ": no file ", Quoted(file)));
  void* const library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return Unusable(id, absl::StrCat("it cannot be loaded: ", OneLine(dlerror())));
  using Entry = const SkeinEnvPlugin* (*)();
  const auto entry = reinterpret_cast<Entry>(dlsym(library, "skein_env_plugin"));
  if (entry == nullptr) return Unusable(id, "it has no function skein_env_plugin (include/skein/env_plugin.h)");
  Plugin plugin{.functions = entry()};
  if (plugin.functions == nullptr) return Unusable(id, "its skein_env_plugin() gives nothing");
  if (plugin.functions->version != SKEIN_ENV_PLUGIN_VERSION) {
    return Unusable(id,
                    absl::StrCat("it has version ", plugin.functions->version, " of the interface, this is version ",
                                 SKEIN_ENV_PLUGIN_VERSION, "; compile it with this release's skein/env_plugin.h"));
  }
  if (plugin.functions->size < offsetof(SkeinEnvPlugin, why)) {
    return Unusable(id, absl::StrCat("its interface has a size of ", plugin.functions->size, " bytes, want at least ",
                                     offsetof(SkeinEnvPlugin, why), "; set .size = sizeof(SkeinEnvPlugin)"));
  }
  if (plugin.functions->spec == nullptr) return Unusable(id, "it lacks spec");
  SkeinEnvSpec spec = {};
  char error[kErrorBytes] = "it gave no reason";
  if (plugin.functions->spec(arguments.c_str(), &spec, error, sizeof(error)) != 0) return Unusable(id, OneLine(error));
  if (const char* const missing = Missing(*plugin.functions, spec); missing != nullptr) {
    return Unusable(id, absl::StrCat("it lacks ", missing));
  }
  auto read = ReadPluginSpec(spec, id);
  if (!read.ok()) return read.status();
  plugin.own_spec = spec;
  plugin.spec = *std::move(read);
  return plugin;
}

absl::StatusOr<void*> Create(const std::string& id, const Plugin& plugin, const std::string& arguments) {
  char error[kErrorBytes] = "it gave no reason";
  void* const env = plugin.functions->create(arguments.c_str(), error, sizeof(error));
  if (env == nullptr) return Unusable(id, absl::StrCat("making it: ", OneLine(error)));
  return env;
}

}  // namespace

absl::StatusOr<std::vector<std::unique_ptr<Env>>> MakePluginEnvs(const std::string& id, const std::string& path,
                                                                 int count, const std::string& arguments) {
  const auto plugin = Load(id, path, arguments);
  if (!plugin.ok()) return plugin.status();
  std::vector<std::unique_ptr<Env>> envs;
  for (int e = 0; e < count; ++e) {
    const auto env = Create(id, *plugin, arguments);
    if (!env.ok()) return env.status();
    envs.push_back(std::make_unique<PluginEnv>(*plugin, *env));
  }
  return envs;
}

absl::StatusOr<std::unique_ptr<World>> OpenPluginWorld(const std::string& id, const std::string& path, size_t count,
                                                       const std::string& arguments) {
  auto plugin = Load(id, path, arguments);
  if (!plugin.ok()) return plugin.status();
  std::vector<void*> envs;
  for (size_t e = 0; e < count; ++e) {
    const auto env = Create(id, *plugin, arguments);
    if (!env.ok()) {
      for (void* const made : envs) plugin->functions->destroy(made);
      return env.status();
    }
    envs.push_back(*env);
  }
  return std::make_unique<PluginWorld>(*std::move(plugin), std::move(envs));
}

absl::StatusOr<EnvSpec> FindPluginSpec(const std::string& id, const std::string& path, const std::string& arguments) {
  auto plugin = Load(id, path, arguments);
  if (!plugin.ok()) return plugin.status();
  return plugin->spec;
}

}  // namespace skein
