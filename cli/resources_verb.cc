// SPDX-License-Identifier: Apache-2.0
// skein resources: what a run asks for of a machine, and what is left of this one.
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/command/arguments.h"
#include "base/config/config_reflection.h"
#include "base/config/resource_rules.h"
#include "base/process/exit_code.h"
#include "cli/verbs.h"
#include "launch/node_bookings.h"
#include "launch/recipe.h"
#include "launch/share_text.h"
#include "launch/visible_gpus.h"
#include "nlohmann/json.hpp"

namespace skein {
namespace {

struct ResourcesFlags {
  std::string config;
  std::vector<std::string> overrides;
  std::string form = "table";
  uint32_t learners = 1;
  uint32_t actors = 1;
  bool json = false;
};

nlohmann::ordered_json ToJson(const NodeResources& resources) {
  return {{"cpus", resources.cpus}, {"gpus", resources.gpus}, {"memory_bytes", resources.memory_bytes}};
}

std::string Row(const std::string& name, const NodeResources& resources) {
  const auto number = config_reflection::NumberText;
  return absl::StrFormat("%-24s %8s %8s %12s\n", name, number(resources.cpus), number(resources.gpus),
                         MemoryText(resources.memory_bytes));
}

void PrintTable(const NodeResources& asked, const NodeResources& here, const std::vector<NodeBooking::Other>& booked,
                const NodeResources& left) {
  std::cout << absl::StrFormat("%-24s %8s %8s %12s\n", "", "CPUS", "GPUS", "MEMORY");
  std::cout << Row("this machine", here);
  for (const NodeBooking::Other& other : booked) {
    std::cout << Row(absl::StrCat("run ", other.run, ", ", other.pid), other.asked);
  }
  std::cout << Row("left", left) << Row("asked for", asked) << std::flush;
}

absl::Status PrintResources(const ResourcesFlags& flags) {
  auto config = UserSettings(flags.config, flags.overrides);
  if (!config.ok()) return config.status();
  if (absl::Status status = CheckResources(*config); !status.ok()) return status;
  const ResourceShare learner = LearnerShare(*config), actor = ActorShare(*config);
  if (flags.form == "slurm") {
    std::cout << SlurmFlags(LargerOf(Times(learner, flags.learners), Times(actor, flags.actors))) << std::endl;
    return absl::OkStatus();
  }
  if (flags.form == "helm") {
    std::cout << HelmValues("learner", learner) << HelmValues("actor", actor) << std::flush;
    return absl::OkStatus();
  }
  const NodeResources here = WhatIsHere(CountVisibleGpus()), asked = AskedFor(*config, flags.learners, flags.actors);
  const std::vector<NodeBooking::Other> booked = NodeBooking::List(BookingFolder());
  const NodeResources left = NodeBooking::Left(BookingFolder(), here);
  if (!flags.json) {
    PrintTable(asked, here, booked, left);
    return absl::OkStatus();
  }
  nlohmann::ordered_json runs = nlohmann::ordered_json::array();
  for (const NodeBooking::Other& other : booked) {
    nlohmann::ordered_json run = {{"run", other.run}, {"pid", other.pid}};
    run.update(ToJson(other.asked));
    runs.push_back(run);
  }
  const nlohmann::ordered_json json = {
      {"machine", ToJson(here)}, {"runs", runs}, {"left", ToJson(left)}, {"asked", ToJson(asked)}};
  std::cout << json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) << std::endl;
  return absl::OkStatus();
}

}  // namespace

void AddResources(CLI::App* app, Action* action) {
  CLI::App* verb =
      app->add_subcommand("resources", "Show what is left of this machine, and what a run's shares come to");
  auto flags = std::make_shared<ResourcesFlags>();
  verb->add_option("--config", flags->config, "Configuration, YAML");
  verb->add_option("--set", flags->overrides, "Any setting as a.b=value; may be repeated")
      ->allow_extra_args(false)
      ->type_name("KEY=VALUE");
  verb->add_option("--learners", flags->learners, "Learners on one machine")
      ->check(CLI::Range(0, 4096))
      ->capture_default_str();
  verb->add_option("--actors", flags->actors, "Actors on one machine")
      ->check(CLI::Range(0, 4096))
      ->capture_default_str();
  verb->add_option("--as", flags->form,
                   "table; slurm: flags of sbatch for machines that are all alike; helm: values for the chart")
      ->check(OneOf({"table", "slurm", "helm"}))
      ->capture_default_str();
  verb->add_flag("--json", flags->json, "Print one JSON object");
  verb->footer(
      "Example:\n  skein resources --config mine.yaml\n"
      "  sbatch $(skein resources --config mine.yaml --as slurm) deploy/slurm/plain.sh mine.yaml cheetah");
  verb->callback(
      [flags, action] { *action = [flags] { return ReportAndExitCode("skein resources", PrintResources(*flags)); }; });
}

}  // namespace skein
