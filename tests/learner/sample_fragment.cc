// SPDX-License-Identifier: Apache-2.0
#include "tests/learner/sample_fragment.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "base/number/bfloat16.h"
#include "base/number/tensor_packing.h"
#include "gtest/gtest.h"
#include "learner/collect/staged_columns.h"

namespace skein {
namespace {

template <typename Value>
std::string Ramp(int64_t count, Value first, Value step) {
  std::vector<Value> values(count);
  for (int64_t i = 0; i < count; ++i) values[i] = first + step * static_cast<Value>(i);
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(Value)};
}

std::string RealData(const Field& field, int64_t count, float offset) {
  if (field.dtype == v1::DATA_TYPE_FLOAT64) return Ramp<double>(count, offset, 1);
  if (field.name == "log_prob") return Ramp<float>(count, offset, -1);
  if (field.name == "reward") return Ramp<float>(count, -offset, -1);
  return Ramp<float>(count, offset, 1);
}

std::string FlagData(const Schema& schema, const Field& field, int64_t count, const std::vector<SampleEnd>& ends) {
  std::string flags(count, field.name == "active" ? 1 : 0);
  const int64_t agents = field.per_agent ? schema.num_agents() : 1;
  for (const SampleEnd& end : ends) {
    const bool of_field =
        end.truncated ? field.name == "truncated" : field.name == "terminated" || field.name == "agent_terminated";
    if (of_field) std::fill_n(flags.begin() + (end.t * schema.shape.group_envs + end.e) * agents, agents, char{1});
  }
  return flags;
}

std::string ChoiceData(int64_t count, int64_t choices) {
  std::vector<int64_t> values(count);
  for (int64_t i = 0; i < count; ++i) values[i] = i % choices;
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(int64_t)};
}

template <typename Packed>
void Repack(SampleField* field, Packed pack) {
  v1::Tensor tensor;
  tensor.set_dtype(field->dtype);
  tensor.set_data(field->data);
  pack(&tensor);
  field->dtype = tensor.dtype();
  field->compression = tensor.compression();
  field->data = tensor.data();
}

}  // namespace

FragmentShape MakeSampleShape(const SampleSizes& sizes) {
  FragmentShape shape;
  shape.steps = sizes.T;
  shape.group_envs = sizes.E;
  shape.env_state_size = sizes.S;
  shape.spec.set_env_id("Sample-v0");
  shape.spec.set_obs_size(sizes.O);
  shape.spec.set_action_size(sizes.D);
  shape.spec.set_discrete(sizes.discrete);
  shape.spec.set_num_agents(sizes.A);
  shape.spec.set_relocatable(true);
  shape.spec.set_global_state_size(sizes.G);
  shape.algorithm_fields = AlgorithmFieldNames();
  for (int64_t i = 0; i < sizes.P; ++i) shape.spec.add_episode_metrics("metric_" + std::to_string(i));
  return shape;
}

SampleFragment MakeSampleFragment(const FragmentShape& shape, float offset, const std::vector<SampleEnd>& ends) {
  FragmentShape plain = shape;
  plain.obs_dtype = v1::DATA_TYPE_FLOAT32;
  const Schema schema = MakeSchema(plain);
  const FragmentCounts counts{
      .truncations = std::count_if(ends.begin(), ends.end(), [](const SampleEnd& end) { return end.truncated; }),
      .episodes = static_cast<int64_t>(ends.size())};
  SampleFragment fragment;
  v1::FragmentHeader& header = fragment.header;
  header.set_sequence(1);
  header.set_ticket_id(1);
  header.set_policy_version(1);
  header.set_group_envs(static_cast<uint32_t>(shape.group_envs));
  header.set_steps(static_cast<uint32_t>(shape.steps));
  header.set_env_steps_collected(static_cast<uint64_t>(shape.steps * shape.group_envs));
  header.set_truncations(static_cast<uint32_t>(counts.truncations));
  header.set_episodes(static_cast<uint32_t>(counts.episodes));
  for (const Field& field : schema.fields) {
    SampleField& made = fragment.fields.emplace_back();
    made.name = field.name;
    made.dtype = field.dtype;
    const int64_t count = schema.WireBytes(field, counts) / ElementSize(field.dtype);
    switch (field.bound) {
      case Bound::kFlag:
        made.data = FlagData(schema, field, count, ends);
        break;
      case Bound::kChoice:
        made.data = ChoiceData(count, shape.spec.action_size());
        break;
      case Bound::kLength:
        made.data = Ramp<int64_t>(count, 10, 1);
        break;
      default:
        made.data = RealData(field, count, offset);
        break;
    }
  }
  return fragment;
}

