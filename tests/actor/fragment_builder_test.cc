// SPDX-License-Identifier: Apache-2.0
#include "actor/fragment_builder.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace skein {
namespace {

using testing::ElementsAre;

v1::Ticket MakeTicket() {
  v1::Ticket ticket;
  ticket.set_id(42);
  ticket.set_first_env(6);
  ticket.set_group_envs(3);
  return ticket;
}

// The elements of field `index` of a fragment, whose header says where it is.
template <typename Value>
std::vector<Value> ElementsOf(const Fragment& fragment, int index) {
  int64_t begin = 0;
  for (int i = 0; i < index; ++i) begin += AlignField(static_cast<int64_t>(fragment.header.fields(i).bytes()));
  std::vector<Value> elements(fragment.header.fields(index).bytes() / sizeof(Value));
  std::memcpy(elements.data(), fragment.block->data() + begin, elements.size() * sizeof(Value));
  return elements;
}

Schema OfSteps() {
  FragmentShape shape;
  shape.steps = 1;
  shape.group_envs = 3;
  shape.spec.set_num_agents(1);
  return {.shape = shape,
          .fields = {{"flag", v1::DATA_TYPE_UINT8, Extent::kStep, false, 0, Bound::kFlag, false},
                     {"number", v1::DATA_TYPE_FLOAT32, Extent::kStep, false, 0, Bound::kNumber, false},
                     {"episode", v1::DATA_TYPE_FLOAT32, Extent::kEpisode, false, 0, Bound::kEpisode, false},
                     {"length", v1::DATA_TYPE_INT64, Extent::kEpisode, false, 0, Bound::kLength, false}}};
}

// 3 bytes and 5 of padding; 3 x 4 and 4; 1 x 4 and 4; 1 x 8.
TEST(FragmentBuilder, EachFieldBeginsAtAMultipleOfEightBytes) {
  FragmentBuilder builder;
  builder.Begin(OfSteps(), MakeTicket(), 9);
  std::fill_n(builder.values<uint8_t>("flag"), 3, uint8_t{1});
  std::fill_n(builder.values<float>("number"), 3, 2.5f);
  builder.header().set_episodes(1);
  const float returns[] = {3, 4, 5};
  const int64_t lengths[] = {6, 7, 8};
  builder.Append("episode", returns, 2);
  builder.Append("length", lengths, 2);
  const Fragment fragment = builder.Finish();
  EXPECT_EQ(fragment.header.ticket_id(), 42u);
  EXPECT_EQ(fragment.header.policy_version(), 9u);
  EXPECT_EQ(fragment.header.first_env(), 6u);
  EXPECT_EQ(fragment.header.group_envs(), 3u);
  EXPECT_EQ(fragment.header.steps(), 1u);
  EXPECT_EQ(fragment.block->size(), 40u);
  EXPECT_THAT(ElementsOf<uint8_t>(fragment, 0), ElementsAre(1, 1, 1));
  EXPECT_THAT(ElementsOf<float>(fragment, 1), ElementsAre(2.5, 2.5, 2.5));
  EXPECT_THAT(ElementsOf<float>(fragment, 2), ElementsAre(5));
  EXPECT_THAT(ElementsOf<int64_t>(fragment, 3), ElementsAre(8));
}

TEST(FragmentBuilder, AValueIsThatOfItsNameInWhateverOrderTheSchemaHasThem) {
  Schema schema = OfSteps();
  std::swap(schema.fields[0], schema.fields[1]);
  FragmentBuilder builder;
  builder.Begin(OfSteps(), MakeTicket(), 9);
  builder.Begin(schema, MakeTicket(), 9);
  std::fill_n(builder.values<uint8_t>("flag"), 3, uint8_t{1});
  std::fill_n(builder.values<float>("number"), 3, 2.5f);
  const Fragment fragment = builder.Finish();
  EXPECT_EQ(fragment.header.fields(0).name(), "number");
  EXPECT_THAT(ElementsOf<float>(fragment, 0), ElementsAre(2.5, 2.5, 2.5));
  EXPECT_THAT(ElementsOf<uint8_t>(fragment, 1), ElementsAre(1, 1, 1));
}

TEST(FragmentBuilder, LeavesOutWhatTheSchemaDoesNotHave) {
  FragmentBuilder builder;
  builder.Begin(OfSteps(), MakeTicket(), 9);
  EXPECT_EQ(builder.values<float>("no_such_field"), nullptr);
  builder.Append<float>("no_such_field", nullptr, 3);
  EXPECT_EQ(builder.Finish().block->size(), 24u);
}

}  // namespace
}  // namespace skein
