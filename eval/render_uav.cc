// SPDX-License-Identifier: Apache-2.0
#include "eval/render_uav.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "env/uav/uav_layout.h"

namespace skein {
namespace {

constexpr int kMargin = 24, kCaptionHeight = 88, kMapSide = 640;  // Pixels.
constexpr int kLeastCell = 6, kLargestMark = 32;

constexpr Colour kGround = {246, 247, 249}, kGrid = {232, 234, 238}, kObstacle = {91, 100, 114}, kWall = {52, 58, 70};
constexpr Colour kVisited = {205, 232, 226}, kCrash = {200, 20, 40}, kWhite = {255, 255, 255};
constexpr Colour kText = {28, 32, 40}, kQuietText = {98, 105, 118};

UavTask TaskOf(const RecordedEpisode& episode) { return FindUavTask(episode.spec.id).value(); }

// The numbers of one saved state; UavLayout says where they are.
class UavState {
 public:
  UavState(const UavLayout& layout, const std::vector<double>& saved) : layout_(layout), saved_(saved) {}

  bool IsObstacle(int cell) const { return Bit(layout_.saved_obstacles, cell); }
  bool IsVisited(int cell) const { return Bit(layout_.saved_visited, cell); }
  Point Position(int uav) const { return {Of(uav, 0), Of(uav, 1)}; }
  UavStatus Status(int uav) const { return static_cast<UavStatus>(Of(uav, 4)); }
  int Target(int uav) const { return static_cast<int>(Of(uav, 7)); }
  std::vector<int> CellsThat(bool (UavState::*are)(int) const) const {
    std::vector<int> cells;
    for (int cell = 0; cell < layout_.cells; ++cell) {
      if ((this->*are)(cell)) cells.push_back(cell);
    }
    return cells;
  }

 private:
  bool Bit(int begin, int cell) const {
    return (static_cast<uint32_t>(saved_[begin + cell / kUavCellsInWord]) >> (cell % kUavCellsInWord) & 1) != 0;
  }
  double Of(int uav, int number) const { return saved_[layout_.saved_uavs + uav * kUavSavedDoubles + number]; }

