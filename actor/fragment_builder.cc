// SPDX-License-Identifier: Apache-2.0
#include "actor/fragment_builder.h"

#include <memory>
#include <utility>

namespace skein {
namespace {

bool Varies(const Field& field) { return field.extent == Extent::kTruncation || field.extent == Extent::kEpisode; }

}  // namespace

void FragmentBuilder::Begin(Schema schema, const v1::Ticket& ticket, uint64_t policy_version) {
  schema_ = std::move(schema);
  header_.Clear();
  header_.set_ticket_id(ticket.id());
  header_.set_policy_version(policy_version);
  header_.set_first_env(ticket.first_env());
  header_.set_group_envs(ticket.group_envs());
  header_.set_steps(static_cast<uint32_t>(schema_.shape.steps));
  offsets_.clear();
  int64_t size = 0;
  for (const Field& field : schema_.fields) {
    if (Varies(field)) break;  // They come last.
    offsets_.push_back(static_cast<size_t>(size));
    size += AlignField(schema_.WireBytes(field, {}));
  }
  block_.clear();
  block_.reserve(static_cast<size_t>(size + size / 16));  // With room for a few episodes.
  block_.resize(static_cast<size_t>(size));
  varying_.assign(schema_.fields.size(), {});
}

Fragment FragmentBuilder::Finish() {
  const FragmentCounts counts{.truncations = header_.truncations(), .episodes = header_.episodes()};
  for (size_t i = 0; i < schema_.fields.size(); ++i) {
    const Field& field = schema_.fields[i];
    v1::FieldHead& head = *header_.add_fields();
    head.set_name(field.name);
    head.set_dtype(field.dtype);
    head.set_bytes(static_cast<uint64_t>(schema_.WireBytes(field, counts)));
    if (!Varies(field)) continue;
    block_ += varying_[i];
    block_.resize(static_cast<size_t>(AlignField(static_cast<int64_t>(block_.size()))));
  }
  Fragment fragment;
  fragment.header = std::exchange(header_, {});
  fragment.block = std::make_shared<const std::string>(std::exchange(block_, {}));
  return fragment;
}

}  // namespace skein
