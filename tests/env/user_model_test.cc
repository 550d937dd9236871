// SPDX-License-Identifier: Apache-2.0
// A model of the user's own in place of a MuJoCo task's: what is taken, and what is refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "env/mujoco/library.h"
#include "env/mujoco/mujoco_env.h"
#include "env/registry.h"
#include "tests/env/ant_reward.h"
#include "tests/env/mujoco_warnings.h"

namespace skein {
namespace {

std::vector<double> State(const Env& env) {
  std::vector<double> state(env.spec().state_size);
  env.SaveState(state.data());
  return state;
}

class UserModel : public testing::Test {
 protected:
  UserModel() : folder_(std::filesystem::path(testing::TempDir()) / "user_model") {
    std::filesystem::create_directories(folder_ / "parts");
  }
  ~UserModel() override { std::filesystem::remove_all(folder_); }

  std::string Write(const std::string& name, const std::string& text) {
    std::ofstream(folder_ / name) << text;
    return (folder_ / name).string();
  }
  static absl::StatusOr<std::unique_ptr<Env>> Hopper(const std::string& path) {
    EnvOptions options;
    options.mujoco.arguments["xml_file"] = path;
    return MakeEnv("Hopper-v5", options);
  }
  static std::string Why(const std::string& path, absl::StatusCode code = absl::StatusCode::kDataLoss) {
    const absl::Status status = Hopper(path).status();
    EXPECT_EQ(status.code(), code) << status;
    EXPECT_THAT(std::string(status.message()), testing::Not(testing::HasSubstr("\n")));
    return std::string(status.message());
  }
  static std::string Text(const std::string& path) {
    std::ifstream file(path);
    EXPECT_TRUE(file.good()) << path;
    return std::string(std::istreambuf_iterator<char>(file), {});
  }
  static std::string OwnModel() { return Text("env/mujoco/tasks/hopper.xml"); }
  static std::string Gymnasiums(const std::string& file) { return Text("tests/env/gymnasium/" + file); }

