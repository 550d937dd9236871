// SPDX-License-Identifier: Apache-2.0
#include "env/mujoco/user_model_limits.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"

namespace skein {
namespace {

constexpr size_t kMostTags = 20'000;
constexpr int64_t kMostPixels = 1 << 26;     // Of three bytes.
constexpr int64_t kMostDimensions = 10'000;  // Of sensors of the user's own.

struct Elements {
  const char* plural;
  int most;
};

// The value of an attribute, the largest if it is there twice; 0 if there is none, or no number above 0.
double Number(const MjcfTag& tag, absl::string_view attribute) {
  double largest = 0;
  for (const auto& [name, value] : tag.attributes) {
    double number = 0;
    if (name == attribute && absl::SimpleAtod(value, &number)) largest = std::max(largest, number);
  }
  return largest;
}

// Of a texture: as many as the kind that has most, a cube of six squares.
double Pixels(const MjcfTag& tag) {
  if (tag.element != "texture") return 0;
  const double width = Number(tag, "width");
  return width * std::max(6 * width, Number(tag, "height"));
}

}  // namespace

std::string ModelDanger(const std::vector<MjcfTag>& tags) {
  static const auto* const elements =
      new std::set<absl::string_view>{"mesh",      "hfield", "skin",  "plugin",  "extension", "composite",  "flexcomp",
                                      "replicate", "attach", "model", "include", "muscle",    "lengthrange"};
  static const auto* const most = new std::map<absl::string_view, double>{{"njmax", 2000},
                                                                          {"nconmax", 10'000},
                                                                          {"nstack", 1e6},
                                                                          {"nuserdata", 10'000},
                                                                          {"nkey", 1000},
                                                                          {"nuser_", 100},
                                                                          {"width", 2048},
                                                                          {"height", 2048},
                                                                          {"offwidth", 4096},
                                                                          {"offheight", 4096},
                                                                          {"iterations", 10'000},
                                                                          {"noslip_iterations", 10'000},
                                                                          {"mpr_iterations", 10'000},
                                                                          {"ccd_iterations", 10'000},
                                                                          {"ls_iterations", 10'000},
                                                                          {"sdf_iterations", 10'000},
                                                                          {"sdf_initpoints", 10'000},
                                                                          {"shadowsize", 8192},
                                                                          {"offsamples", 64},
                                                                          {"nsample", 10'000},
                                                                          {"dim", 1000},
                                                                          {"num", 1000}};
  static const auto* const most_elements = new std::map<absl::string_view, Elements>{
      {"body", {"bodies", 1000}},       {"geom", {"geoms", 1000}},       {"joint", {"joints", 200}},
      {"freejoint", {"joints", 200}},   {"motor", {"actuators", 200}},   {"general", {"actuators", 200}},
      {"position", {"actuators", 200}}, {"velocity", {"actuators", 200}}};
  if (tags.size() > kMostTags) return absl::StrCat("more than ", kMostTags, " tags");
  std::map<absl::string_view, int> counts;
  double pixels = 0, dimensions = 0;
  for (const MjcfTag& tag : tags) {
    if (elements->count(tag.element) > 0) return absl::StrCat("element <", tag.element, "> is not supported");
    const auto limit = most_elements->find(tag.element);
    if (limit != most_elements->end() && tag.opens && ++counts[limit->second.plural] > limit->second.most) {
      return absl::StrCat("more than ", limit->second.most, " ", limit->second.plural);
    }
    pixels += Pixels(tag);
    if (pixels > kMostPixels) return absl::StrCat("textures of more than ", kMostPixels, " pixels together");
    dimensions += Number(tag, "dim");
    if (dimensions > kMostDimensions)
      return absl::StrCat("sensors of more than ", kMostDimensions, " numbers together");
    for (const auto& [name, value] : tag.attributes) {
      if (absl::StartsWith(name, "file"))
        return absl::StrCat("<", tag.element, "> reads a file; that is not supported");
      if (value.find('&') != absl::string_view::npos) return "character references (&...;) are not supported";
      // The size of data that nothing of ours reads, and of the arena, which MuJoCo chooses well by itself.
      if (name == "memory" || (name == "size" && tag.element == "numeric")) {
        return absl::StrCat("the attribute ", name, " of <", tag.element, "> is not supported");
      }
      // The compiler would simulate them to see how far they reach.
      if (value == "muscle") return absl::StrCat("<", tag.element, "> of a muscle is not supported");
      for (const absl::string_view word : absl::StrSplit(value, absl::ByAnyChar(" \t\r\n"))) {
        double number = 0;
        if (absl::SimpleAtod(word, &number) && !std::isfinite(number)) {
          return absl::StrCat(name, "=\"", value, "\" of <", tag.element, "> is not finite");
        }
      }
      // Numbers of the user's own for each body, geom, ...: some models have them, nothing of ours reads them.
      const auto largest = most->find(absl::StartsWith(name, "nuser_") ? "nuser_" : name);
      double number = 0;
      if (largest != most->end() && (!absl::SimpleAtod(value, &number) || !(number <= largest->second))) {
        return absl::StrCat(name, "=\"", value, "\" of <", tag.element, ">: want at most ", largest->second);
      }
    }
  }
  return "";
}

}  // namespace skein
