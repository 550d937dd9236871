// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "nlohmann/json.hpp"
#include "sweep/scheduler.h"
#include "sweep/study.h"

// Writes the results of a sweep for people and other programs: tables, CSV and JSON.
namespace skein {

// The best trial: of those that are complete, or, without any, of those that came furthest in env steps. Among equals
// the first.
std::optional<uint32_t> BestTrial(const Study& study, const Scheduler& scheduler);

// The trials that the best one continues copies of, the oldest first; empty if it began by itself.
std::vector<Trial::Origin> Ancestors(const Study& study, uint32_t number);

std::string StateName(const Trial& trial);

// One line for each trial: number, state, rungs, env steps, value, the value of each seed, seconds of a core, failures,
// the parameters, why it ended.
std::string ToCsv(const Space& space, const Study& study, const Scheduler& scheduler, uint32_t seeds);

// The two sides of a test: the newest trials of `test` of these configurations. A base configuration is a point of
// nothing. nullopt: there is none.
struct TestSides {
  std::optional<uint32_t> base, best;
};
TestSides SidesOf(const Study& test, const Point& best);
// Why there is no comparison although a side has ended; empty if there is one, or will be.
std::string TestFailure(const Study& test, const TestSides& sides);

// The best configuration against the base, when both are complete: each with the values of its seeds, mean and
// interval; and their difference. {"error": why} if a side has failed. Null before.
nlohmann::ordered_json TestJson(const Study& test, const TestSides& sides);
// The same in two or three lines, or in one.
std::string TestText(const Study& test, const TestSides& sides, const std::string& metric);

}  // namespace skein