  const std::filesystem::path folder_;
};

TEST_F(UserModel, TakesThePlaceOfTheTasksOwn) {
  std::string text = OwnModel();
  const size_t gravity = text.find("timestep=\"0.002\"");
  ASSERT_NE(gravity, std::string::npos);
  text.insert(gravity, "gravity=\"0 0 -1\" ");
  const size_t bounds = text.find("ctrlrange=\"-1 1\"");
  text.replace(bounds, 16, "ctrlrange=\"-2 2\"");
  const auto moon = Hopper(Write("moon.xml", text));
  ASSERT_TRUE(moon.ok()) << moon.status();
  EXPECT_EQ((*moon)->spec().action_high[0], 2);
  const std::unique_ptr<Env> earth = MakeEnv("Hopper-v5").value();
  RandomStream one(1, RandomPurpose::kEnvReset, 0, 0), same(1, RandomPurpose::kEnvReset, 0, 0);
  (*moon)->Reset(one);
  earth->Reset(same);
  EXPECT_EQ(State(**moon)[2], State(*earth)[2]);  // z
  const float rest[3] = {};
  float reward = 0;
  for (int t = 0; t < 20; ++t) {
    (*moon)->Step(rest, &reward);
    earth->Step(rest, &reward);
  }
  EXPECT_NE(State(**moon)[2], State(*earth)[2]);
}

TEST_F(UserModel, MayIncludeFilesOfItsFolder) {
  const std::string text = OwnModel();
  const size_t begin = text.find("<actuator>"), end = text.find("</mujoco>");
  Write("parts/motors.xml", "<mujoco>" + text.substr(begin, end - begin) + "</mujoco>");
  const std::string whole = text.substr(0, begin) + "<include file=\"parts/motors.xml\"/>" + text.substr(end);
  const auto env = Hopper(Write("whole.xml", whole));
  EXPECT_TRUE(env.ok()) << env.status();
}

// As MuJoCo itself, which looks at no more of an included file.
TEST_F(UserModel, IncludesTheFirstRootElementAlone) {
  const std::string text = OwnModel();
  const size_t begin = text.find("<actuator>"), end = text.find("</mujoco>");
  Write("parts/motors.xml",
        "<motors>" + text.substr(begin, end - begin) + "</motors>\n<mujoco><asset><mesh/></asset></mujoco>");
  const std::string whole = text.substr(0, begin) + "<include file=\"parts/motors.xml\"/>" + text.substr(end);
  const auto env = Hopper(Write("whole.xml", whole));
  EXPECT_TRUE(env.ok()) << env.status();
  for (const char* const part : {"<mujoco/>", "</mujoco>", "<mujoco><worldbody></mujoco>", "<other></another>"}) {
    Write("part.xml", part);
    EXPECT_THAT(Why(Write("whole.xml", "<mujoco><include file=\"part.xml\"/></mujoco>")),
                testing::HasSubstr("part.xml: has no root element with something to include"))
        << part;
  }
}

// Gymnasium's model files with a word of them changed, in tasks that they are not for or that look for more.
TEST_F(UserModel, IsRefusedIfItHasOtherJointsThanTheTask) {
  const auto why = [&](const std::string& env_id, const std::string& file, const std::string& word,
                       const std::string& other) {
    std::string text = Gymnasiums(file);
    for (size_t at = text.find(word); !word.empty() && at != std::string::npos; at = text.find(word, at)) {
      text.replace(at, word.size(), other);
      at += other.size();
    }
    EnvOptions options;
    options.mujoco.arguments["xml_file"] = Write("changed.xml", text);
    const absl::Status status = FindEnvSpec(env_id, options).status();  // Already when a run is planned.
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << status;
    EXPECT_THAT(std::string(status.message()), testing::HasSubstr("changed.xml: "));
    return std::string(status.message());
  };
  using testing::HasSubstr;
  const int64_t warned = MujocoWarningCount();
  EXPECT_THAT(why("Walker2d-v5", "hopper.xml", "", ""), HasSubstr("has 6 positions"));
  EXPECT_THAT(why("HalfCheetah-v5", "walker2d_v5.xml", "", ""), HasSubstr("has another direction"));
  EXPECT_THAT(why("Walker2d-v5", "half_cheetah.xml", "", ""), HasSubstr("has another direction"));
  EXPECT_THAT(why("Reacher-v5", "reacher.xml", "name=\"fingertip\"", "name=\"finger\""),
              HasSubstr("has no body 'fingertip'"));
  EXPECT_THAT(why("Pusher-v5", "pusher_v5.xml", "name=\"goal\"", "name=\"hole\""), HasSubstr("has no body 'goal'"));
  EXPECT_THAT(why("Hopper-v5", "hopper.xml", "joint=\"foot_joint\"", "joint=\"leg_joint\""),
              HasSubstr("does not drive joint 5"));
  EXPECT_THAT(why("InvertedPendulum-v5", "inverted_pendulum.xml", "type=\"slide\"", "type=\"hinge\""),
              HasSubstr("is of type hinge"));
  // Newer releases warn of the half cheetah's settotalmass.
  if (absl::StrContains(LastMujocoWarning(), "settotalmass")) ExpectMujocoWarnings(MujocoWarningCount() - warned);
}

TEST_F(UserModel, MayNameABodyByANumberWhichMainBodyDoesNotMean) {
  std::string text = Gymnasiums("ant.xml");
  const std::string name = "name=\"aux_1\"";
  ASSERT_NE(text.find(name), std::string::npos);
  text.replace(text.find(name), name.size(), "name=\"1\"");
  EnvOptions own;
  own.mujoco.arguments["xml_file"] = Write("ant.xml", text);
  const auto reward = [&](const std::string& body) { return AntReward(own, body); };
  EXPECT_EQ(reward("1"), reward("torso"));
  EXPECT_NE(reward("1"), reward("3"));  // The body of that name.
  for (const char* const none : {"14", "99999999999", "-1", " 1", ""}) {
    EnvOptions options = own;
    options.mujoco.arguments["main_body"] = std::string(none);
    EXPECT_EQ(MakeEnv("Ant-v5", options).status().code(), absl::StatusCode::kDataLoss) << none;
    options.mujoco.arguments.erase("xml_file");
    const absl::Status status = FindEnvSpec("Ant-v5", options).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << none;
    EXPECT_THAT(std::string(status.message()), testing::HasSubstr("env.mujoco.main_body: ")) << none;
  }
}

TEST_F(UserModel, IsRefusedOnceItHasChanged) {
  const std::string part = Write("parts/part.xml", "<mujoco><asset/></mujoco>");
  const std::string text = OwnModel(), root = text.substr(0, text.rfind("</mujoco>"));
  EnvOptions options;
  options.mujoco.arguments["xml_file"] = Write("mine.xml", root + "<include file=\"parts/part.xml\"/></mujoco>");
  const auto digest = FindModelDigest("Hopper-v5", options);
  ASSERT_TRUE(digest.ok()) << digest.status();
  EXPECT_EQ(digest->size(), 16);
  options.mujoco.arguments["xml_digest"] = *digest;
  EXPECT_TRUE(FindEnvSpec("Hopper-v5", options).ok());

  Write("parts/part.xml", "<mujoco><asset><material name=\"a\"/></asset></mujoco>");
  const absl::Status status = MakeEnv("Hopper-v5", options).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(status.message()), testing::AllOf(testing::HasSubstr("mine.xml: has changed"),
                                                            testing::HasSubstr("was planned " + *digest)));
  options.mujoco.arguments["xml_digest"] = std::string("any");
  EXPECT_TRUE(MakeEnv("Hopper-v5", options).ok());
  EXPECT_NE(FindModelDigest("Hopper-v5", options).value(), *digest);

