// SPDX-License-Identifier: Apache-2.0
#include "sweep/places.h"

#include "gmock/gmock.h"

namespace skein {
namespace {

using testing::HasSubstr;

constexpr uint64_t kGiB = uint64_t{1} << 30;
constexpr NodeResources kHere = {2, 1, 4 * kGiB};

TEST(FitSlots, TakesWhatTheMachineHas) {
  Places places;
  places.slots = 4;
  EXPECT_TRUE(FitSlots({0.5, 0.25, kGiB}, kHere, false, &places).ok());
  EXPECT_EQ(places.slots, 4u);
  EXPECT_TRUE(FitSlots({0, 0, 0}, kHere, false, &places).ok());  // Nothing is limited.
  places.slots = 20;
  EXPECT_TRUE(FitSlots({0.1, 0, 0}, kHere, false, &places).ok());
}

TEST(FitSlots, RefusesMoreBeforeAnythingStarts) {
  Places places;
  places.slots = 2;
  const absl::Status refused = FitSlots({1.5, 0, 0}, kHere, false, &places);
  EXPECT_TRUE(absl::IsInvalidArgument(refused));
  EXPECT_THAT(std::string(refused.message()),
              HasSubstr("the trainings of 2 slots ask for 3 of CPUs, and 2 is here; --slots 1 fits"));
  EXPECT_EQ(places.slots, 2u);
}

TEST(FitSlots, TakesFewerWhereThatIsLeftOpen) {
  Places places;
  places.slots = 4;
  EXPECT_TRUE(FitSlots({0.5, 0, 2 * kGiB}, kHere, true, &places).ok());
  EXPECT_EQ(places.slots, 2u);
  // One alone asks for too much.
  const absl::Status refused = FitSlots({0, 2, 0}, kHere, true, &places);
  EXPECT_TRUE(absl::IsInvalidArgument(refused));
  EXPECT_THAT(std::string(refused.message()), HasSubstr("ask for 2 of GPUs each, and 1 is here; ask for less"));
}

}  // namespace
}  // namespace skein
