// SPDX-License-Identifier: Apache-2.0
#include "env/mujoco/contacts.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "absl/strings/str_format.h"

namespace skein {
namespace {

constexpr size_t kMostPairsPerGeom = 2;

// Whether no option changes what a search looks at.
bool SearchesAsUsual(const mjModel& m) {
#if mjVERSION_HEADER < 300
  if (m.opt.collision != mjCOL_ALL) return false;
#endif
  return (m.opt.disableflags & mjDSBL_FILTERPARENT) == 0 && (m.opt.enableflags & mjENBL_OVERRIDE) == 0;
}

// Whether a search looks at two geoms, as MuJoCo's documentation has it ("Computation", "Collision detection").
bool MayTouch(const mjModel& m, int one, int other) {
  if (((m.geom_contype[one] & m.geom_conaffinity[other]) | (m.geom_contype[other] & m.geom_conaffinity[one])) == 0) {
    return false;
  }
  const int first = m.body_weldid[m.geom_bodyid[one]], second = m.body_weldid[m.geom_bodyid[other]];
  if (first == second) return false;
  if (first == 0 || second == 0) return true;  // The world is not a parent in this respect.
  return m.body_weldid[m.body_parentid[first]] != second && m.body_weldid[m.body_parentid[second]] != first;
}

bool Mixable(const mjModel& m, int one, int other) {
  const auto same = [one, other](const mjtNum* values, int size) {
    return std::equal(values + one * size, values + (one + 1) * size, values + other * size);
  };
  return same(m.geom_solref, mjNREF) && same(m.geom_solimp, mjNIMP) && same(m.geom_solmix, 1) &&
         m.geom_priority[one] == m.geom_priority[other] && m.geom_gap[one] == 0 && m.geom_gap[other] == 0;
}

// The distance below which two geoms are in contact, m.
mjtNum MixedMargin(const mjModel& m, int one, int other) {
#if mjVERSION_HEADER >= 350
  return m.geom_margin[one] + m.geom_margin[other];
#else
  return std::max(m.geom_margin[one], m.geom_margin[other]);
#endif
}

// Between bodies of several geoms the search goes down trees of boxes, which do not have the margins: it misses some
// contacts within these.
bool SearchMissesNothing(const mjModel& m, int one, int other) {
  return MixedMargin(m, one, other) == 0 ||
         m.body_geomnum[m.geom_bodyid[one]] * m.body_geomnum[m.geom_bodyid[other]] == 1;
}

std::string Joined(const mjtNum* values, int size) {
  std::string text;
  for (int i = 0; i < size; ++i) absl::StrAppendFormat(&text, "%s%.17g", i > 0 ? " " : "", values[i]);
  return text;
}

// Whether XML can have the name as it is.
bool IsPlain(const char* name) { return name != nullptr && std::strpbrk(name, "\"'<>&") == nullptr; }

// Empty: a geom has no plain name.
std::string PairOf(const mjModel& m, int one, int other) {
  const char* const first = mj_id2name(&m, mjOBJ_GEOM, one);
  const char* const second = mj_id2name(&m, mjOBJ_GEOM, other);
  if (!IsPlain(first) || !IsPlain(second)) return "";
  mjtNum friction[3];
  for (int i = 0; i < 3; ++i) friction[i] = std::max(m.geom_friction[3 * one + i], m.geom_friction[3 * other + i]);
  const mjtNum five[] = {friction[0], friction[0], friction[1], friction[2], friction[2]};
  const mjtNum margin = MixedMargin(m, one, other);
  return absl::StrFormat(
      R"(<pair geom1="%s" geom2="%s" condim="%d" friction="%s" margin="%s" solref="%s" solimp="%s"/>)", first, second,
      std::max(m.geom_condim[one], m.geom_condim[other]), Joined(five, 5), Joined(&margin, 1),
      Joined(m.geom_solref + one * mjNREF, mjNREF), Joined(m.geom_solimp + one * mjNIMP, mjNIMP));
}

}  // namespace

std::optional<std::string> ListContacts(const std::string& mjcf, const mjModel& searched) {
  // Also without pairs in the text, a class of defaults may change those that are added.
  if (mjcf.find("<pair") != std::string::npos || searched.nexclude > 0 || !SearchesAsUsual(searched)) {
    return std::nullopt;
  }
  // The search goes from body to body, and from geom to geom within two bodies. Geoms are numbered body after body.
  std::vector<std::array<int, 4>> touching;  // Two bodies and a geom of each.
  for (int one = 0; one < searched.ngeom; ++one) {
    for (int other = one + 1; other < searched.ngeom; ++other) {
      if (!MayTouch(searched, one, other)) continue;
      if (!SearchMissesNothing(searched, one, other)) return std::nullopt;
      touching.push_back({searched.geom_bodyid[one], searched.geom_bodyid[other], one, other});
      if (touching.size() > kMostPairsPerGeom * static_cast<size_t>(searched.ngeom)) return std::nullopt;
    }
  }
  if (touching.empty()) return mjcf;
  std::sort(touching.begin(), touching.end());
  std::string pairs;
  for (const auto& [body, other_body, one, other] : touching) {
    const std::string pair = Mixable(searched, one, other) ? PairOf(searched, one, other) : "";
    if (pair.empty()) return std::nullopt;
    pairs += pair;
  }
  const size_t end = mjcf.rfind("</mujoco>");
  if (end == std::string::npos) return std::nullopt;
  return absl::StrFormat("%s<contact>%s</contact>%s", mjcf.substr(0, end), pairs, mjcf.substr(end));
}

void CollideOnlyPairs(mjModel* model) {
  std::fill_n(model->geom_contype, model->ngeom, 0);
  std::fill_n(model->geom_conaffinity, model->ngeom, 0);
  // MuJoCo 2 needs this option; MuJoCo 3 detects it, in later releases from the masks of each body.
#if mjVERSION_HEADER < 300
  model->opt.collision = mjCOL_PAIR;
#else
  const auto clear_bodies = [](auto* m) {
    if constexpr (requires { m->body_contype; }) {
      std::fill_n(m->body_contype, m->nbody, 0);
      std::fill_n(m->body_conaffinity, m->nbody, 0);
    }
  };
  clear_bodies(model);
#endif
}

}  // namespace skein
