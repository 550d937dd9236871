// SPDX-License-Identifier: Apache-2.0
#include "learner/fit/fit_verbs.h"

#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/command/arguments.h"
#include "base/config/resume_mode.h"
#include "base/process/diverted_output.h"
#include "learner/fit/detect.h"
#include "learner/fit/fit_group.h"
#include "learner/fit/fit_result.h"
#include "learner/fit/fit_run.h"
#include "learner/ranks/rank_environment.h"
#include "learner/sequence/fit_settings.h"
#include "member/member_flags.h"

namespace skein {
namespace {

constexpr char kProgram[] = "skein-fit";

struct FitFlags {
  std::string config, name, run_directory, resume = "auto", metrics = "127.0.0.1:0", coordinator;
  std::vector<std::string> overrides, data;
  uint64_t seed = 0;
  uint32_t learners = 1;
  int port = 7070, http_port = 7071;
  bool claimed = false, json = false;
  MemberFlags member;
};

absl::Status Fit(const FitFlags& flags, bool seed_given, ShutdownSignal* shutdown) {
  const auto timeout = BeginMember(kProgram, flags.member);
  if (!timeout.ok()) return timeout.status();
  auto config = LoadFitConfig(flags.config, flags.overrides);
  if (!config.ok()) return config.status();
  if (!flags.data.empty()) config->mutable_data()->set_files(absl::StrJoin(flags.data, ","));
  if (!flags.name.empty()) config->set_name(flags.name);
  if (seed_given) config->set_seed(flags.seed);
  if (absl::Status s = ValidateFitConfig(*config); !s.ok()) return s;
  FitOptions options;
  options.config = *config;
  options.run_directory = flags.run_directory.empty() ? absl::StrCat("runs/", config->name()) : flags.run_directory;
  options.resume = *ParseResumeMode(flags.resume);
  options.claimed = flags.claimed;
  options.metrics = flags.metrics;
  options.coordinator = flags.coordinator;
  options.port = flags.port;
  options.http_port = flags.http_port;
  options.timeout = *timeout;
  options.log_json = flags.member.log_json;
  const auto train = [&] {
    std::optional<DivertedOutput> diverted;
    if (flags.json) diverted.emplace();
    return flags.learners > 1 ? RunFitGroup(flags.learners, options, shutdown) : RunFit(options, shutdown);
  };
  const absl::Status trained = train();
  if (!trained.ok() || !flags.json) return trained;
  // Of ranks that a launcher has started, the first one speaks.
  if (const auto place = ReadRankEnvironment(); flags.learners == 1 && place.ok() && place->rank > 0) return trained;
  const auto result = FitResultJson(options.run_directory);
  if (result.ok()) std::printf("%s\n", result->c_str());
  return result.status();
}

}  // namespace

void AddFit(CLI::App* app, FitAction* action) {
  CLI::App* verb = app->add_subcommand("fit", "Train a model of sequences from files");
  verb->footer(
      "A file has one sequence a line, its keys separated by blanks; it may be compressed by gzip. Examples:\n"
      "  skein fit --config configs/deeplog_hdfs.yaml --data hdfs_train\n"
      "  skein fit --data 'logs/*.gz' --name logs --learners 2 --set data.keys=tokens\n"
      "  torchrun --nproc_per_node=4 --no-python skein fit --config my.yaml");
  auto flags = std::make_shared<FitFlags>();
  verb->add_option("--config", flags->config, "Settings (YAML); proto/skein/v1/fit.proto has them all");
  verb->add_option("--set", flags->overrides, "One setting, e.g. --set train.lr=1e-3; wins over the file")
      ->type_name("A.B=C")
      ->allow_extra_args(false);
  verb->add_option("--data", flags->data, "A file, or a pattern of several; instead of data.files")
      ->type_name("FILE")
      ->allow_extra_args(false);
  verb->add_option("--name", flags->name, "Name of the run; instead of name");
  CLI::Option* const seed =
      verb->add_option("--seed", flags->seed, "Instead of seed")->check(WholeNumber())->type_name("NUMBER");
  verb->add_option("--run-dir", flags->run_directory, "Folder of the run; default runs/NAME")->type_name("FOLDER");
  verb->add_option("--resume", flags->resume, "Go on from the newest checkpoint: auto, must or never")
      ->check(OneOf({"auto", "must", "never"}))
      ->capture_default_str();
  verb->add_option("--learners", flags->learners, "Ranks on this machine that train together")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  verb->add_option("--metrics", flags->metrics, "Address for /metrics; port 0 takes a free one")->capture_default_str();
  verb->add_option("--coordinator", flags->coordinator,
                   "Address of a coordinator to report to, instead of one of its own");
  verb->add_option("--port", flags->port, "Port of its own coordinator, for skein top; another if in use; -1 = none")
      ->check(CLI::Range(-1, 65535))
      ->capture_default_str();
  verb->add_option("--http-port", flags->http_port, "Port of the status page; another if in use")
      ->check(CLI::Range(0, 65535))
      ->capture_default_str();
  verb->add_flag("--json", flags->json, "Print one JSON object at the end; progress goes to standard error");
  // Of `skein fit --learners` to the processes that it starts.
  verb->add_flag("--claimed", flags->claimed, "The folder is claimed by the process that started this one")->group("");
  AddMemberFlags(verb, &flags->member);
  verb->callback([flags, seed, action] {
    const bool seed_given = seed->count() > 0;
    *action = [flags, seed_given](ShutdownSignal* shutdown) { return Fit(*flags, seed_given, shutdown); };
  });
}

void AddDetect(CLI::App* app, FitAction* action) {
  CLI::App* verb = app->add_subcommand("detect", "Judge sequences by a model that skein fit has trained");
  verb->footer(
      "Writes one line of JSON for each sequence. Example:\n"
      "  skein detect --checkpoint runs/deeplog --data hdfs_test_abnormal > verdicts.jsonl");
  struct Flags {
    DetectOptions options;
    std::vector<std::string> data;
    MemberFlags member;
  };
  auto flags = std::make_shared<Flags>();
  DetectOptions* const options = &flags->options;
  verb->add_option("--checkpoint", options->checkpoint, "A run's folder, or one of its checkpoints")
      ->type_name("FOLDER")
      ->required();
  verb->add_option("--data", flags->data, "A file, or a pattern of several")
      ->type_name("FILE")
      ->required()
      ->allow_extra_args(false);
  verb->add_option("--set", options->overrides, "A setting of data or detect, e.g. --set data.unknown_keys=refuse")
      ->type_name("A.B=C")
      ->allow_extra_args(false);
  auto* const probability =
      verb->add_option("--probability", options->probability,
                       "A key is anomalous if it is less probable; default: the limit chosen in training")
          ->check(NumberWithin(0, 1));
  verb->add_option("--top-g", options->top_g, "A key is anomalous if so many others are more probable")
      ->check(CLI::Range(0, 1000000000))
      ->excludes(probability);
  verb->add_option("--threads", options->threads, "0 = as many as the machine has cores")
      ->check(CLI::Range(0, 1024))
      ->capture_default_str();
  verb->add_flag("--json", options->json_summary,
                 "Verdicts are lines of JSON in any case; with this the summary on standard error is one, too");
  verb->callback([flags, action] {
    *action = [flags](ShutdownSignal* shutdown) {
      if (const auto begun = BeginMember(kProgram, flags->member); !begun.ok()) return begun.status();
      flags->options.files = absl::StrJoin(flags->data, ",");
      const absl::Status status = RunDetect(flags->options, stdout, shutdown);
      return std::ferror(stdout) != 0 ? absl::OkStatus() : status;  // What is lost FinishOutput says, in one line.
    };
  });
}

}  // namespace skein
