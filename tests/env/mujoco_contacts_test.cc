// SPDX-License-Identifier: Apache-2.0
// Listed contacts against searched ones, to the bit.
//   SKEIN_CONTACT_STATES=300000 build/release/tests/env_tests --gtest_filter='*ContactLists*'    # of each task
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <vector>

#include "base/number/philox.h"
#include "env/mujoco/contacts.h"
#include "env/mujoco/library.h"
#include "env/mujoco/model.h"
#include "tests/env/mujoco_warnings.h"

namespace skein {
namespace {

class Simulation {
 public:
  explicit Simulation(const SharedModel& model) : model_(model), data_(mj_makeData(model.get())) {}

  // Thrown anywhere, upside down or into the ground, with joints beyond their limits by up to `reach` and velocities of
  // up to 10.
  void Throw(RandomStream random, double reach) {
    const mjModel& m = *model_;
    mj_resetData(&m, data_.get());
    for (int i = 0; i < m.nq; ++i) data_->qpos[i] += random.Uniform(-reach, reach);
    for (int i = 0; i < m.nv; ++i) data_->qvel[i] = random.Uniform(-10, 10);
    if (m.njnt > 0 && m.jnt_type[0] == mjJNT_FREE) {
      for (int i = 3; i < 7; ++i) data_->qpos[i] = random.Normal();
      mju_normalize4(data_->qpos + 3);
    }
    mj_forward(&m, data_.get());
  }
  void Step(const std::vector<double>& control) {
    std::copy(control.begin(), control.end(), data_->ctrl);
    mj_step(model_.get(), data_.get());
  }
  int contacts() const { return data_->ncon; }

  // The state and all that is known of each contact, in order.
  void Describe(std::vector<double>* all) const {
    const mjModel& m = *model_;
    all->assign(data_->qpos, data_->qpos + m.nq);
    const auto add = [all](const mjtNum* values, int size) { all->insert(all->end(), values, values + size); };
    add(data_->qvel, static_cast<int>(m.nv));
    add(data_->qacc_warmstart, static_cast<int>(m.nv));
    for (int i = 0; i < data_->ncon; ++i) {
      const mjContact& contact = data_->contact[i];
      all->push_back(contact.dim);
      add(&contact.dist, 1);
      add(contact.pos, 3);
      add(contact.frame, 9);
      add(&contact.includemargin, 1);
      add(contact.friction, 5);
      add(contact.solref, mjNREF);
      add(contact.solimp, mjNIMP);
    }
  }

