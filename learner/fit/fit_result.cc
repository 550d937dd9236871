// SPDX-License-Identifier: Apache-2.0
#include "learner/fit/fit_result.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "learner/fit/saved_model.h"
#include "learner/run/checkpoint.h"

namespace skein {

absl::StatusOr<std::string> FitResultJson(const std::string& run_directory) {
  const auto found = FindCheckpoint(run_directory);
  if (!found.ok()) return found.status();
  const auto saved = ReadSavedModel(found->checkpoint, found->path);
  if (!saved.ok()) return saved.status();
  const FitProgress& p = saved->progress;
  nlohmann::ordered_json json = {
      {"run_directory", run_directory}, {"checkpoint", found->path}, {"digest", CheckpointDigest(found->checkpoint)},
      {"finished", p.finished},         {"epochs", p.epoch},         {"steps", p.steps},
      {"skipped_steps", p.skipped},     {"sequences", p.sequences},  {"keys", p.keys},
      {"best_epoch", p.best_epoch},     {"held_out_loss", nullptr},  {"limit", nullptr}};
  if (p.best_epoch > 0 && saved->config.data().holdout() > 0 && std::isfinite(p.best_held_out_loss)) {
    json["held_out_loss"] = p.best_held_out_loss;
  }
  if (saved->has_limits) {
    const Limits limits = saved->chosen_limits();
    json["limit"] = {{"rule", limits.rule == v1::DETECT_RULE_TOP_G ? "top_g" : "probability"},
                     {"probability", limits.probability},
                     {"top_g", limits.top_g}};
  }
  return json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace skein
