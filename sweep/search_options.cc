// SPDX-License-Identifier: Apache-2.0
#include "sweep/search_options.h"

namespace skein {

Search::Options SearchOptionsOf(const SweepFile& file, const v1::RunConfig& base, uint32_t max_trials) {
  const v1::SweepConfig& config = file.config;
  Search::Options options;
  options.admits = AdmitsByConstraints(file.space, base);
  options.max_trials = max_trials;
  options.max_core_hours = config.max_core_hours();
  options.seeds = config.seeds_per_trial();
  options.first_seed = config.tuning_seed();
  options.seeds_by_group = config.scheduler().kind() == v1::SWEEP_SCHEDULE_POPULATION;
  options.sweep_seed = config.seed();
  options.resample = config.scheduler().resample();
  options.perturb = config.scheduler().perturb();
  return options;
}

}  // namespace skein
