// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "learner/collect/ticket_state.h"
#include "skein/v1/learner_service.pb.h"
#include "trajectory/frame.h"
#include "trajectory/schema.h"

namespace skein {

// What admission found out about a fragment, which stays where it was received: where each field's elements are. Values
// of large fields (rows for steps, but for flags) are not looked at yet: StagedColumns::Place does that while it copies
// them.   ReadFrame -> CheckFragment -> CheckedFragment -> StagedColumns::Place
// Readers point into what was received. Not thread-safe.
struct CheckedFragment {
  struct Located {
    PieceReader data;          // At its first element, decompressed if need be.
    std::vector<char> values;  // Its elements, float32 if they came as bfloat16; only if they were looked at.
    template <typename Value>
    absl::Span<const Value> As() const {
      return {reinterpret_cast<const Value*>(values.data()), values.size() / sizeof(Value)};
    }
  };
  // The elements of a field that was looked at; none if there is no such field.
  template <typename Value>
  absl::Span<const Value> values(absl::string_view field) const {
    const int i = schema->Find(field);
    return i < 0 ? absl::Span<const Value>() : fields[static_cast<size_t>(i)].As<Value>();
  }

  const Schema* schema = nullptr;
  FragmentCounts counts;
  std::vector<Located> fields;  // In the schema's order.
  TicketState state;            // What the group's next ticket begins with.
  uint64_t saved_bytes = 0;     // That bfloat16 and compression made the message smaller by.

  // The bytes of a field that came compressed.
  struct Decompressed {
    std::string bytes;
    Pieces pieces;
  };
  std::vector<std::unique_ptr<Decompressed>> decompressed;
};

// Checks what a batch's frame holds against the run's schema: steps and environments, names and types, the size of
// each field and of the block, before anything is allocated or copied; then counts, flags, which must not contradict
// each other, and that no value of the small fields is beyond its bound; decompresses what is compressed. Pure,
// thread-safe. `schema` and what `frame` was read from must outlive `checked`. InvalidArgument: "fields.<name>: ..."
// with what it got and what it wants. REQUIRES: frame.header.has_batch().
absl::Status CheckFragment(const Frame& frame, const Schema& schema, CheckedFragment* checked);

// That `count` elements at `values`, as CheckedFragment has them, are within the field's bound; `first` is the index
// of the first of them in the field. InvalidArgument: "fields.<name>: element <i> ...".
absl::Status CheckValues(const Field& field, const FragmentShape& shape, const char* values, int64_t count,
                         int64_t first = 0);
// The magnitude that a float32 field's elements have at most.
float BoundOf(const Field& field);
// InvalidArgument of a float32 element that is beyond its field's bound.
absl::Status BeyondError(const Field& field, int64_t element, float value);

// FailedPrecondition: the actor speaks another protocol; both versions are named.
absl::Status CheckProtocol(const v1::Hello& hello);
// FailedPrecondition naming the first field that differs, with both values, and the trajectory field that it belongs
// to.
absl::Status CheckEnvSpec(const v1::EnvSpecInfo& got, const v1::EnvSpecInfo& want);

}  // namespace skein
