// SPDX-License-Identifier: Apache-2.0
// How many elements of each kind a user's model may have.
#include "env/mujoco/user_model_limits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"

namespace skein {
namespace {

std::string Danger(const std::string& content) {
  const std::string text = "<mujoco>" + content + "</mujoco>";  // Tags are views into it.
  const auto tags = ReadMjcfTags(text);
  return tags ? ModelDanger(*tags) : "no XML";
}

std::string Times(int count, const std::string& text) {
  std::string all;
  for (int i = 0; i < count; ++i) all += text;
  return all;
}

struct Kind {
  const char *before, *element, *after, *plural;
  int most;
};

TEST(ModelDanger, IsOfEachKindsFirstElementTooMany) {
  constexpr Kind kKinds[] = {
      {"<worldbody>", "<body></body>", "</worldbody>", "bodies", 1000},
      {"<worldbody>", "<body/>", "</worldbody>", "bodies", 1000},
      {"<worldbody><frame>", "<geom/>", "</frame></worldbody>", "geoms", 1000},
      {"<worldbody><body>", "< joint />", "</body></worldbody>", "joints", 200},
      {"<worldbody><body>", "<freejoint></freejoint >", "</body></worldbody>", "joints", 200},
      {"<worldbody>", "<site/>", "</worldbody>", "sites", 1000},
      {"<worldbody>", "<camera/>", "</worldbody>", "cameras", 100},
      {"<worldbody>", "<light/>", "</worldbody>", "lights", 100},
      {"<actuator>", "<motor/>", "</actuator>", "actuators", 200},
      {"<actuator>", "<cylinder/>", "</actuator>", "actuators", 200},
      {"<equality>", "<weld/>", "</equality>", "equality constraints", 200},
      {"<equality>", "<connect/>", "</equality>", "equality constraints", 200},
      {"<contact>", "<pair/>", "</contact>", "contact pairs", 1000},
      {"<contact>", "<exclude/>", "</contact>", "excluded contacts", 1000},
      {"<tendon>", "<fixed/>", "</tendon>", "tendons", 200},
      {"<tendon><fixed>", "<joint/>", "</fixed></tendon>", "parts of tendons", 2000},
      {"<tendon><spatial>", "<site/>", "</spatial></tendon>", "parts of tendons", 2000},
      {"<sensor>", "<jointpos/>", "</sensor>", "sensors", 1000},
      {"<keyframe>", "<key/>", "</keyframe>", "keys", 1000},
      {"<default>", "<default></default>", "</default>", "classes of defaults", 1000},
  };
  for (const auto& [before, element, after, plural, most] : kKinds) {
    SCOPED_TRACE(absl::StrCat(before, element));
    EXPECT_EQ(Danger(before + Times(most, element) + after), "");
    EXPECT_EQ(Danger(before + Times(most + 1, element) + after), absl::StrCat("more than ", most, " ", plural));
    // In two sections.
    EXPECT_EQ(Danger(before + Times(most, element) + after + before + element + after),
              absl::StrCat("more than ", most, " ", plural));
  }
}

TEST(ModelDanger, IsNotOfElementsThatOnlyNameOthers) {
  const std::string joint = "<joint/>";
  EXPECT_EQ(Danger("<worldbody><body>" + Times(200, joint) + "</body></worldbody>" +          //
                   "<tendon><fixed>" + Times(300, joint) + "</fixed></tendon>" +              //
                   "<equality>" + Times(100, joint) + "</equality>" +                         //
                   "<default>" + Times(300, joint) + Times(300, "<motor/>") + "</default>" +  //
                   "<sensor>" + Times(300, "<velocimeter/>") + "</sensor>" +                  //
                   "<actuator>" + Times(200, "<general></general>") + "</actuator>"),
            "");
  EXPECT_EQ(Danger("<worldbody>" + Times(1000, "<site/>") + "</worldbody><tendon><spatial>" + Times(1500, "<site/>") +
                   Times(500, "<geom/>") + "</spatial></tendon>"),
            "");
}

TEST(ModelDanger, IsOfSizesThatTakeAllMemoryOrTime) {
  EXPECT_EQ(Danger("<actuator><general dyntype=\"user\" actdim=\"10000000\"/></actuator>"),
            "actdim=\"10000000\" of <general>: want at most 100");
  EXPECT_EQ(Danger("<visual><quality numslices=\"100\" numstacks=\"100\" numquads=\"20\"/></visual>"), "");
  EXPECT_EQ(Danger("<visual><quality numslices=\"101\"/></visual>"),
            "numslices=\"101\" of <quality>: want at most 100");
  EXPECT_EQ(Danger("<visual><quality numquads=\"21\"/></visual>"), "numquads=\"21\" of <quality>: want at most 20");
}

TEST(ModelDanger, IsOfWhatNoSavedStateHas) {
  EXPECT_EQ(Danger("<actuator><motor delay=\"0.1\"/></actuator>"), "the attribute delay of <motor> is not supported");
  EXPECT_EQ(Danger("<option><flag sleep=\"enable\"/></option>"), "the attribute sleep of <flag> is not supported");
  EXPECT_EQ(Danger("<option><flag ipc=\"enable\"/></option>"), "the attribute ipc of <flag> is not supported");
  EXPECT_EQ(Danger("<worldbody><body><joint springyield=\"0.5\"/></body></worldbody>"),
            "the attribute springyield of <joint> is not supported");
  EXPECT_EQ(Danger("<deformable><flex><elasticity yield=\"1\"/></flex></deformable>"),
            "the attribute yield of <elasticity> is not supported");
  EXPECT_EQ(Danger("<worldbody><body sleep=\"never\"/></worldbody>"), "");
}

TEST(ModelDanger, IsOfManyBodiesInEachOther) {
  EXPECT_EQ(Danger("<worldbody>" + Times(600, "<body><geom/>") + Times(600, "</body>") + Times(400, "<body/>") +
                   "</worldbody>"),
            "");
  EXPECT_EQ(Danger("<worldbody>" + Times(600, "<body><geom/><geom/>") + Times(600, "</body>") + "</worldbody>"),
            "more than 1000 geoms");
}

}  // namespace
}  // namespace skein
