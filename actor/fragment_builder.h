// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "skein/v1/trajectory.pb.h"
#include "trajectory/frame.h"
#include "trajectory/schema.h"

namespace skein {

// Makes one fragment, header and block, of values that are written by field name.
//   schema, ticket -> Begin -> values, Append -> Finish -> Fragment
// The schema alone says where a field begins in the block. Not thread-safe: one per runner.
class FragmentBuilder {
 public:
  // Starts a fragment. Pointers that values() returns are valid until Finish.
  void Begin(Schema schema, const v1::Ticket& ticket, uint64_t policy_version);

  // The elements of a field of fixed extent, which the caller writes; null: the schema has no such field.
  // REQUIRES: Value is the field's type.
  template <typename Value>
  Value* values(absl::string_view field) {
    const int i = schema_.Find(field);
    return i < 0 ? nullptr : reinterpret_cast<Value*>(block_.data() + offsets_[static_cast<size_t>(i)]);
  }
  // Adds row `row` of `rows` to a field of varying extent, if the schema has it. REQUIRES: as values().
  template <typename Value>
  void Append(absl::string_view field, const Value* rows, int64_t row) {
    const int i = schema_.Find(field);
    if (i < 0) return;
    const int64_t elements = schema_.RowElements(schema_.fields[static_cast<size_t>(i)]);
    varying_[static_cast<size_t>(i)].append(reinterpret_cast<const char*>(rows + row * elements),
                                            static_cast<size_t>(elements) * sizeof(Value));
  }
  // Everything in it but `fields`, which Finish writes. Its truncations and episodes, which the caller counts, are the
  // rows of the fields of varying extent.
  v1::FragmentHeader& header() { return header_; }

  Fragment Finish();

  // The schema of the fragment that was begun last.
  const Schema& schema() const { return schema_; }

 private:
  Schema schema_;
  v1::FragmentHeader header_;
  std::string block_;                 // Fields of fixed extent.
  std::vector<size_t> offsets_;       // Of those fields in the block.
  std::vector<std::string> varying_;  // Of each field, its rows; empty for those of fixed extent.
};

}  // namespace skein