  EnvOptions own;
  EXPECT_EQ(FindModelDigest("Hopper-v5", own).value(), "");
  EXPECT_EQ(FindModelDigest("CartPole-v1", own).value(), "");
  own.mujoco.arguments["xml_digest"] = *digest;
  own.mujoco.arguments["xml_file"] = std::string();
  EXPECT_TRUE(MakeEnv("Hopper-v5", own).ok());  // The task's own model, in place of what a checkpoint has.
}

TEST_F(UserModel, HasMetricsOfItsOwnTendons) {
  const auto tendon_metrics = [&](const std::string& text) {
    EnvOptions options;
    options.mujoco.arguments["xml_file"] = Write("tendons.xml", text);
    const EnvSpec spec = FindEnvSpec("Humanoid-v5", options).value();
    std::vector<std::string> names;
    for (const std::string& name : spec.episode_metrics) {
      if (name.rfind("tendon_", 0) == 0) names.push_back(name);
    }
    return names;
  };
  std::string text = Gymnasiums("humanoid.xml");
  EXPECT_THAT(tendon_metrics(text),
              testing::ElementsAre("tendon_length_0", "tendon_length_1", "tendon_velocity_0", "tendon_velocity_1"));
  const size_t begin = text.find("<tendon>"), end = text.find("</tendon>");
  EXPECT_THAT(tendon_metrics(text.erase(begin, end + 9 - begin)), testing::IsEmpty());
}

TEST_F(UserModel, IsRefusedWithoutTheSiteThatTheTaskReads) {
  std::string text = Gymnasiums("inverted_double_pendulum.xml");
  const size_t site = text.find("<site");
  ASSERT_NE(site, std::string::npos);
  text.erase(site, text.find("/>", site) + 2 - site);
  EnvOptions options;
  options.mujoco.arguments["xml_file"] = Write("no_site.xml", text);
  const absl::Status status = FindEnvSpec("InvertedDoublePendulum-v5", options).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << status;
  EXPECT_THAT(std::string(status.message()), testing::HasSubstr("has 0 sites; its task needs 1"));
}

TEST_F(UserModel, IsRefusedInOneLineIfItIsBrokenOrHostile) {
  EXPECT_THAT(Why((folder_ / "none.xml").string(), absl::StatusCode::kNotFound), testing::HasSubstr("none.xml"));
  EXPECT_THAT(Why(folder_.string()), testing::HasSubstr("not a file"));
  {
    ExpectMujocoWarnings(0);
    EXPECT_THAT(Why(Write("broken.xml", "<mujoco><worldbody></mujoco>")), testing::HasSubstr("broken.xml"));
  }
  EXPECT_THAT(Why(Write("empty.xml", "")), testing::HasSubstr("empty.xml"));
  EXPECT_THAT(
      Why(Write("other.xml", "<mujoco><worldbody><body><joint/><geom size=\"1\"/></body></worldbody></mujoco>")),
      testing::HasSubstr("its task needs 6"));
  for (const char* const outside : {"../secret.xml", "/etc/passwd", "parts/../../secret.xml"}) {
    EXPECT_THAT(Why(Write("out.xml", std::string("<mujoco><include file=\"") + outside + "\"/></mujoco>")),
                testing::HasSubstr("outside of its folder"))
        << outside;
  }
  std::filesystem::create_symlink("/etc/passwd", folder_ / "link.xml");
  EXPECT_THAT(Why(Write("out.xml", "<mujoco><include file=\"link.xml\"/></mujoco>")),
              testing::HasSubstr("outside of its folder"));
  EXPECT_THAT(Why(Write("self.xml", "<mujoco><include file=\"self.xml\"/></mujoco>")), testing::HasSubstr("includes"));
  EXPECT_THAT(Why(Write("entity.xml", "<!DOCTYPE a [<!ENTITY b SYSTEM \"/etc/passwd\">]><mujoco>&b;</mujoco>")),
              testing::HasSubstr("not supported"));
  EXPECT_THAT(Why(Write("mesh.xml", "<mujoco><asset><mesh file=\"/etc/passwd\"/></asset></mujoco>")),
              testing::HasSubstr("<mesh> is not supported"));
  std::string many = "<mujoco><worldbody>";
  for (int i = 0; i < 5000; ++i) many += "<body><geom size=\"1\"/></body>";
  EXPECT_THAT(Why(Write("many.xml", many + "</worldbody></mujoco>")), testing::HasSubstr("more than 1000 bodies"));
  for (const auto& [element, plural] :
       {std::pair("asset><material/></asset", "materials"), std::pair("custom><text/></custom", "custom fields")}) {
    std::string fields = "<mujoco>";
    for (int i = 0; i < 1001; ++i) fields += std::string("<") + element + ">";
    EXPECT_THAT(Why(Write("many.xml", fields + "</mujoco>")),
                testing::HasSubstr(std::string("more than 1000 ") + plural));
  }
  EXPECT_THAT(Why(Write("large.xml", std::string(3 << 20, ' '))), testing::HasSubstr("bytes"));
}

// What a reader that looks for strings, or MuJoCo by itself, falls for.
TEST_F(UserModel, IsRefusedHoweverItIsWritten) {
  const auto refused = [&](const std::string& content, const std::string& why) {
    EXPECT_THAT(Why(Write("odd.xml", "<mujoco>" + content + "</mujoco>")), testing::HasSubstr(why))
        << content.substr(0, 80);
  };
  refused("< include file=\"/etc/passwd\"/>", "outside of its folder");
  refused("<include\nfile='/etc/passwd'></include>", "outside of its folder");
  refused("<include file=\"a.xml\" prefix=\"b\"/>", "the attribute file and no other");
  refused("<include" + std::string(900'000, ' ') + "/>", "the attribute file and no other");
  refused("<asset><texture name=\">\" file=\"/etc/passwd\"/></asset>", "reads a file");
  refused("<asset><texture name=\"<!--\" type=\"cube\" fileright=\"/etc/passwd\"/></asset>", "");
  refused("<asset><texture type=\"cube\" fileright=\"/etc/passwd\"/></asset>", "reads a file");
  refused("<asset>< mesh file=\"/etc/passwd\"/></asset>", "<mesh> is not supported");
  refused("<asset><texture builtin=\"flat\" width=\"1000000\" height=\"1000000\"/></asset>", "textures of more than");
  refused("<asset><texture builtin=\"flat\" width=\"&#57;99999\" height=\"9\"/></asset>", "character references");
  refused("<size memory=\"1P\"/>", "memory");
  refused("<size njmax=\"2000000000\"/>", "njmax");
  refused("<size nuser_body=\"2000000000\"/>", "nuser_body");
  refused("<custom><numeric name=\"a\" size=\"2000000000\"/></custom>", "<numeric>");
  refused("<option iterations=\"2000000000\"/>", "iterations");
  refused("<body name=\"a\" pos=>", "is no XML");
  std::string deep, geoms;
  for (int i = 0; i < 15'000; ++i) deep += "<default>";
  refused(deep, "odd.xml");
  refused("<sensor><user dim=\"2000000000\"/></sensor>", "sensors of more than 10000 numbers");
  std::string sensors, textures, balls, moving;
  for (int i = 0; i < 11; ++i) sensors += "<user dim=\"1000\"/>";
  refused("<sensor>" + sensors + "</sensor>", "sensors of more than 10000 numbers");
  for (int i = 0; i < 1000; ++i) textures += "<texture builtin=\"flat\" type=\"2d\" width=\"2048\" height=\"2048\"/>";
  refused("<asset>" + textures + "</asset>", "textures of more than");
  for (int i = 0; i < 1000; ++i) moving += "<body><freejoint/><geom size=\"1\"/></body>";
  refused("<worldbody>" + moving + "</worldbody>", "more than 200 joints");
  for (int i = 0; i < 3000; ++i) balls += "<geom size=\"1\"/>";
  refused("<worldbody><body><freejoint/>" + balls + "</body></worldbody>", "more than 1000 geoms");
  refused("<actuator><muscle joint=\"a\"/></actuator>", "<muscle> is not supported");
  for (int i = 0; i < 30'000; ++i) geoms += "<geom size=\"1\"/>";
  refused("<worldbody>" + geoms + "</worldbody>", "more than 20000 tags");
}

TEST_F(UserModel, IsRefusedWithBoundsOfActionsThatNoActionMayHave) {
  const std::string text = OwnModel(), own = "ctrlrange=\"-1 1\"";
  const size_t at = text.find(own);
  ASSERT_NE(at, std::string::npos);
  const auto with = [&](const std::string& range) {
    std::string other = text;
    return Write("range.xml", other.replace(at, own.size(), "ctrlrange=\"" + range + "\""));
  };
  EXPECT_THAT(Why(with("-1e300 1e300")),
              testing::HasSubstr("ctrlrange=\"-1e+300 1e+300\" of actuator 0: want numbers of "
                                 "at most 1e+06 in magnitude"));
  EXPECT_THAT(Why(with("-1000001 1")), testing::HasSubstr("ctrlrange"));
  EXPECT_THAT(Why(with("-1 1000001")), testing::HasSubstr("ctrlrange"));
  const auto widest = Hopper(with("-1000000 1000000"));
  EXPECT_TRUE(widest.ok()) << widest.status();
}

// Two geoms of the world under a foot: the search finds its contacts in another order than a list has them.
TEST_F(UserModel, IsSteppedAsMujocoStepsItWhereBodiesTouchWithSeveralGeoms) {
  std::string text = Text("tests/env/gymnasium/half_cheetah.xml");
  const std::string world = "<worldbody>";
  text.insert(text.find(world) + world.size(),
              "<geom name=\"step0\" type=\"box\" size=\"1 1 0.05\" pos=\"0 0 0.02\" conaffinity=\"1\"/>");
  std::string searched = text;
  searched.insert(searched.find("</mujoco>"), "<contact><exclude body1=\"torso\" body2=\"bthigh\"/></contact>");
  std::vector<std::unique_ptr<Env>> envs;
  for (const std::string& path : {Write("steps.xml", text), Write("searched.xml", searched)}) {
    EnvOptions options;
    options.mujoco.arguments["xml_file"] = path;
    auto env = MakeEnv("HalfCheetah-v5", options);
    ASSERT_TRUE(env.ok()) << env.status();
    RandomStream random(1, RandomPurpose::kEnvReset, 0, 0);
    (*env)->Reset(random);
    envs.push_back(*std::move(env));
  }
  RandomStream random(2, RandomPurpose::kEnvReset, 0, 0);
  for (int t = 0; t < 1000; ++t) {
    std::array<float, 6> action;
    for (float& a : action) a = static_cast<float>(random.Uniform(-1, 1));
    float reward = 0;
    for (const auto& env : envs) env->Step(action.data(), &reward);
    ASSERT_EQ(State(*envs[0]), State(*envs[1])) << t;
  }
}

TEST_F(UserModel, IsRefusedWhereMoreTouchesThanMujocoHasMemoryFor) {
  std::string text = OwnModel(), spheres;
  for (int i = 0; i < 200; ++i) spheres += "<geom type=\"sphere\" size=\"0.6\"/>";
  for (const char* const body : {"<body name=\"shin\"", "<body name=\"trunk\""}) {
    const size_t at = text.find(body);
    EXPECT_NE(at, std::string::npos) << body;
    text.insert(text.find('>', at) + 1, spheres);
  }
  EXPECT_THAT(Why(Write("spheres.xml", text)), testing::HasSubstr("more touches in its"));
}

TEST_F(UserModel, IsRefusedWhereActionsBeyondTheirBoundsWouldAct) {
  std::string text = OwnModel();
  text.insert(text.find("</mujoco>"), "<option><flag clampctrl=\"disable\"/></option>");
  EXPECT_THAT(Why(Write("clamp.xml", text)), testing::HasSubstr("clampctrl"));
}

// Which is not outside of the folder, though the path has none.
TEST_F(UserModel, MayBeInTheWorkingDirectory) {
  Write("part.xml", "<mujoco><include file=\"none.xml\"/></mujoco>");
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(folder_);
  EXPECT_THAT(Why("part.xml", absl::StatusCode::kNotFound), testing::HasSubstr("there is no file"));
  std::filesystem::current_path(before);
}

TEST_F(UserModel, MayBeInTheHomeFolder) {
  const char* const home = std::getenv("HOME");
  const std::string before = home == nullptr ? "" : home;
  setenv("HOME", folder_.c_str(), 1);
  Write("hopper.xml", OwnModel());
  EXPECT_TRUE(Hopper("~/hopper.xml").ok());
  EXPECT_THAT(Why("~/absent.xml", absl::StatusCode::kNotFound),
              testing::HasSubstr("there is no file " + (folder_ / "absent.xml").string()));
  if (home == nullptr) {
    unsetenv("HOME");
  } else {
    setenv("HOME", before.c_str(), 1);
  }
}

TEST_F(UserModel, IsRefusedWithoutAWarningBesideIt) {
  std::string text = OwnModel();
  const std::string armature = "armature=\"1\"";
  const size_t at = text.find(armature);
  ASSERT_NE(at, std::string::npos);
  text.replace(at, armature.size(), "armature=\"-1000\"");
  const int64_t warned = MujocoWarningCount();
  testing::internal::CaptureStderr();
  const std::string why = Why(Write("armature.xml", text));
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  EXPECT_EQ(MujocoWarningCount(), warned);
  EXPECT_THAT(why, testing::AllOf(testing::HasSubstr("accelerations in its initial pose"),
                                  testing::HasSubstr("too close to singular")));
}

TEST_F(UserModel, IsRefusedIfItsNumbersAreNotFinite) {
  std::string text = OwnModel();
  const size_t at = text.find("timestep=\"0.002\"");
  for (const char* const step :
       {"timestep=\"0\"", "timestep=\"-1\"", "timestep=\"nan\"", "timestep=\"1e300\"", "timestep=\"1e-300\""}) {
    std::string other = text;
    EXPECT_NE(Why(Write("step.xml", other.replace(at, 16, step))), "") << step;
  }
  for (const char* const gravity : {"0 0 nan", "inf 0 0", "0 1e999 0"}) {
    std::string other = text;
    other.insert(at, std::string("gravity=\"") + gravity + "\" ");
    EXPECT_THAT(Why(Write("gravity.xml", other)), testing::HasSubstr("<option> is not finite"));
  }
  const int64_t warned = MujocoWarningCount();
  std::string heavy = text;
  heavy.insert(at, "gravity=\"0 0 1e200\" ");
  EXPECT_THAT(Why(Write("gravity.xml", heavy)), testing::HasSubstr("accelerations in its initial pose"));
  ExpectMujocoWarnings(MujocoWarningCount() - warned);
}

}  // namespace
}  // namespace skein