 private:
  const SharedModel model_;
  const OwnedData data_;
};

struct Expected {
  const char* id;
  int pairs;    // -1: searched.
  int at_once;  // Contacts of at least one state.
};

class ContactLists : public testing::TestWithParam<Expected> {};

TEST_P(ContactLists, MoveAsThePublishedModelToTheBit) {
  const auto task = MakeMujocoTask(GetParam().id);
  ASSERT_TRUE(task.ok()) << task.status();
  const SharedModel stepped = *ModelOf(**task, ModelForm::kStepped),
                    published = *ModelOf(**task, ModelForm::kPublished);
  ASSERT_EQ(stepped == published ? -1 : stepped->npair, GetParam().pairs);
  const char* const wanted = std::getenv("SKEIN_CONTACT_STATES");
  const int states = wanted == nullptr ? 3000 : std::atoi(wanted);
  ASSERT_GT(states, 0) << "SKEIN_CONTACT_STATES";
  Simulation listed(stepped), searched(published);
  const int64_t warned = MujocoWarningCount();
  std::vector<double> control(stepped->nu), one, other;
  int64_t contacts = 0;
  int most = 0;
  for (int state = 0; state < states; ++state) {
    RandomStream random(1, RandomPurpose::kAction, 0, state);
    if (state % 100 == 0) {
      constexpr double kReaches[] = {0.1, 0.5, 1, 3};
      const double reach = kReaches[state / 100 % 4];
      listed.Throw(random, reach);
      searched.Throw(random, reach);
    }
    if (state % 5 == 0) {
      for (double& u : control) u = random.Uniform(-1, 1);
    }
    listed.Step(control);
    searched.Step(control);
    listed.Describe(&one);
    searched.Describe(&other);
    ASSERT_EQ(one, other) << "state " << state;
    contacts += listed.contacts();
    most = std::max(most, listed.contacts());
  }
  // Simulations may come apart here, as long as both do.
  ExpectMujocoWarnings(MujocoWarningCount() - warned);
  EXPECT_GE(most, GetParam().at_once);
  std::printf("%s: %d states alike, %lld contacts, up to %d at once, %d pairs listed\n", GetParam().id, states,
              static_cast<long long>(contacts), most, GetParam().pairs);
}

INSTANTIATE_TEST_SUITE_P(Tasks, ContactLists,
                         testing::Values(Expected{"Ant-v5", 13, 5}, Expected{"HalfCheetah-v5", 8, 5},
                                         Expected{"Hopper-v5", 7, 3}, Expected{"Humanoid-v5", -1, 10},
                                         Expected{"HumanoidStandup-v5", -1, 10},
                                         Expected{"InvertedDoublePendulum-v5", 0, 0},
                                         Expected{"InvertedPendulum-v5", 0, 0}, Expected{"Pusher-v5", -1, 3},
                                         Expected{"QuadrupedStand-v0", 5, 3}, Expected{"Reacher-v5", 0, 0},
                                         Expected{"Swimmer-v5", 0, 0}, Expected{"Walker2d-v5", 7, 3}),
                         [](const auto& info) {
                           const std::string id = info.param.id;
                           return id.substr(0, id.find('-'));
                         });

// A ball over a plane, with `more` attributes; what may touch, listed, or "searched".
std::string ContactsOfABall(const std::string& more, const std::string& elsewhere = "") {
  const std::string mjcf =
      R"(<mujoco><worldbody><geom name="ground" type="plane" size="1 1 1"/><body name="ball"><joint/>)"
      R"(<geom name="ball" size="0.1" friction="0.5 0.2 0.3" )" +
      more + "/></body></worldbody>" + elsewhere + "</mujoco>";
  const auto model = CompileModel("ball", mjcf, 1);
  EXPECT_TRUE(model.ok()) << model.status();
  const std::optional<std::string> listed = ListContacts(mjcf, **model);
  if (!listed) return "searched";
  const auto read = CompileModel("ball", *listed, 1);
  if (!read.ok() || !ListsAllContacts(**read, **model)) return "searched";
  const size_t begin = listed->find("<contact>");
  return begin == std::string::npos ? "" : listed->substr(begin, listed->rfind("</contact>") - begin);
}

TEST(ListContacts, MixesWhatMujocoWouldMix) {
  // Friction: the larger of each, of the plane's 1, 0.005 and 0.0001; sliding and rolling have two directions.
  EXPECT_THAT(ContactsOfABall(""),
              testing::AllOf(testing::HasSubstr(R"(geom1="ground" geom2="ball" condim="3" friction="1 1 0.2)"),
                             testing::HasSubstr(R"(solref="0.02)")));
}

TEST(ListContacts, ListsNothingWhereNothingMayTouch) {
  EXPECT_EQ(ContactsOfABall(R"(contype="0" conaffinity="0")"), "");
}

TEST(ListContacts, LeavesModelsAloneThatAListWouldChange) {
  EXPECT_EQ(ContactsOfABall(R"(gap="0.01")"), "searched");
  EXPECT_EQ(ContactsOfABall(R"(solref="0.03 1")"), "searched");  // MuJoCo would mix it with the plane's.
  EXPECT_EQ(ContactsOfABall(R"(priority="1")"), "searched");
  EXPECT_EQ(ContactsOfABall("", R"(<contact><exclude body1="world" body2="ball"/></contact>)"), "searched");
  EXPECT_EQ(ContactsOfABall("", R"(<contact><pair geom1="ground" geom2="ball"/></contact>)"), "searched");
  EXPECT_EQ(ContactsOfABall("", R"(<option><flag filterparent="disable"/></option>)"), "searched");
  EXPECT_EQ(ContactsOfABall("", R"(<option><flag override="enable"/></option>)"), "searched");
  // A second geom of the ball's body, and a margin: MuJoCo's search then misses contacts.
  const std::string wheel = R"(margin="0.01"/><geom name="wheel" size="0.1" pos="1 0 0")";
  EXPECT_EQ(ContactsOfABall(wheel), "searched");
  EXPECT_THAT(ContactsOfABall(R"(margin="0.01")"), testing::HasSubstr(R"(margin="0.01)"));
  // A name that would have to be written otherwise.
  EXPECT_EQ(ContactsOfABall("", R"(<worldbody><geom name="a&amp;b" type="plane" size="1 1 1"/></worldbody>)"),
            "searched");
}

TEST(ListContacts, LeavesModelsAloneThatMujocoWouldReadOtherwise) {
  EXPECT_EQ(ContactsOfABall("", R"(<default>< pair gap="1"/></default>)"), "searched");
  if (mjVERSION_HEADER >= 237) {
    EXPECT_EQ(ContactsOfABall("", R"(<default><pair solreffriction="0.5 1"/></default>)"), "searched");
  }
  // The list says these itself.
  EXPECT_NE(ContactsOfABall("", R"(<default><pair margin="0.3" solref="0.5 1" friction="3"/></default>)"), "searched");
  // MuJoCo reads the first root element alone.
  EXPECT_EQ(ContactsOfABall("", "</mujoco><mujoco>"), "searched");
}

TEST(ListsAllContacts, IsFalseOfAPairThatDiffers) {
  const std::string ball =
      R"(<mujoco><worldbody><geom name="ground" type="plane" size="1 1 1"/><body name="ball"><joint/>)"
      R"(<geom name="ball" size="0.1"/></body></worldbody>)";
  const SharedModel searched = *CompileModel("ball", ball + "</mujoco>", 1);
  const auto lists_all = [&](const std::string& pairs) {
    return ListsAllContacts(**CompileModel("ball", ball + "<contact>" + pairs + "</contact></mujoco>", 1), *searched);
  };
  const std::string pair = R"(<pair geom1="ground" geom2="ball" )";
  EXPECT_TRUE(lists_all(pair + "/>"));  // MuJoCo mixes what it does not say.
  EXPECT_FALSE(lists_all(""));
  EXPECT_FALSE(lists_all(pair + R"(name="one"/>)" + pair + R"(name="two"/>)"));
  for (const char* const other : {R"(condim="4")", R"(friction="2")", R"(friction="1 1 0.005 0.0001 2")",
                                  R"(margin="0.1")", R"(gap="0.1")", R"(solref="0.03 1")", R"(solimp="0.8")"}) {
    EXPECT_FALSE(lists_all(pair + other + "/>")) << other;
  }
}

}  // namespace
}  // namespace skein
