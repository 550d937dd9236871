// SPDX-License-Identifier: Apache-2.0
#include "launch/launch_plan.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>

#include <algorithm>
#include <filesystem>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/config/algorithm_rules.h"
#include "base/config/config.h"
#include "base/net/host_port.h"
#include "base/process/file.h"
#include "base/process/message_text.h"
#include "env/env_config.h"
#include "env/external/external_id.h"
#include "env/mujoco/user_model.h"
#include "env/registry.h"
#include "launch/phase_environments.h"
#include "launch/plan_notes.h"
#include "launch/recipe.h"
#include "launch/search_rules.h"
#include "nlohmann/json.hpp"

namespace skein {
namespace {

constexpr uint32_t kMaxRunners = 4096;
constexpr uint32_t kMaxLearners = 4096;
constexpr uint32_t kDeviceSteps = 32;   // Of each environment in an iteration, in mode on_device, if that is open.
constexpr uint32_t kMaxEnvs = 1048576;  // As config.proto has it.
constexpr uint32_t kLeastSteps = 32;    // Of each environment in an iteration, where a runner has two env groups.
constexpr uint32_t kHeadRunners = 2;    // Runners of the one node that `skein head` counts on by default.

// JSON strings are YAML strings too.
std::string Quoted(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
}

std::vector<std::string> AllOverrides(const LaunchOptions& options) {
  std::vector<std::string> all;
  if (!options.env_id.empty()) all.push_back(absl::StrCat("env.id=", Quoted(options.env_id)));
  if (!options.name.empty()) all.push_back(absl::StrCat("name=", Quoted(options.name)));
  if (options.steps) all.push_back(absl::StrCat("total_steps=", *options.steps));
  if (options.seed) all.push_back(absl::StrCat("seed=", *options.seed));
  if (options.num_envs) all.push_back(absl::StrCat("rollout.num_envs=", *options.num_envs));
  if (!options.device.empty()) all.push_back(absl::StrCat("learner.device=", Quoted(options.device)));
  if (!options.callbacks.empty()) all.push_back(absl::StrCat("callbacks.python=", Quoted(options.callbacks)));
  if (!options.init.from.empty()) {
    all.push_back(absl::StrCat("learner.init_from=", Quoted(std::filesystem::absolute(options.init.from).string())));
  }
  if (options.init.optimizer) all.push_back("learner.init_optimizer=true");
  if (options.envs_per_runner) all.push_back(absl::StrCat("rollout.envs_per_runner=", *options.envs_per_runner));
  all.insert(all.end(), options.overrides.begin(), options.overrides.end());
  return all;
}

// Whether the environments of that many runners divide an iteration.
bool Fits(const v1::RolloutConfig& rollout, uint64_t runners) {
  return rollout.steps_per_iteration() % (runners * rollout.envs_per_runner()) == 0;
}

// The number of env groups. In mode overlapped twice the runners, so that each has its next ticket in hand while the
// learner answers its last fragment; one for each runner if twice as many do not divide an iteration, or would make the
// part of each environment short or no whole number of fragments.
uint32_t GroupsFor(const v1::RunConfig& config, uint32_t runners) {
  const v1::RolloutConfig& rollout = config.rollout();
  const uint64_t envs = uint64_t{2} * runners * rollout.envs_per_runner();
  if (config.sync().mode() != v1::SYNC_MODE_OVERLAPPED || envs > kMaxEnvs ||
      rollout.steps_per_iteration() % envs != 0) {
    return runners;
  }
  const uint64_t steps = rollout.steps_per_iteration() / envs;
  const bool whole = rollout.fragment_steps() == 0 || steps % rollout.fragment_steps() == 0;
  return whole && steps >= kLeastSteps ? 2 * runners : runners;
}

// The most runners up to `wanted` that fit, else the fewest above it, but at least `least`; 1 if there are none.
uint32_t FittingRunners(const v1::RolloutConfig& rollout, uint32_t wanted, uint32_t least) {
  for (uint32_t runners = wanted; runners >= std::max(least, 1u); --runners) {
    if (Fits(rollout, runners)) return runners;
  }
  if (least > 1) {
    for (uint32_t runners = wanted + 1; runners <= rollout.steps_per_iteration() / rollout.envs_per_runner();
         ++runners) {
      if (Fits(rollout, runners)) return runners;
    }
  }
  return 1;
}

// The nearest to steps_per_iteration that `envs` environments divide, downwards if a minibatch allows.
uint64_t FittingIteration(const v1::RunConfig& config, uint64_t envs) {
  const uint64_t multiple = config.rollout().steps_per_iteration() / envs * envs;
  return multiple < MinibatchSize(config) ? multiple + envs : multiple;
}

absl::Status DoesNotFit(const v1::RunConfig& config, uint32_t runners) {
  const v1::RolloutConfig& rollout = config.rollout();
  const uint32_t most = rollout.steps_per_iteration() / rollout.envs_per_runner();
  const uint64_t envs = uint64_t{runners} * rollout.envs_per_runner();
  uint32_t fewer = runners - 1, more = runners + 1;
  while (fewer > 0 && !Fits(rollout, fewer)) --fewer;
  while (more <= most && !Fits(rollout, more)) ++more;
  std::string fitting;
  if (fewer > 0) absl::StrAppend(&fitting, fewer);
  if (more <= most) absl::StrAppend(&fitting, fitting.empty() ? "" : " or ", more);
  if (!fitting.empty()) fitting = absl::StrCat("--runners ", fitting, ", or ");
  return absl::InvalidArgumentError(
      absl::StrCat("--runners ", runners, " x --envs-per-runner ", rollout.envs_per_runner(), " = ", envs,
                   " environments do not divide rollout.steps_per_iteration ", rollout.steps_per_iteration(), "; try ",
                   fitting, "--set rollout.steps_per_iteration=", FittingIteration(config, envs)));
}

// Not even one runner.
absl::Status NothingFits(const v1::RunConfig& config) {
  const v1::RolloutConfig& rollout = config.rollout();
  return absl::InvalidArgumentError(
      absl::StrCat("--envs-per-runner ", rollout.envs_per_runner(), " does not divide rollout.steps_per_iteration ",
                   rollout.steps_per_iteration(),
                   "; try --set rollout.steps_per_iteration=", FittingIteration(config, rollout.envs_per_runner())));
}

// A device's number is checked where the devices are.
absl::Status CheckDevice(const std::string& device) {
  absl::string_view number = device;
  uint32_t index = 0;
  if (device == "auto" || device == "cpu" || device == "cuda") return absl::OkStatus();
  if (absl::ConsumePrefix(&number, "cuda:") && absl::SimpleAtoi(number, &index)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("learner.device (--device): got ", Quoted(device), ", want auto, cpu, cuda or cuda:N"));
}

absl::Status TooFewRunners(uint32_t runners, uint32_t learners) {
  return absl::InvalidArgumentError(absl::StrCat("--runners ", runners, " are fewer than --learners ", learners,
                                                 ", and each learner needs an actor of its own; try --runners ",
                                                 learners, " or --learners ", runners));
}

// The environments form fewer env groups than there are learners.
absl::Status TooFewGroups(const v1::RolloutConfig& rollout, uint32_t learners) {
  const uint32_t envs = rollout.num_envs(), each = rollout.envs_per_runner(), groups = envs / each;
  std::string fitting;
  if (Fits(rollout, learners)) absl::StrAppend(&fitting, "--envs ", uint64_t{learners} * each, ", ");
  uint32_t smaller = envs / learners;
  while (smaller > 1 && envs % smaller != 0) --smaller;
  if (smaller > 0) absl::StrAppend(&fitting, "--envs-per-runner ", smaller, ", ");
  return absl::InvalidArgumentError(
      absl::StrCat("--learners ", learners, ": ", envs, " environments in env groups of --envs-per-runner ", each,
                   " are ", groups, groups == 1 ? " group" : " groups", ", and each learner needs one; try ", fitting,
                   fitting.empty() ? "" : "or ", "--learners ", groups));
}

// ", e.g. --envs 64", if twice as many environments would do.
std::string Doubled(const v1::RolloutConfig& rollout) {
  const uint64_t envs = uint64_t{2} * rollout.num_envs();
  return rollout.steps_per_iteration() % envs == 0 ? absl::StrCat(", e.g. --envs ", envs) : "";
}

// Whether a flag, the file or the recipe names rollout.envs_per_runner. REQUIRES: flags and file can be read.
bool EnvsPerRunnerIsGiven(const LaunchOptions& options, const v1::RunConfig& recipe) {
  v1::RunConfig given = recipe;
  if (!options.config_path.empty()) {
    MergeYaml(ReadFile(options.config_path).value_or(""), options.config_path, &given).IgnoreError();
  }
  for (const std::string& one : AllOverrides(options)) ApplyOverride(one, &given).IgnoreError();
  return given.rollout().has_envs_per_runner();
}

// The sizes of the run before, unless they contradict the configuration.
std::optional<RunSizes> Usable(std::optional<RunSizes> before, const v1::RunConfig& config,
                               const LaunchOptions& options, const v1::RunConfig& recipe, uint32_t cores) {
  if (!before) return std::nullopt;
  const v1::RolloutConfig& rollout = config.rollout();
  const uint32_t groups = before->num_envs / before->envs_per_runner;
  const bool same = !EnvsPerRunnerIsGiven(options, recipe) || before->envs_per_runner == rollout.envs_per_runner();
  if (!same || groups < options.learners || rollout.steps_per_iteration() % before->num_envs != 0) return std::nullopt;
  // How many runners makes no difference to what it computes: as many as it may have begun with, or more for more
  // cores.
  const uint32_t least = std::max({before->runners, options.learners, options.actors});
  const uint32_t most = std::min(groups, kMaxRunners);
  before->runners = std::clamp(cores, std::min(least, most), most);
  return before;
}

// --envs and --envs-per-runner of a search. Errors in reading the rest are left to what reads all of it.
absl::Status CheckSizes(const LaunchOptions& options, const v1::RunConfig& recipe) {
  LaunchOptions others = options;
  others.num_envs = std::nullopt;
  others.envs_per_runner = std::nullopt;
  const auto config = ReadRunConfig(options.config_path, AllOverrides(others), recipe);
  return config.ok() && SearchesDirections(*config) ? CheckSizeFlags(options, *config) : absl::OkStatus();
}

// What every plan needs of a resolved configuration.
absl::Status CheckConfig(const v1::RunConfig& config, const LaunchOptions& options) {
  const auto spec = FindEnvSpec(config.env().id(), MakeEnvOptions(config.env()));
  if (!spec.ok()) return spec.status();
  const auto located = [&](const absl::Status& status) {
    return Located(options.config_path, AllOverrides(options), status);
  };
  if (!config.env().clip_actions_for_reward() && !FindEnvExtras(config.env().id()).physics) {
    return located(absl::InvalidArgumentError(
        absl::StrCat("env.clip_actions_for_reward: ", config.env().id(), " is not a MuJoCo environment")));
  }
  if (absl::Status status = CheckPhaseEnvironments(config, *spec); !status.ok()) return located(status);
  if (absl::Status status = CheckDevice(config.learner().device()); !status.ok()) return status;
  const v1::RolloutConfig& rollout = config.rollout();
  if (SearchesDirections(config)) {
    if (absl::Status status = CheckSearch(config, *spec); !status.ok()) return located(status);
    if (absl::Status status = CheckLearners(config, options.learners); !status.ok()) return status;
  }
  if (rollout.num_envs() / rollout.envs_per_runner() < options.learners) return TooFewGroups(rollout, options.learners);
  return absl::OkStatus();
}

// An environment of one's own is asked what it is here, once for the whole run.
void KeepExternalSpec(v1::RunConfig* config) {
  if (!IsExternalId(config->env().id()) || config->env().external().has_spec()) return;
  EnvOptions options = MakeEnvOptions(config->env());
  options.transforms.clear();  // They are around what it says of itself.
  const auto spec = FindEnvSpec(config->env().id(), options);
  if (spec.ok()) config->mutable_env()->mutable_external()->set_spec(ExternalSpecSetting(*spec));
}

// A model of one's own is the same in the whole run. `config` is checked, so that the model can be read.
absl::Status KeepModelDigest(v1::RunConfig* config) {
  if (config->env().mujoco().has_xml_digest()) return absl::OkStatus();  // any
  const auto digest = FindModelDigest(config->env().id(), MakeEnvOptions(config->env()));
  if (digest.ok() && !digest->empty()) config->mutable_env()->mutable_mujoco()->set_xml_digest(*digest);
  return digest.status();
}

// Environments are tensors on the learner's device: there are no runners. `open` is the configuration before it is
// resolved.
absl::StatusOr<LaunchPlan> PlanOnDevice(const LaunchOptions& options, const v1::RunConfig& recipe,
                                        const v1::RunConfig& open, LaunchPlan plan) {
  if (absl::Status status = CheckTensorForm(open.env().id()); !status.ok()) return status;
  uint32_t groups = 1;  // Env groups that determine the number of environments if that is open.
  if (open.rollout().num_envs() == 0) {
    const uint32_t wanted = open.rollout().steps_per_iteration() / kDeviceSteps / open.rollout().envs_per_runner();
    groups = FittingRunners(open.rollout(), std::max({wanted, options.learners, 1u}), options.learners);
    if (!Fits(open.rollout(), groups)) return NothingFits(open);
  }
  auto config = LoadRunConfig(options.config_path, AllOverrides(options), groups, recipe);
  if (!config.ok()) return config.status();
  plan.config = *std::move(config);
  if (absl::Status status = CheckConfig(plan.config, options); !status.ok()) return status;
  plan.learners = options.learners;
  plan.on_device = true;
  plan.notes.push_back(DeviceNote(plan.config));
  if (options.runners != "auto" || options.actors > 1) {
    plan.notes.push_back("note: --runners and --actors mean nothing with sync.mode on_device and are ignored");
  }
  return plan;
}

}  // namespace

absl::StatusOr<uint32_t> ParseRunners(const std::string& text, uint32_t automatic) {
  if (text == "auto") return std::max(1u, automatic);
  uint32_t runners = 0;
  if (!absl::SimpleAtoi(text, &runners) || runners < 1 || runners > kMaxRunners) {
    return absl::InvalidArgumentError(
        absl::StrCat("--runners: got ", Quoted(text), ", want auto or a number from 1 to ", kMaxRunners));
  }
  return runners;
}

absl::StatusOr<uint32_t> ParseLearners(const std::string& text, uint32_t least, uint32_t gpus) {
  if (text == "auto") return std::max(1u, gpus);
  uint32_t learners = 0;
  if (!absl::SimpleAtoi(text, &learners) || learners < least || learners > kMaxLearners) {
    return absl::InvalidArgumentError(
        absl::StrCat("--learners: got ", Quoted(text), ", want auto or a number from ", least, " to ", kMaxLearners));
  }
  return learners;
}

std::vector<uint32_t> SplitEvenly(uint32_t total, uint32_t parts) {
  std::vector<uint32_t> split(parts);
  for (uint32_t i = 0; i < parts; ++i) split[i] = total / parts + (i < total % parts ? 1 : 0);
  return split;
}

absl::StatusOr<LaunchPlan> PlanLaunch(const LaunchOptions& original, uint32_t cores, const SizesBefore& before) {
  LaunchOptions options = original;
  LaunchPlan plan;
  const auto resume = ParseResumeMode(options.resume);
  if (!resume.ok()) return resume.status();
  plan.resume = *resume;

  const bool automatic = options.runners == "auto";
  if (options.ports.data > 0 && options.ports.data + int64_t{options.learners} > 65536) {
    return absl::InvalidArgumentError(absl::StrCat("--data-port ", options.ports.data, ": no ports for --learners ",
                                                   options.learners, ", which take one each from there up to 65535"));
  }
  const bool head = options.actors == 0;
  auto wanted = ParseRunners(options.runners, std::max(head ? kHeadRunners : cores, options.learners));
  if (!wanted.ok()) return wanted.status();
  if (!head && *wanted < options.learners) return TooFewRunners(*wanted, options.learners);
  const auto recipe = ChooseRecipe(options.recipe, options.config_path, AllOverrides(options), options.learners,
                                   head ? "skein head" : "skein train");
  if (!recipe.ok()) return recipe.status();
  if (!recipe->note.empty()) plan.notes.push_back(recipe->note);
  if (absl::Status status = CheckSizes(options, recipe->settings); !status.ok()) return status;
  auto open = ReadRunConfig(options.config_path, AllOverrides(options), recipe->settings);
  if (!open.ok()) return open.status();
  const auto user = UserSettings(options.config_path, AllOverrides(options));
  if (!user.ok()) return user.status();
  if (options.recipe == "auto" && !options.config_path.empty()) {
    const std::string note = SizesLeftOpenNote(options.config_path, *user, *open);
    if (!note.empty()) plan.notes.push_back(note);
  }
  for (const std::string& note : UnreadNotes(*user, *open)) plan.notes.push_back(note);
  if (open->sync().mode() == v1::SYNC_MODE_ON_DEVICE) {
    return PlanOnDevice(options, recipe->settings, *open, std::move(plan));
  }
  uint32_t sized_for = *wanted;  // Env groups that determine the number of environments if that is open.
  bool goes_on = false;          // Continues with its first number of environments.
  if (before) {
    const std::optional<RunSizes> sizes = Usable(before(*open), *open, options, recipe->settings, cores);
    goes_on = sizes.has_value();
    if (automatic && !head) plan.notes.push_back(AutomaticNote(sizes, cores, options.learners));
    if (goes_on) {
      if (automatic) wanted = sizes->runners;
      sized_for = sizes->num_envs / sizes->envs_per_runner;
      open->mutable_rollout()->set_envs_per_runner(sizes->envs_per_runner);
      options.envs_per_runner = sizes->envs_per_runner;
    }
  }
  const std::vector<std::string> overrides = AllOverrides(options);
  if (open->rollout().num_envs() == 0 && !goes_on) {
    if (automatic) sized_for = FittingRunners(open->rollout(), sized_for, options.learners);
    if (!Fits(open->rollout(), sized_for)) {
      return automatic ? NothingFits(*open) : DoesNotFit(*open, *wanted);
    }
    sized_for = GroupsFor(*open, sized_for);
  }
  absl::StatusOr<v1::RunConfig> config = LoadRunConfig(options.config_path, overrides, sized_for, recipe->settings);
  if (!config.ok()) return config.status();
  plan.config = *std::move(config);

  // That of a file of another run is none of this one's, which may have another.
  v1::EnvConfig* const env = plan.config.mutable_env();
  if (env->mujoco().has_xml_digest() && env->mujoco().xml_digest() != kAnyModelDigest) {
    env->mutable_mujoco()->clear_xml_digest();
  }
  if (absl::Status status = CheckConfig(plan.config, options); !status.ok()) return status;
  KeepExternalSpec(&plan.config);
  if (absl::Status status = KeepModelDigest(&plan.config); !status.ok()) return status;
  plan.learners = options.learners;
  const v1::RolloutConfig& rollout = plan.config.rollout();
  const uint32_t groups = rollout.num_envs() / rollout.envs_per_runner();
  const bool search = SearchesDirections(plan.config);
  const std::string sizes = absl::StrCat(rollout.num_envs(), search ? " directions, " : " environments, ",
                                         rollout.envs_per_runner(), " a runner");
  const std::string as_begun = ", as the run began";
  if (head) {
    plan.notes.push_back(absl::StrCat("at most ", groups, " runners, of all workers together, can work at once (",
                                      sizes,
                                      goes_on  ? as_begun + ")"
                                      : search ? "); more with directions.num_dirs"
                                               : "); more with --envs" + Doubled(rollout)));
    return plan;
  }

  const uint32_t runners = std::min(*wanted, groups);
  if (runners < *wanted && (goes_on || open->rollout().num_envs() != 0)) {
    plan.notes.push_back(absl::StrCat("note: using ", runners, " of ", *wanted,
                                      automatic ? " cores: " : " runners: ", sizes,
                                      goes_on  ? as_begun
                                      : search ? "; more with a smaller directions.dir_chunk"
                                               : "; more with --envs or a smaller --envs-per-runner"));
  } else if (runners < *wanted) {
    plan.notes.push_back(absl::StrCat(
        "note: using ", runners, " of ", *wanted, " cores: ", uint64_t{*wanted} * rollout.envs_per_runner(),
        " environments, ", rollout.envs_per_runner(), " a runner, do not divide rollout.steps_per_iteration ",
        rollout.steps_per_iteration(), "; another --envs-per-runner may"));
  }
  const uint32_t actors = std::max(options.actors, options.learners);
  if (actors > runners) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--actors: ", actors, " processes cannot share ", runners, runners == 1 ? " runner" : " runners",
        runners < *wanted ? absl::StrCat("; no more of ", *wanted, " can work at once (", sizes, ")") : ""));
  }
  plan.actor_runners = SplitEvenly(runners, actors);
  return plan;
}

