// SPDX-License-Identifier: Apache-2.0
#include "env/external/external_envs.h"

#include <cstdlib>
#include <map>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/synchronization/mutex.h"
#include "base/process/subprocess.h"
#include "env/external/external_batch.h"
#include "env/external/external_id.h"
#include "env/external/local_world.h"
#include "env/external/plugin_env.h"
#include "env/external/remote_world.h"
#include "env/external/world_spec.h"

namespace skein {
namespace {

using Envs = std::vector<std::unique_ptr<Env>>;

// One environment of a batch.
class ExternalEnv final : public Env {
 public:
  ExternalEnv(std::shared_ptr<ExternalBatch> batch, size_t e) : batch_(std::move(batch)), e_(e) {}

  const EnvSpec& spec() const override { return batch_->spec(); }
  EnvBatch* batch() override { return batch_.get(); }
  void Reset(RandomStream& random) override { batch_->Reset(e_, random.NextUint32()); }
  bool Step(const float* action, float* reward) override { return batch_->TakeStep(e_, action, reward); }
  bool truncated() const override { return batch_->truncated(e_); }
  void Observe(float* obs) const override { batch_->Observe(e_, obs); }
  void GlobalState(float* state) const override { batch_->GlobalState(e_, state); }
  void Active(uint8_t* active) const override { batch_->Active(e_, active); }
  void EpisodeMetrics(float* metrics) const override { batch_->EpisodeMetrics(e_, metrics); }