  const UavLayout& layout_;
  const std::vector<double>& saved_;
};

// Pixels of a cell's side.
double CellPixels(int size) { return std::max<double>(kLeastCell, double{kMapSide} / size); }

// Colours of equal lightness (OKLCH; Ottosson 2020), neighbours in the list far apart: hues go around by the golden
// angle, and lightness takes turns.
Colour ColourOf(int uav) {
  const double hue = 0.5 + 2.39996 * uav, lightness = uav % 2 == 0 ? 0.55 : 0.66, chroma = 0.16;
  const double a = chroma * std::cos(hue), b = chroma * std::sin(hue);
  const double l = std::pow(lightness + 0.3963377774 * a + 0.2158037573 * b, 3);
  const double m = std::pow(lightness - 0.1055613458 * a - 0.0638541728 * b, 3);
  const double s = std::pow(lightness - 0.0894841775 * a - 1.2914855480 * b, 3);
  const auto channel = [](double linear) {
    linear = std::clamp(linear, 0.0, 1.0);
    const double value = linear <= 0.0031308 ? 12.92 * linear : 1.055 * std::pow(linear, 1 / 2.4) - 0.055;
    return static_cast<uint8_t>(std::lround(255 * value));
  };
  return {channel(4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s),
          channel(-1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s),
          channel(-0.0041960863 * l - 0.7034186147 * m + 1.7076147010 * s)};
}

// Adds `next` to a trail, without points in the middle of straight lines.
void Extend(Point next, std::vector<Point>* trail) {
  constexpr double kTolerance = 1e-3;
  const auto step_from = [&](Point from) { return Point{next.x - from.x, next.y - from.y}; };
  if (!trail->empty()) {
    const Point step = step_from(trail->back());
    if (std::hypot(step.x, step.y) < kTolerance) return;
  }
  if (trail->size() > 1) {
    const Point& turn = trail->back();
    const Point& before = (*trail)[trail->size() - 2];
    const Point way = {turn.x - before.x, turn.y - before.y}, step = step_from(turn);
    const double length = std::hypot(way.x, way.y);
    const bool straight = std::abs(way.x * step.y - way.y * step.x) < kTolerance * length;
    if (straight && way.x * step.x + way.y * step.y > 0) trail->pop_back();
  }
  trail->push_back(next);
}

void Cross(const char* kind, Point at, double reach, double width, Colour colour, SvgCanvas& canvas) {
  canvas.Strokes(kind,
                 {{{at.x - reach, at.y - reach}, {at.x + reach, at.y + reach}},
                  {{at.x - reach, at.y + reach}, {at.x + reach, at.y - reach}}},
                 width, colour);
}

void Box(const char* kind, Point at, double reach, double width, Colour colour, SvgCanvas& canvas) {
  canvas.Strokes(kind,
                 {{{at.x - reach, at.y - reach},
                   {at.x + reach, at.y - reach},
                   {at.x + reach, at.y + reach},
                   {at.x - reach, at.y + reach},
                   {at.x - reach, at.y - reach}}},
                 width, colour);
}

void DrawLegend(bool navigate, double right, double baseline, SvgCanvas& canvas) {
  const double y = baseline - 4.5;
  const auto entry = [&](double x, const char* text) {
    canvas.Text({x + 12, baseline}, 13, kQuietText, text);
    return Point{x, y};
  };
  canvas.Disc("legend", entry(right - (navigate ? 300 : 145), "start"), 3.5, kQuietText);
  if (navigate) {
    Box("legend", entry(right - 235, "target"), 4, 1.6, kQuietText, canvas);
    canvas.Ring("legend", entry(right - 163, "arrived"), 5, 2, kQuietText);
  }
  Cross("legend", entry(right - 82, "crashed"), 4, 2.4, kCrash, canvas);
}

}  // namespace

UavPictureSize SizeOfUavPicture(const RecordedEpisode& episode) {
  const int size = episode.options.uav.size;
  const int side = static_cast<int>(std::ceil(size * CellPixels(size) / 2)) * 2;
  return {side + 2 * kMargin, side + kMargin + kCaptionHeight};
}

std::string UavCaption(const RecordedEpisode& episode, size_t step) {
  const UavOptions& options = episode.options.uav;
  const UavLayout layout = MakeUavLayout(TaskOf(episode), options);
  const UavState state(layout, episode.states[step]);
  int arrived = 0, crashed = 0;
  for (int uav = 0; uav < options.uavs; ++uav) {
    arrived += state.Status(uav) == UavStatus::kArrived;
    crashed += state.Status(uav) == UavStatus::kCrashed;
  }
  const double free = layout.cells - static_cast<double>(state.CellsThat(&UavState::IsObstacle).size());
  const double visited = static_cast<double>(state.CellsThat(&UavState::IsVisited).size());
  std::string caption = absl::StrFormat("step %d, ", step);
  if (TaskOf(episode) == UavTask::kNavigate) {
    absl::StrAppendFormat(&caption, "success %.2f, ", 1.0 * arrived / options.uavs);
  }
  absl::StrAppendFormat(&caption, "collisions %.2f, coverage %.2f", 1.0 * crashed / options.uavs,
                        visited / std::max(1.0, free));
  return caption;
}

void DrawUavs(const RecordedEpisode& episode, size_t step, SvgCanvas& canvas) {
  const UavOptions& options = episode.options.uav;
  const bool navigate = TaskOf(episode) == UavTask::kNavigate;
  const UavLayout layout = MakeUavLayout(TaskOf(episode), options);
  const UavState state(layout, episode.states[step]);
  const int size = options.size;
  const double cell = CellPixels(size), side = size * cell;
  const double mark = std::min<double>(cell, kLargestMark);  // What strokes and signs are measured in.
  const auto at = [&](double x, double y) { return Point{kMargin + x * cell, kMargin + side - y * cell}; };
  const auto on_map = [&](Point point) { return at(point.x, point.y); };
  const auto corners = [&](const std::vector<int>& cells) {
    std::vector<Point> result;
    for (const int one : cells) result.push_back(at(one % size, one / size + 1));
    return result;
  };

  canvas.Squares("ground", {at(0, size)}, side, kGround);
  if (!navigate) canvas.Squares("visited", corners(state.CellsThat(&UavState::IsVisited)), cell, kVisited);
  std::vector<std::vector<Point>> grid;
  for (int i = 1; i < size; ++i) {
    grid.push_back({at(i, 0), at(i, size)});
    grid.push_back({at(0, i), at(size, i)});
  }
  canvas.Strokes("grid", grid, 0.75, navigate ? kGrid : kWhite);
  canvas.Squares("obstacle", corners(state.CellsThat(&UavState::IsObstacle)), cell, kObstacle);
  canvas.Strokes("wall", {{at(0, 0), at(size, 0), at(size, size), at(0, size), at(0, 0)}}, 3, kWall);

  for (int uav = 0; navigate && uav < options.uavs; ++uav) {
    const int target = state.Target(uav);
    Box("target", at(target % size + 0.5, target / size + 0.5), 0.3 * mark, std::max(1.2, 0.08 * mark), ColourOf(uav),
        canvas);
  }
  for (int uav = 0; uav < options.uavs; ++uav) {
    std::vector<Point> trail;
    for (size_t i = 0; i <= step; ++i) Extend(on_map(UavState(layout, episode.states[i]).Position(uav)), &trail);
    canvas.Strokes("trail", {trail}, std::max(1.5, 0.11 * mark), ColourOf(uav));
    canvas.Disc("start", trail[0], std::max(2.0, 0.16 * mark), ColourOf(uav));
  }
  for (int uav = 0; uav < options.uavs; ++uav) {
    const Point here = on_map(state.Position(uav));
    if (state.Status(uav) == UavStatus::kAlive) {
      const double radius = std::max(2.5, options.radius * cell);
      canvas.Disc("halo", here, radius + 1.5, kWhite);
      canvas.Disc("uav", here, radius, ColourOf(uav));
    } else if (state.Status(uav) == UavStatus::kArrived) {
      canvas.Ring("arrival", here, 0.34 * mark, std::max(1.8, 0.12 * mark), ColourOf(uav));
    } else {
      Cross("halo", here, 0.26 * mark, 0.12 * mark + 4, kWhite, canvas);
      Cross("crash", here, 0.26 * mark, std::max(2.0, 0.14 * mark), kCrash, canvas);
    }
  }

  const double below = kMargin + side;
  canvas.Text({kMargin, below + 28}, 17, kText, absl::StrCat(episode.spec.id, ", ", episode.policy));
  canvas.Text({kMargin, below + 51}, 15, kText, UavCaption(episode, step));
  canvas.Text({kMargin, below + 72}, 13, kQuietText,
              absl::StrCat("seed ", episode.seed, ", episode ", episode.episode, ", ", options.uavs, " UAVs, ",
                           options.obstacles, " obstacles"));
  DrawLegend(navigate, kMargin + side, below + 27, canvas);
}

}  // namespace skein
