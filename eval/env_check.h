// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "env/vector_env.h"

// Checks that an environment keeps the contract of env/env.h.
//   id -> VectorEnv with random actions -> a verdict for each point
namespace skein {

enum class Verdict { kOk, kFails, kNotApplicable };

struct CheckedPoint {
  std::string name;  // "seeds", as docs/environments.md lists them.
  Verdict verdict = Verdict::kOk;
  std::string found;   // One line, with the numbers.
  std::string remedy;  // What to do; empty unless it fails.
};

struct EnvCheck {
  std::string env_id;
  std::vector<CheckedPoint> points;
  // Env-steps a second of one thread; 0: not measured.
  double alone = 0;     // One environment.
  double together = 0;  // EnvCheckOptions::num_envs of them in a VectorEnv.
  double in_actor = 0;  // As many in a whole actor, with a policy.

  bool ok() const;
};

struct EnvCheckOptions {
  std::string env_id;
  int num_envs = 16;                            // Of the group whose speed is measured.
  int64_t steps = 0;                            // Of each episode pass; 0 = until an episode has reached its limit.
  absl::Duration seconds = absl::Seconds(10);   // Of each pass, at most.
  absl::Duration measure = absl::Seconds(0.5);  // Of each speed.
  // Makes environments with one seed. Errors as VectorEnv::Make.
  std::function<absl::StatusOr<std::unique_ptr<VectorEnv>>(int size, uint64_t seed)> make;
  // What types its numbers have, where that can be seen: the point's verdict, found and remedy. May be empty.
  std::function<CheckedPoint()> look_at_dtypes;
  // Env-steps a second of num_envs of them in one runner of an actor. May be empty. NotFound: a program is missing.
  // DeadlineExceeded: it was not measured in time, which says nothing of the environment.
  std::function<absl::StatusOr<double>()> measure_actor;
  // Called with each point as soon as its verdict is known. May be empty.
  std::function<void(const CheckedPoint&)> on_point;
  // Returns true once the check shall end early. May be empty.
  std::function<bool()> stopping;
  // What has been logged since the last call, for the reason of a failure; may be empty.
  std::function<std::string()> take_log;
};

// InvalidArgument, Unavailable: the environment cannot be looked at: no such id, no such server. Cancelled:
// options.stopping, after the step, or the making of an environment, that is under way. Whatever else goes wrong is a
// point that fails.
absl::StatusOr<EnvCheck> CheckEnv(const EnvCheckOptions& options);

// The lines of a point; that of all; or one JSON object: env_id, ok, points (point, verdict: ok, fails or
// not_applicable, found, remedy), env_steps_per_second (alone, together, in_actor).
std::string FormatCheckedPoint(const CheckedPoint& point);
std::string FormatVerdict(const EnvCheck& check);
std::string EnvCheckJson(const EnvCheck& check);

}  // namespace skein