 private:
  const std::shared_ptr<ExternalBatch> batch_;
  const size_t e_;
};

// A server steps its environments in one thread; libraries that start one for each core would only be in each other's
// way. The user's own settings stay.
std::vector<std::string> OneThreadEach() {
  std::vector<std::string> result;
  for (const char* const name : {"OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"}) {
    if (std::getenv(name) == nullptr) result.push_back(absl::StrCat(name, "=1"));
  }
  return result;
}

absl::StatusOr<LocalWorldOptions> ServerOptions(const std::string& id, const ExternalId& parsed, size_t count,
                                                const ExternalOptions& options) {
  LocalWorldOptions server;
  server.id = id;
  server.arguments = options.arguments;
  server.count = count;
  server.start_timeout = options.start_timeout;
  server.given_up = options.given_up;
  server.extra_env = OneThreadEach();
  if (parsed.kind == ExternalId::Kind::kPython) {
    server.argv = {options.python, "-m", "skein_env", "--local", parsed.target};
    server.extra_env.push_back(PythonPathVariable());
    server.extra_env.push_back("PYTHONUNBUFFERED=1");
    server.hint = absl::StrCat("what it printed stands above; does `", options.python,
                               "` (env.external.python) have NumPy and the package skein-env?");
  } else {
    server.argv = absl::StrSplit(parsed.target, ' ', absl::SkipWhitespace());
    server.hint = "what it printed stands above";
  }
  auto program = FindProgram(server.argv[0]);
  if (!program.ok()) return program.status();
  server.argv[0] = *std::move(program);
  return server;
}

absl::StatusOr<std::unique_ptr<World>> OpenWorld(const std::string& id, const ExternalId& parsed, size_t count,
                                                 const ExternalOptions& options) {
  if (parsed.kind == ExternalId::Kind::kGrpc) {
    return OpenRemoteWorld({.id = id,
                            .address = parsed.target,
                            .name = parsed.name,
                            .arguments = options.arguments,
                            .count = count,
                            .start_timeout = options.start_timeout,
                            .given_up = options.given_up});
  }
  auto server = ServerOptions(id, parsed, count, options);
  if (!server.ok()) return server.status();
  return StartLocalWorld(*server);
}

// The environment's id before what went wrong with it, once.
absl::Status Named(const std::string& id, const absl::Status& status) {
  if (status.message().substr(0, id.size()) == id) return status;
  return absl::Status(status.code(), absl::StrCat(id, ": ", status.message()));
}

}  // namespace

absl::StatusOr<Envs> MakeExternalEnvs(const std::string& id, int count, const ExternalOptions& options) {
  const auto parsed = ParseExternalId(id);
  if (!parsed.ok()) return parsed.status();
  if (parsed->kind == ExternalId::Kind::kPlugin) {
    auto envs = MakePluginEnvs(id, parsed->target, count, options.arguments);
    if (envs.ok() && options.spec) {
      if (absl::Status status = CheckSameSpec((*envs)[0]->spec(), *options.spec); !status.ok()) return status;
    }
    return envs;
  }
  const auto open = [id, parsed = *parsed, count, options] {
    return OpenWorld(id, parsed, static_cast<size_t>(count), options);
  };
  auto world = open();
  if (!world.ok()) return Named(id, world.status());
  if (options.spec) {
    if (absl::Status status = CheckSameSpec((*world)->spec(), *options.spec); !status.ok()) return status;
  }
  const auto batch = std::make_shared<ExternalBatch>(
      ExternalBatch::Options{.id = id, .step_timeout = options.step_timeout, .restarts = options.restarts},
      *std::move(world), open);
  Envs envs;
  for (int e = 0; e < count; ++e) envs.push_back(std::make_unique<ExternalEnv>(batch, static_cast<size_t>(e)));
  return envs;
}

absl::StatusOr<std::unique_ptr<World>> OpenLocalWorld(const std::string& id, size_t count,
                                                      const ExternalOptions& options) {
  const auto parsed = ParseExternalId(id);
  if (!parsed.ok()) return parsed.status();
  if (parsed->kind == ExternalId::Kind::kGrpc) {
    return absl::FailedPreconditionError(absl::StrCat(id, " is not of this host"));
  }
  if (parsed->kind == ExternalId::Kind::kPlugin) {
    return OpenPluginWorld(id, parsed->target, count, options.arguments);
  }
  const auto server = ServerOptions(id, *parsed, count, options);
  if (!server.ok()) return server.status();
  return StartLocalWorld(*server);
}

absl::StatusOr<std::string> DescribeDtypes(const std::string& id, const ExternalOptions& options) {
  const auto parsed = ParseExternalId(id);
  if (!parsed.ok()) return parsed.status();
  if (parsed->kind != ExternalId::Kind::kPython) {
    return absl::FailedPreconditionError(absl::StrCat(id, " is in no Python of this host"));
  }
  const auto server = ServerOptions(id, *parsed, 1, options);
  if (!server.ok()) return server.status();
  Subprocess::Options child;
  child.argv = {server->argv[0], "-m", "skein_env", "--dtypes", "--arguments", options.arguments, parsed->target};
  child.capture_stdout = true;
  child.foreign = true;
  child.extra_env = server->extra_env;
  const auto started = Subprocess::Spawn(child);
  if (!started.ok()) return started.status();
  auto lines = (*started)->ReadLines(options.start_timeout, options.given_up);
  if (!lines.ok()) return lines.status();
  if (lines->empty()) return absl::UnavailableError("its Python has ended without a word of its types");
  return std::move(lines->back());  // The environment may print before.
}

absl::StatusOr<EnvSpec> FindExternalSpec(const std::string& id, const ExternalOptions& options) {
  if (options.spec) {
    EnvSpec spec = *options.spec;
    spec.id = id;
    return spec;
  }
  static absl::Mutex mu;
  static auto* const known = new std::map<std::vector<std::string>, EnvSpec>;
  const std::vector<std::string> key = {id, options.python, options.arguments};
  absl::MutexLock lock(&mu);
  if (const auto found = known->find(key); found != known->end()) return found->second;
  const auto envs = MakeExternalEnvs(id, 1, options);
  if (!envs.ok()) return envs.status();
  return known->emplace(key, (*envs)[0]->spec()).first->second;
}

}  // namespace skein
