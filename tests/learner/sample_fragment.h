// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "learner/collect/admission.h"
#include "trajectory/frame.h"
#include "trajectory/schema.h"

namespace skein {

// T steps of E environments with A agents each; observations of O floats, actions of D reals or out of D choices. The
// algorithm reads all of AlgorithmFieldNames.
struct SampleSizes {
  int64_t T = 2, E = 2, A = 1, O = 3, D = 2;
  bool discrete = false;
  int64_t S = 4;
  int64_t G = 0;  // Floats of the global state.
  int64_t P = 0;  // Episode metrics.
};
FragmentShape MakeSampleShape(const SampleSizes& sizes);

// Environment e of the fragment ended in step t.
struct SampleEnd {
  int64_t t = 0, e = 0;
  bool truncated = false;
};

// One field of a fragment, which a test may change into what is refused.
struct SampleField {
  std::string name;
  v1::DataType dtype = v1::DATA_TYPE_UNSPECIFIED;
  v1::Compression compression = v1::COMPRESSION_UNSPECIFIED;
  std::string data;
  std::optional<uint64_t> claimed_bytes;  // What the header says, if not the size of `data`.
};

// A fragment that can be changed field by field. header.fields is made when it is sent.
struct SampleFragment {
  v1::FragmentHeader header;
  std::vector<SampleField> fields;

  SampleField* Find(const std::string& name);  // REQUIRES: there is one.
  Fragment ToFragment() const;
  std::string Bytes() const;  // Its frame.
};

// A fragment that admission accepts, of ticket 1, policy 1 and sequence 1. Element i of each real field is offset + i,
// except log_prob (offset - i) and reward (-offset - i); choices are i % D; `ends` is ordered by (t, e). Of several
// agents all are alive.
SampleFragment MakeSampleFragment(const FragmentShape& shape, float offset = 0,
                                  const std::vector<SampleEnd>& ends = {});

// A fragment as the learner receives it: written to bytes, cut into pieces and read from them. Not movable.
class ReceivedFragment {
 public:
  // Pieces of `piece_bytes` each; 0 = one piece.
  explicit ReceivedFragment(const SampleFragment& fragment, size_t piece_bytes = 0)
      : ReceivedFragment(fragment.Bytes(), piece_bytes) {}
  ReceivedFragment(std::string bytes, size_t piece_bytes);
  ReceivedFragment(const ReceivedFragment&) = delete;
  const Frame& frame() const { return frame_; }

 private:
  std::string bytes_;
  Pieces pieces_;
  Frame frame_;
};

// What admission and then staging say of a fragment that arrives in pieces of 7 bytes.
absl::Status Admit(const SampleFragment& fragment, const FragmentShape& shape);

// All elements of a fragment after admission, widened to their fields' types. Fails the test if admission refuses it.
class FragmentValues {
 public:
  FragmentValues(const std::string& bytes, const FragmentShape& shape);
  FragmentValues(const SampleFragment& fragment, const FragmentShape& shape)
      : FragmentValues(fragment.Bytes(), shape) {}
  FragmentValues(const Fragment& fragment, const FragmentShape& shape)
      : FragmentValues(FrameHead(fragment.header) + *fragment.block, shape) {}

  template <typename Value>
  absl::Span<const Value> values(const std::string& field) const {
    const auto found = values_.find(field);
    if (found == values_.end()) return {};
    return {reinterpret_cast<const Value*>(found->second.data()), found->second.size() / sizeof(Value)};
  }
  absl::Span<const float> floats(const std::string& field) const { return values<float>(field); }
  absl::Span<const uint8_t> flags(const std::string& field) const { return values<uint8_t>(field); }
  absl::Span<const int64_t> ints(const std::string& field) const { return values<int64_t>(field); }
  const std::map<std::string, std::vector<char>>& all() const { return values_; }
  const v1::Tensor& env_state() const { return env_state_; }  // For the next ticket.
  uint64_t saved_bytes() const { return saved_bytes_; }

 private:
  std::map<std::string, std::vector<char>> values_;
  v1::Tensor env_state_;
  uint64_t saved_bytes_ = 0;
};

// A field of a fragment as it travels, with its dimensions in one. Fails the test if there is none.
v1::Tensor FindField(const Fragment& fragment, const std::string& name);

// As their namesakes in base/number/tensor_packing.h.
void Narrow(SampleField* field);
void Compress(SampleField* field);

// Replaces element `index` of a field.
template <typename Value>
void SetElement(SampleField* field, size_t index, Value value) {
  field->data.replace(index * sizeof(Value), sizeof(Value), reinterpret_cast<const char*>(&value), sizeof(Value));
}

}  // namespace skein
