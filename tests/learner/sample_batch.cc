// SPDX-License-Identifier: Apache-2.0
#include "tests/learner/sample_batch.h"

#include <numeric>
#include <type_traits>

#include "base/number/number_bounds.h"
#include "gtest/gtest.h"

namespace skein {
namespace {

template <typename Value>
void AddTensor(v1::TrajectoryBatch* batch, const char* name, v1::DataType dtype, const std::vector<int64_t>& shape,
               const std::vector<Value>& values) {
  v1::Tensor* tensor = batch->add_tensors();
  tensor->set_name(name);
  tensor->set_dtype(dtype);
  for (int64_t extent : shape) tensor->add_shape(extent);
  tensor->set_data(std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(Value)));
}

std::vector<float> Ramp(const std::vector<int64_t>& shape, float first, float step = 1) {
  std::vector<float> values(std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>()));
  for (size_t i = 0; i < values.size(); ++i) values[i] = first + step * static_cast<float>(i);
  return values;
}

void AddFloats(v1::TrajectoryBatch* batch, const char* name, const std::vector<int64_t>& shape, float first,
               float step = 1) {
  AddTensor(batch, name, v1::DATA_TYPE_FLOAT32, shape, Ramp(shape, first, step));
}

}  // namespace

FragmentShape MakeSampleShape(const SampleSizes& sizes) {
  FragmentShape shape;
  shape.steps = sizes.T;
  shape.num_envs = sizes.E;
  shape.env_state_size = sizes.S;
  shape.spec.set_env_id("Sample-v0");
  shape.spec.set_obs_size(sizes.O);
  shape.spec.set_action_size(sizes.D);
  shape.spec.set_discrete(sizes.discrete);
  shape.spec.set_num_agents(sizes.A);
  shape.spec.set_global_state_size(sizes.G);
  for (int64_t i = 0; i < sizes.P; ++i) shape.spec.add_episode_metrics("metric_" + std::to_string(i));
  return shape;
}

v1::TrajectoryBatch MakeSampleBatch(const FragmentShape& shape, float offset, const std::vector<SampleEnd>& ends) {
  const int64_t T = shape.steps, E = shape.num_envs, A = shape.spec.num_agents();
  const int64_t O = shape.spec.obs_size(), D = shape.spec.action_size();
  v1::TrajectoryBatch batch;
  batch.set_sequence(1);
  batch.set_ticket_id(1);
  batch.set_policy_version(1);
  batch.set_num_envs(static_cast<uint32_t>(E));
  batch.set_steps(static_cast<uint32_t>(T));
  batch.set_env_steps_collected(static_cast<uint64_t>(T * E));
  AddFloats(&batch, "obs", {T + 1, E, A, O}, offset);
  if (shape.spec.discrete()) {
    std::vector<int64_t> choices(T * E * A);
    for (size_t i = 0; i < choices.size(); ++i) choices[i] = static_cast<int64_t>(i) % D;
    AddTensor(&batch, "action", v1::DATA_TYPE_INT64, {T, E, A, 1}, choices);
  } else {
    AddFloats(&batch, "action", {T, E, A, D}, offset);
  }
  AddFloats(&batch, "log_prob", {T, E, A}, offset, -1);
  AddFloats(&batch, "reward", {T, E, A}, -offset, -1);
  std::vector<uint8_t> terminated(T * E), truncated(T * E);
  std::vector<int64_t> lengths;
  int64_t truncations = 0;
  for (const SampleEnd& end : ends) {
    (end.truncated ? truncated : terminated)[end.t * E + end.e] = 1;
    truncations += end.truncated;
    lengths.push_back(10 + static_cast<int64_t>(lengths.size()));
  }
  AddTensor(&batch, "terminated", v1::DATA_TYPE_UINT8, {T, E}, terminated);
  AddTensor(&batch, "truncated", v1::DATA_TYPE_UINT8, {T, E}, truncated);
  AddFloats(&batch, "final_obs", {truncations, A, O}, offset);
  AddFloats(&batch, "episode_return", {static_cast<int64_t>(ends.size())}, offset);
  AddTensor(&batch, "episode_length", v1::DATA_TYPE_INT64, {static_cast<int64_t>(ends.size())}, lengths);
  std::vector<double> state(E * shape.env_state_size);
  for (size_t i = 0; i < state.size(); ++i) state[i] = static_cast<double>(offset) + static_cast<double>(i);
  if (const int64_t G = shape.spec.global_state_size(); G > 0) {
    AddFloats(&batch, "state", {T + 1, E, G}, offset);
    AddFloats(&batch, "final_state", {truncations, G}, offset);
  }
  if (A > 1) {
    std::vector<uint8_t> active(T * E * A, 1), agent_terminated;
    for (const uint8_t end : terminated) agent_terminated.insert(agent_terminated.end(), A, end);
    AddTensor(&batch, "active", v1::DATA_TYPE_UINT8, {T, E, A}, active);
    AddTensor(&batch, "agent_terminated", v1::DATA_TYPE_UINT8, {T, E, A}, agent_terminated);
  }
  if (const int64_t P = shape.spec.episode_metrics_size(); P > 0) {
    AddFloats(&batch, "episode_metrics", {static_cast<int64_t>(ends.size()), P}, offset);
  }
  AddTensor(&batch, "env_state", v1::DATA_TYPE_FLOAT64, {E, shape.env_state_size}, state);
  return batch;
}

