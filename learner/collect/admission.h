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

// The result of admission: where each field's elements are in the received message. Values of large fields (step rows
// except flags) are not checked yet: StagedColumns::Place checks them while it copies.
//   ReadFrame -> CheckFragment -> CheckedFragment -> StagedColumns::Place
// Readers point into the received message, which must outlive this. Not thread-safe.
struct CheckedFragment {
  struct Located {
    PieceReader data;          // At the first element; of the decompressed bytes if the field came compressed.
    std::vector<char> values;  // The elements, bfloat16 converted to float32; empty if admission did not check them.
    template <typename Value>
    absl::Span<const Value> As() const {
      return {reinterpret_cast<const Value*>(values.data()), values.size() / sizeof(Value)};
    }
  };
  // The elements of a field whose values were checked; none if there is no such field.
  template <typename Value>
  absl::Span<const Value> values(absl::string_view field) const {
    const int i = schema->Find(field);
    return i < 0 ? absl::Span<const Value>() : fields[static_cast<size_t>(i)].As<Value>();
  }

  const Schema* schema = nullptr;
  FragmentCounts counts;
  std::vector<Located> fields;  // In the schema's order.
  TicketState state;            // The state that the group's next ticket begins with.
  uint64_t saved_bytes = 0;     // By which bfloat16 and compression shortened the message.

  // The bytes of a field that came compressed.
  struct Decompressed {
    std::string bytes;
    Pieces pieces;
  };
  std::vector<std::unique_ptr<Decompressed>> decompressed;
};

// Checks a fragment's frame against the run's schema. First, before anything is allocated or copied: steps,
// environments, field names, types and sizes, block size. Then: counts, flags (they must not contradict each other) and
// the bounds of the small fields' values. Decompresses compressed fields. Pure, thread-safe. `schema` and the bytes
// that `frame` was read from must outlive `checked`. InvalidArgument: "fields.<name>: ..." with the value got and the
// value wanted. REQUIRES: frame.header.has_fragment().
absl::Status CheckFragment(const Frame& frame, const Schema& schema, CheckedFragment* checked);

// Checks that `count` elements at `values`, in CheckedFragment's types, are within the field's bound; `first` is the
// index of the first of them in the field. InvalidArgument: "fields.<name>: element <i> ...".
absl::Status CheckValues(const Field& field, const FragmentShape& shape, const char* values, int64_t count,
                         int64_t first = 0);
// The largest magnitude allowed for an element of a float32 field.
float BoundOf(const Field& field);
// The InvalidArgument status for a float32 element beyond its field's bound.
absl::Status BeyondError(const Field& field, int64_t element, float value);

// FailedPrecondition: the actor uses another protocol version; the message names both.
absl::Status CheckProtocol(const v1::Hello& hello);
// FailedPrecondition: the specs differ; the message names the first differing field with both values, and the
// trajectory field that it belongs to.
absl::Status CheckEnvSpec(const v1::EnvSpecInfo& got, const v1::EnvSpecInfo& want);

}  // namespace skein
