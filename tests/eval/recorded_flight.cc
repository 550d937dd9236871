// SPDX-License-Identifier: Apache-2.0
#include "tests/eval/recorded_flight.h"

#include "env/registry.h"
#include "eval/evaluation_episodes.h"
#include "gtest/gtest.h"

namespace skein {

RecordedFlight Fly(const std::string& env_id, const std::string& baseline, uint32_t episode,
                   const UavOptions& options) {
  RecordedFlight flight;
  flight.episode.options.uav = options;
  flight.episode.spec = FindEnvSpec(env_id, flight.episode.options).value();
  flight.episode.policy = baseline;
  flight.episode.seed = 1000;
  flight.episode.episode = episode;
  const VectorEnv::Options env = {
      .env_id = env_id, .seed = 1000, .reset_purpose = RandomPurpose::kEvaluation, .env = flight.episode.options};
  const auto policy = MakeBaseline(baseline, flight.episode.spec, env.env, env.seed).value();
  const absl::Status status = RunEpisodes(*policy, env, episode + 1, &flight.episode, &flight.result);
  EXPECT_TRUE(status.ok()) << status;
  return flight;
}

}  // namespace skein