SizesBefore SizesInRunFolder(const LaunchOptions& options) {
  return [options](const v1::RunConfig& config) -> std::optional<RunSizes> {
    if (options.resume == "never" || config.rollout().num_envs() > 0) return std::nullopt;
    const std::string name =
        config.name().empty() ? absl::StrCat(config.env().id(), "-s", config.seed()) : config.name();
    const std::string run_path = absl::StrCat(options.runs_dir, "/", name);
    const std::string config_path = run_path + "/config.yaml", checkpoints = run_path + "/checkpoints";
    std::error_code ignored;
    // Only a run with checkpoints can be continued; with learners elsewhere they may be there.
    const bool begun = std::filesystem::exists(config_path, ignored) &&
                       (options.learners == 0 || std::filesystem::directory_iterator(checkpoints, ignored) !=
                                                     std::filesystem::directory_iterator());
    if (!begun) return std::nullopt;
    const auto before = ReadRunConfig(config_path, {});
    const uint32_t groups = before.ok() ? before->rollout().num_envs() / before->rollout().envs_per_runner() : 0;
    if (groups == 0) return std::nullopt;
    const uint32_t half = std::max(1u, groups / 2);
    return RunSizes{.runners = GroupsFor(*before, half) == groups ? half : groups,
                    .envs_per_runner = before->rollout().envs_per_runner(),
                    .num_envs = before->rollout().num_envs()};
  };
}

std::string AnnounceHost(const std::string& host) {
  if (!IsWildcard(host)) return host;
  ifaddrs* interfaces = nullptr;
  if (getifaddrs(&interfaces) != 0) return "127.0.0.1";
  std::string found = "127.0.0.1";
  for (const ifaddrs* i = interfaces; i != nullptr; i = i->ifa_next) {
    if (i->ifa_addr == nullptr || i->ifa_addr->sa_family != AF_INET) continue;
    if ((i->ifa_flags & IFF_UP) == 0 || (i->ifa_flags & IFF_LOOPBACK) != 0) continue;
    char text[INET_ADDRSTRLEN];
    const auto* address = reinterpret_cast<const sockaddr_in*>(i->ifa_addr);
    if (inet_ntop(AF_INET, &address->sin_addr, text, sizeof(text)) != nullptr) {
      found = text;
      break;
    }
  }
  freeifaddrs(interfaces);
  return found;
}

}  // namespace skein
