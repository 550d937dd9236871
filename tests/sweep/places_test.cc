// SPDX-License-Identifier: Apache-2.0
#include "sweep/places.h"

#include <cstdlib>

#include "gmock/gmock.h"

namespace skein {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsSupersetOf;

constexpr uint64_t kGiB = uint64_t{1} << 30;
constexpr NodeResources kHere = {2, 1, 4 * kGiB};

TEST(FindPlaces, ASweepMayHaveNoSlotOfItsOwn) {
  const auto none = FindPlaces("0", "none", {});
  ASSERT_TRUE(none.ok()) << none.status();
  EXPECT_EQ(none->slots, 0u);
  EXPECT_EQ(none->cores, 1u);
  EXPECT_TRUE(absl::IsInvalidArgument(FindPlaces("-1", "none", {}).status()));
}

TEST(PlacesOfWorker, HaveTheCoresThatTheSweepGivesEach) {
  const auto two = PlacesOfWorker("2", 3);
  ASSERT_TRUE(two.ok()) << two.status();
  EXPECT_EQ(two->slots, 2u);
  EXPECT_EQ(two->cores, 3u);
  EXPECT_EQ(PlacesOfWorker("auto", 100000)->slots, 1u);  // At least.
  EXPECT_TRUE(absl::IsInvalidArgument(PlacesOfWorker("0", 1).status()));
}

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

// Of this process, until the end of a test.
class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) { setenv(name, value, 1); }
  ~Variable() { unsetenv(name_); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const char* const name_;
};

TEST(FindPlaces, InASlurmJobStepsAskForTheShare) {
  const Variable job("SLURM_JOB_ID", "7"), tasks("SLURM_NTASKS", "2"), cores("SLURM_CPUS_PER_TASK", "4");
  const auto whole = FindPlaces("auto", "auto", {});
  ASSERT_TRUE(whole.ok());
  EXPECT_EQ(whole->slots, 2u);
  EXPECT_EQ(whole->launcher.back(), "--cpus-per-task=4");
  const auto shared = FindPlaces("auto", "auto", {.cpus = 1.5, .gpus = 0.25, .memory_bytes = kGiB});
  ASSERT_TRUE(shared.ok());
  EXPECT_EQ(shared->cores, 2u);  // 1.5, rounded up,
  EXPECT_EQ(shared->slots, 4u);  // of 2 x 4.
  EXPECT_THAT(shared->launcher, IsSupersetOf({"--cpus-per-task=2", "--mem=1024M", "--gres=gpu:1"}));
}

TEST(FindPlaces, RefusesAShareThatNobodyEnforces) {
  EXPECT_TRUE(FindPlaces("1", "nice", {}).ok());
  EXPECT_TRUE(absl::IsInvalidArgument(FindPlaces("1", "nice", {.cpus = 1}).status()));
}

TEST(FitShares, TakesAsManySlotsAsThereIsRoomFor) {
  Places places;
  places.slots = 2;  // One for each CPU.
  const auto slots = [&](const ResourceShare& share, const NodeResources& left) {
    EXPECT_TRUE(FitShares(share, {}, left, true, &places).ok());
    return places.slots;
  };
  EXPECT_EQ(slots({.cpus = 0.1}, {2, 0, kGiB}), 20u);
  EXPECT_EQ(slots({.cpus = 0.5, .memory_bytes = kGiB / 2}, {2, 0, kGiB}), 2u);
  EXPECT_EQ(slots({.cpus = 0.1, .gpus = 0.4}, {2, 2, kGiB}), 4u);  // Two on each GPU, although five shares are 2.
  EXPECT_EQ(slots({.cpus = 0.1, .gpus = 2}, {2, 5, kGiB}), 2u);
  EXPECT_EQ(slots({.cpus = 3}, {2, 0, kGiB}), 1u);  // For NodeBooking to refuse.
}

TEST(FitShares, RefusesWhatCannotBe) {
  Places places;
  places.slots = 5;
  const absl::Status gpus = FitShares({.gpus = 0.4}, {}, {2, 2, kGiB}, false, &places);
  EXPECT_TRUE(absl::IsInvalidArgument(gpus));
  EXPECT_THAT(std::string(gpus.message()), HasSubstr("5 slots with 0.4 of a GPU each do not fit"));
  EXPECT_THAT(std::string(gpus.message()), HasSubstr("--slots 4 fits"));
  const absl::Status inner = FitShares({.cpus = 0.5}, {.cpus = 0.75}, {2, 0, kGiB}, false, &places);
  EXPECT_TRUE(absl::IsInvalidArgument(inner));
  EXPECT_THAT(std::string(inner.message()), HasSubstr("resources.cpus: each training has 0.5, and "));
}

TEST(SpreadOverGpus, GivesEachSlotItsOwnAsLongAsThereAreEnough) {
  const std::vector<std::string> gpus = {"0", "2", "GPU-7"};
  const auto spread = [&](uint32_t slots, const ResourceShare& share) {
    Places places;
    places.slots = slots;
    SpreadOverGpus(share, gpus, &places);
    return places.gpus;
  };
  EXPECT_THAT(spread(3, {.gpus = 1}), ElementsAre("0", "2", "GPU-7"));
  EXPECT_THAT(spread(5, {.gpus = 0.5}), ElementsAre("0", "2", "GPU-7", "0", "2"));
  EXPECT_THAT(spread(4, {}), ElementsAre("0", "2", "GPU-7", "0"));
  EXPECT_THAT(spread(1, {.gpus = 2}), ElementsAre("0,2"));
}

}  // namespace
}  // namespace skein
