// SPDX-License-Identifier: Apache-2.0
#include "env/mujoco/user_model_limits.h"

#include <algorithm>
#include <cmath>
#include <iterator>
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

// Of what an element within another is.
struct Limit {
  absl::string_view parent, element;  // Empty: any.
  const char* plural;
  int most;
};

// Elements of defaults are none of these: they only say what others have.
constexpr Limit kLimits[] = {
    {"body", "body", "bodies", 1000},
    {"body", "geom", "geoms", 1000},
    {"body", "joint", "joints", 200},
    {"body", "freejoint", "joints", 200},
    {"body", "site", "sites", 1000},
    {"body", "camera", "cameras", 100},
    {"body", "light", "lights", 100},
    {"actuator", "", "actuators", 200},
    {"equality", "", "equality constraints", 200},
    {"contact", "pair", "contact pairs", 1000},
    {"contact", "exclude", "excluded contacts", 1000},
    {"tendon", "", "tendons", 200},
    {"fixed", "", "parts of tendons", 2000},
    {"spatial", "", "parts of tendons", 2000},
    {"sensor", "", "sensors", 1000},
    {"keyframe", "", "keys", 1000},
    {"asset", "material", "materials", 1000},
    {"custom", "", "custom fields", 1000},
    {"default", "default", "classes of defaults", 1000},
};

// What an element within `parent` counts as; null: it has no limit.
const Limit* LimitOf(absl::string_view parent, absl::string_view element) {
  // Bodies may also be in these.
  if (parent == "worldbody" || parent == "frame") parent = "body";
  const auto* const found = std::find_if(std::begin(kLimits), std::end(kLimits), [&](const Limit& limit) {
    return limit.parent == parent && (limit.element.empty() || limit.element == element);
  });
  return found == std::end(kLimits) ? nullptr : found;
}

// Counts elements by what they are, from the first tag to the last.
class ElementCounts {
 public:
  // The limit that this tag is beyond, or null.
  const Limit* Add(const MjcfTag& tag) {
    if (!tag.opens) {
      if (!open_.empty()) open_.pop_back();
      return nullptr;
    }
    const Limit* const limit = LimitOf(open_.empty() ? "" : open_.back(), tag.element);
    if (!tag.closed) open_.push_back(tag.element);
    return limit != nullptr && ++counts_[limit->plural] > limit->most ? limit : nullptr;
  }

 private:
  std::vector<absl::string_view> open_;  // The elements around the next tag.
  std::map<absl::string_view, int> counts_;
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
                                                                          {"numslices", 100},
                                                                          {"numstacks", 100},
                                                                          {"numquads", 20},
                                                                          {"actdim", 100},
                                                                          {"nsample", 10'000},
                                                                          {"dim", 1000},
                                                                          {"num", 1000}};
  if (tags.size() > kMostTags) return absl::StrCat("more than ", kMostTags, " tags");
  ElementCounts counts;
  double pixels = 0, dimensions = 0;
  for (const MjcfTag& tag : tags) {
    if (elements->count(tag.element) > 0) return absl::StrCat("element <", tag.element, "> is not supported");
    if (const Limit* const beyond = counts.Add(tag)) {
      return absl::StrCat("more than ", beyond->most, " ", beyond->plural);
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
      // Newer MuJoCo's, which depend on what no saved state has: controls of the past, deformations, which bodies
      // sleep.
      if (name == "delay" || name == "springyield" || name == "yield" || name == "ipc" ||
          (name == "sleep" && tag.element == "flag")) {
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
