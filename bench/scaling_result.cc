// SPDX-License-Identifier: Apache-2.0
#include "bench/scaling_result.h"

#include "absl/strings/str_cat.h"

namespace skein {

using Json = nlohmann::ordered_json;

Json ToJson(const ScalingMeasurement& row) {
  Json samples = Json::array();
  for (const UsageSample& sample : row.usage) {
    Json one = {{"seconds", sample.seconds}, {"cpu", sample.cpu}, {"cores", sample.cores}};
    one["gpu"] = sample.gpu ? Json(*sample.gpu) : Json();
    samples.push_back(std::move(one));
  }
  return {{"runners", row.point.runners},
          {"envs_per_runner", row.point.envs_per_runner},
          {"actors", row.actors},
          {"steps_per_iteration", row.steps_per_iteration},
          {"sizes", row.sizes},
          {"env_steps", row.times.env_steps},
          {"iteration_seconds", row.times.seconds},
          {"learner_stage_seconds", row.times.learner},
          {"runner_stage_seconds", row.times.runners},
          {"usage_samples", std::move(samples)}};
}

absl::StatusOr<ScalingMeasurement> MeasurementFromJson(const Json& json) {
  try {
    ScalingMeasurement row;
    row.point = {json.at("runners").get<uint32_t>(), json.at("envs_per_runner").get<uint32_t>()};
    row.actors = json.at("actors").get<uint32_t>();
    row.steps_per_iteration = json.at("steps_per_iteration").get<uint64_t>();
    row.sizes = json.at("sizes").get<std::vector<std::string>>();
    row.times.env_steps = json.at("env_steps").get<uint64_t>();
    row.times.seconds = json.at("iteration_seconds").get<std::vector<double>>();
    row.times.learner = json.at("learner_stage_seconds").get<std::map<std::string, double>>();
    row.times.runners = json.at("runner_stage_seconds").get<std::map<std::string, double>>();
    for (const Json& one : json.at("usage_samples")) {
      UsageSample& sample = row.usage.emplace_back();
      sample.seconds = one.at("seconds").get<double>();
      sample.cpu = one.at("cpu").get<double>();
      sample.cores = one.at("cores").get<std::vector<double>>();
      if (!one.at("gpu").is_null()) sample.gpu = one.at("gpu").get<double>();
    }
    if (row.point.environments() == 0 || row.times.total_seconds() <= 0) {
      return absl::DataLossError("a row has no environments or took no time");
    }
    return row;
  } catch (const nlohmann::json::exception& error) {
    return absl::DataLossError(absl::StrCat("a row is not what this command writes: ", error.what()));
  }
}

}  // namespace skein