SampleField* SampleFragment::Find(const std::string& name) {
  for (SampleField& field : fields) {
    if (field.name == name) return &field;
  }
  ADD_FAILURE() << "no field " << name;
  return &fields.emplace_back();
}

Fragment SampleFragment::ToFragment() const {
  Fragment fragment;
  fragment.header = header;
  std::string block;
  for (const SampleField& field : fields) {
    v1::FieldHead& head = *fragment.header.add_fields();
    head.set_name(field.name);
    head.set_dtype(field.dtype);
    head.set_compression(field.compression);
    head.set_bytes(field.claimed_bytes.value_or(field.data.size()));
    block += field.data;
    block.resize(static_cast<size_t>(AlignField(static_cast<int64_t>(block.size()))));
  }
  fragment.block = std::make_shared<const std::string>(std::move(block));
  return fragment;
}

std::string SampleFragment::Bytes() const {
  const Fragment fragment = ToFragment();
  return FrameHead(fragment.header) + *fragment.block;
}

ReceivedFragment::ReceivedFragment(std::string bytes, size_t piece_bytes) : bytes_(std::move(bytes)) {
  if (piece_bytes == 0) piece_bytes = bytes_.size();
  for (size_t at = 0; at < bytes_.size(); at += piece_bytes) {
    pieces_.emplace_back(bytes_.data() + at, std::min(piece_bytes, bytes_.size() - at));
  }
  auto frame = ReadFrame(pieces_);
  EXPECT_TRUE(frame.ok()) << frame.status();
  if (frame.ok()) frame_ = *std::move(frame);
}

absl::Status Admit(const SampleFragment& fragment, const FragmentShape& shape) {
  const ReceivedFragment received(fragment, 7);
  const Schema schema = MakeSchema(shape);
  CheckedFragment checked;
  if (absl::Status s = CheckFragment(received.frame(), schema, &checked); !s.ok()) return s;
  StagedColumns staged(schema, 1);
  return staged.Place(0, 0, checked);
}

FragmentValues::FragmentValues(const std::string& bytes, const FragmentShape& shape) {
  const ReceivedFragment received(bytes, 1000);
  const Schema schema = MakeSchema(shape);
  CheckedFragment checked;
  const absl::Status status = CheckFragment(received.frame(), schema, &checked);
  EXPECT_TRUE(status.ok()) << status;
  if (!status.ok()) return;
  saved_bytes_ = checked.saved_bytes;
  env_state_ = checked.state.env_state.value_or(v1::Tensor());
  for (size_t i = 0; i < schema.fields.size(); ++i) {
    const Field& field = schema.fields[i];
    std::vector<char>& values = values_[field.name];
    values = checked.fields[i].values;
    if (!values.empty()) continue;
    std::string raw(static_cast<size_t>(schema.WireBytes(field, checked.counts)), '\0');
    checked.fields[i].data.Read(raw.data(), raw.size());
    values.assign(raw.begin(), raw.end());
    if (schema.WireType(field) == field.dtype) continue;
    values.resize(2 * raw.size());
    FromBfloat16(reinterpret_cast<const uint16_t*>(raw.data()), raw.size() / 2,
                 reinterpret_cast<float*>(values.data()));
  }
}

v1::Tensor FindField(const Fragment& fragment, const std::string& name) {
  v1::Tensor tensor;
  size_t at = 0;
  for (const v1::FieldHead& head : fragment.header.fields()) {
    if (head.name() == name) {
      tensor.set_name(name);
      tensor.set_dtype(head.dtype());
      tensor.add_shape(static_cast<int64_t>(head.bytes()) / ElementSize(head.dtype()));
      tensor.set_data(fragment.block->substr(at, head.bytes()));
      return tensor;
    }
    at += static_cast<size_t>(AlignField(static_cast<int64_t>(head.bytes())));
  }
  ADD_FAILURE() << "no field " << name;
  return tensor;
}

void Narrow(SampleField* field) {
  Repack(field, [](v1::Tensor* tensor) { Narrow(tensor); });
}

void Compress(SampleField* field) {
  Repack(field, [](v1::Tensor* tensor) { Compress(tensor); });
}

}  // namespace skein
