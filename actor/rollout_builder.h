// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "actor/fragment_builder.h"
#include "env/env.h"
#include "env/vector_env.h"
#include "skein/v1/trajectory.pb.h"
#include "trajectory/frame.h"
#include "trajectory/schema.h"

namespace skein {

// Writes the steps of one fragment directly into the block that will be sent, so that nothing is copied twice.
//   VectorEnv step -> Add -> Finish -> Fragment
// T steps, E environments, A agents; layouts as in trajectory/schema.h. Not thread-safe: one per runner.
class RolloutBuilder {
 public:
  // `policy_state_size` and `algorithm_fields` as in FragmentShape.
  RolloutBuilder(const EnvSpec& spec, int64_t policy_state_size, std::vector<std::string> algorithm_fields);

  // Starts a fragment. Pointers returned by the methods below are valid until Finish.
  void Begin(const v1::Ticket& ticket, uint64_t policy_version, int env_state_size);
  // As FragmentBuilder::values.
  template <typename Value>
  Value* values(absl::string_view field) {
    return fragment_.values<Value>(field);
  }
  // Rows of such fields, all written by the caller.
  float* obs(int64_t t) { return Row(obs_, t); }                   // [E, A, O] of row t, 0 <= t <= T.
  float* log_prob(int64_t t) { return Row(log_prob_, t); }         // [E, A]; null: the algorithm does not read it.
  float* action(int64_t t) { return Row(action_, t); }             // [E, A, D]; continuous only.
  int64_t* choice(int64_t t) { return Row(choice_, t); }           // [E, A]; discrete only.
  float* state(int64_t t) { return Row(state_, t); }               // [E, G] of row t, 0 <= t <= T; only if G > 0.
  double* env_state() { return values<double>("env_state"); }      // [E, S], after the last step.
  float* policy_state() { return values<float>("policy_state"); }  // [E, A, S] after the last step; null: no memory.
  // Adds the results of step t.
  void Add(int64_t t, const VectorEnv::StepResult& result);
  Fragment Finish(const v1::StageSeconds& stage_seconds);

  // The schema of the fragment that was begun last.
  const Schema& schema() const { return fragment_.schema(); }

 private:
  // Rows of one field.
  template <typename Value>
  struct Rows {
    Value* first = nullptr;  // Null: the run has no such field.
    int64_t elements = 0;    // Of one row.
  };
  template <typename Value>
  static Value* Row(const Rows<Value>& rows, int64_t t) {
    return rows.first == nullptr ? nullptr : rows.first + t * rows.elements;
  }
  template <typename Value>
  Rows<Value> Find(absl::string_view field);
  template <typename Value>
  static void AddRow(const Value* from, int64_t t, const Rows<Value>& rows);

  FragmentShape shape_;
  FragmentBuilder fragment_;
  Rows<float> obs_, action_, log_prob_, reward_, state_;
  Rows<int64_t> choice_;
  Rows<uint8_t> terminated_, truncated_, active_, agent_terminated_;
};

}  // namespace skein
