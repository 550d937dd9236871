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

// Whether a pair can say what MuJoCo would mix of two geoms.
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

// What a search gives the contacts of two geoms.
struct Contact {
  int condim;
  std::array<mjtNum, 5> friction;
  mjtNum margin;
  const mjtNum *solref, *solimp;  // [mjNREF], [mjNIMP]
};

// REQUIRES: Mixable().
Contact ContactOf(const mjModel& m, int one, int other) {
  std::array<mjtNum, 3> friction;
  for (int i = 0; i < 3; ++i) friction[i] = std::max(m.geom_friction[3 * one + i], m.geom_friction[3 * other + i]);
  return {std::max(m.geom_condim[one], m.geom_condim[other]),
          {friction[0], friction[0], friction[1], friction[2], friction[2]},
          MixedMargin(m, one, other),
          m.geom_solref + one * mjNREF,
          m.geom_solimp + one * mjNIMP};
}

// Empty: a geom has no plain name.
std::string PairOf(const mjModel& m, int one, int other) {
  const char* const first = mj_id2name(&m, mjOBJ_GEOM, one);
  const char* const second = mj_id2name(&m, mjOBJ_GEOM, other);
  if (!IsPlain(first) || !IsPlain(second)) return "";
  const Contact contact = ContactOf(m, one, other);
  return absl::StrFormat(
      R"(<pair geom1="%s" geom2="%s" condim="%d" friction="%s" margin="%s" solref="%s" solimp="%s"/>)", first, second,
      contact.condim, Joined(contact.friction.data(), 5), Joined(&contact.margin, 1), Joined(contact.solref, mjNREF),
      Joined(contact.solimp, mjNIMP));
}

// Whether a pair has none of what a search never gives a contact. Not every MuJoCo has these arrays.
template <typename Model>
bool HasNothingElse(const Model& m, int pair) {
  bool nothing = m.pair_gap[pair] == 0;
  if constexpr (requires { m.pair_solreffriction; }) {
    const mjtNum* const of_friction = m.pair_solreffriction + pair * mjNREF;
    nothing = nothing && std::all_of(of_friction, of_friction + mjNREF, [](mjtNum x) { return x == 0; });
  }
  if constexpr (requires { m.pair_adhesion; }) nothing = nothing && m.pair_adhesion[pair] == 0;
  return nothing;
}

// Whether a pair makes the contacts that a search makes.
bool IsAsSearched(const mjModel& m, int pair, const Contact& contact) {
  const auto same = [pair](const mjtNum* values, int size, const mjtNum* wanted) {
    return std::equal(values + pair * size, values + (pair + 1) * size, wanted);
  };
  return m.pair_dim[pair] == contact.condim && same(m.pair_friction, 5, contact.friction.data()) &&
         same(m.pair_margin, 1, &contact.margin) && same(m.pair_solref, mjNREF, contact.solref) &&
         same(m.pair_solimp, mjNIMP, contact.solimp) && HasNothingElse(m, pair);
}

// Two bodies and a geom of each, in the order of a search: it goes from body to body, and from geom to geom within two
// bodies; geoms are numbered body after body. nullopt: a list would be longer than the search, or would find more.
std::optional<std::vector<std::array<int, 4>>> TouchingGeoms(const mjModel& searched) {
  std::vector<std::array<int, 4>> touching;
  for (int one = 0; one < searched.ngeom; ++one) {
    for (int other = one + 1; other < searched.ngeom; ++other) {
      if (!MayTouch(searched, one, other)) continue;
      if (!SearchMissesNothing(searched, one, other)) return std::nullopt;
      touching.push_back({searched.geom_bodyid[one], searched.geom_bodyid[other], one, other});
      if (touching.size() > kMostPairsPerGeom * static_cast<size_t>(searched.ngeom)) return std::nullopt;
    }
  }
  std::sort(touching.begin(), touching.end());
  return touching;
}

}  // namespace

std::optional<std::string> ListContacts(const std::string& mjcf, const mjModel& searched) {
  if (searched.npair > 0 || searched.nexclude > 0 || !SearchesAsUsual(searched)) return std::nullopt;
  const auto touching = TouchingGeoms(searched);
  if (!touching) return std::nullopt;
  if (touching->empty()) return mjcf;
  std::string pairs;
  for (const auto& [body, other_body, one, other] : *touching) {
    const std::string pair = Mixable(searched, one, other) ? PairOf(searched, one, other) : "";
    if (pair.empty()) return std::nullopt;
    pairs += pair;
  }
  const size_t end = mjcf.rfind("</mujoco>");
  if (end == std::string::npos) return std::nullopt;
  return absl::StrFormat("%s<contact>%s</contact>%s", mjcf.substr(0, end), pairs, mjcf.substr(end));
}

bool ListsAllContacts(const mjModel& listed, const mjModel& searched) {
  const auto touching = TouchingGeoms(searched);
  if (!touching || static_cast<size_t>(listed.npair) != touching->size()) return false;
  for (int i = 0; i < listed.npair; ++i) {
    const auto [body, other_body, one, other] = (*touching)[i];
    if (std::minmax(listed.pair_geom1[i], listed.pair_geom2[i]) != std::minmax(one, other)) return false;
    if (!IsAsSearched(listed, i, ContactOf(searched, one, other))) return false;
  }
  return true;
}

bool TouchWithSeveralGeoms(const mjModel& searched) {
  const auto touching = TouchingGeoms(searched);
  if (!touching) return false;
  for (size_t i = 1; i < touching->size(); ++i) {
    const auto &one = (*touching)[i - 1], &other = (*touching)[i];
    const bool same_plane = one[2] == other[2] && searched.geom_type[one[2]] == mjGEOM_PLANE;
    if (one[0] == other[0] && one[1] == other[1] && !same_plane) return true;
  }
  return false;
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
