// SPDX-License-Identifier: Apache-2.0
#include "learner/run/episodes_json.h"

#include <cmath>
#include <limits>
#include <vector>

namespace skein {
namespace {

using Json = nlohmann::json;

// JSON has no NaN.
template <typename Real>
Json RealsToJson(const std::vector<Real>& values) {
  Json list = Json::array();
  for (Real value : values) list.push_back(std::isfinite(value) ? Json(value) : Json());
  return list;
}

template <typename Real>
std::vector<Real> RealsFromJson(const Json& list) {
  std::vector<Real> values;
  for (const Json& value : list) {
    values.push_back(value.is_null() ? std::numeric_limits<Real>::quiet_NaN() : value.get<Real>());
  }
  return values;
}

}  // namespace

Json EpisodesToJson(const EpisodeWindow& window) {
  return {
      {"returns", RealsToJson(window.returns)}, {"lengths", window.lengths}, {"metrics", RealsToJson(window.metrics)}};
}

EpisodeWindow EpisodesOfManifest(const Json& manifest) {
  const auto found = manifest.find("last_episodes");
  if (found == manifest.end()) return {};
  EpisodeWindow window{RealsFromJson<double>(found->at("returns")), found->at("lengths").get<std::vector<int64_t>>(),
                       RealsFromJson<float>(found->at("metrics"))};
  const size_t episodes = window.returns.size();
  if (episodes > EpisodeWindow::kEpisodes || window.lengths.size() != episodes ||
      (episodes == 0 ? !window.metrics.empty() : window.metrics.size() % episodes != 0)) {
    throw Json::other_error::create(501, "last_episodes: its lists do not fit together", &*found);
  }
  return window;
}

}  // namespace skein