ReceivedBatch::ReceivedBatch(const v1::TrajectoryBatch& batch, size_t piece_bytes) {
  v1::CollectRequest request;
  *request.mutable_batch() = batch;
  bytes_ = request.SerializeAsString();
  if (piece_bytes == 0) piece_bytes = bytes_.size();
  for (size_t at = 0; at < bytes_.size(); at += piece_bytes) {
    pieces_.emplace_back(bytes_.data() + at, std::min(piece_bytes, bytes_.size() - at));
  }
  auto parsed = WireRequest::Parse(pieces_);
  EXPECT_TRUE(parsed.ok()) << parsed.status();
  if (parsed.ok()) request_ = *std::move(parsed);
}

BatchValues::BatchValues(const v1::TrajectoryBatch& batch, const FragmentShape& shape) {
  const ReceivedBatch received(batch, 1000);
  const absl::Status status = CheckBatch(received.wire(), shape, this);
  EXPECT_TRUE(status.ok()) << status;
  if (!status.ok()) return;
  const auto read = [](auto from, int64_t size, auto* values) {
    values->resize(size);
    if constexpr (std::is_same_v<decltype(from), FloatReader>) {
      EXPECT_EQ(from.ReadRows(1, values->size(), 0, kNumberBound, values->data()), values->size());
    } else {
      from.Read(values->data(), size * sizeof((*values)[0]));
    }
  };
  const int64_t rows = shape.steps * shape.num_envs * shape.spec.num_agents();
  const int64_t first_rows = shape.num_envs * shape.spec.num_agents();
  read(CheckedBatch::obs, (rows + first_rows) * shape.spec.obs_size(), &obs);
  if (shape.spec.discrete()) {
    read(CheckedBatch::action, rows, &action_index);
  } else {
    read(CheckedBatch::action, rows * shape.spec.action_size(), &action);
  }
  if (const int64_t G = shape.spec.global_state_size(); G > 0) {
    read(CheckedBatch::state, (shape.steps + 1) * shape.num_envs * G, &state);
  }
  read(CheckedBatch::log_prob, rows, &log_prob);
  read(CheckedBatch::reward, rows, &reward);
}

v1::Tensor* FindTensor(v1::TrajectoryBatch* batch, const std::string& name) {
  for (v1::Tensor& tensor : *batch->mutable_tensors()) {
    if (tensor.name() == name) return &tensor;
  }
  ADD_FAILURE() << "no tensor " << name;
  return batch->add_tensors();
}

}  // namespace skein
