// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <regex>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "env/mujoco/task.h"
#include "eval/render_episode.h"
#include "eval/render_uav.h"
#include "eval/render_video.h"
#include "eval/svg_canvas.h"
#include "gmock/gmock.h"
#include "tests/cli/scratch_folder.h"
#include "tests/eval/recorded_flight.h"

namespace skein {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

int CountOf(const std::string& text, const std::string& what) {
  int count = 0;
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++count;
  return count;
}

// Tags are closed in order, attributes are quoted, and no other < or & is left. Empty, or what is wrong.
std::string WhatIsWrongWithXml(const std::string& text) {
  static const auto* const kTag = new std::regex(R"(<(/?)([a-z]+)((?: [a-z:A-Z-]+="[^"<&]*")*)(/?)>)");
  std::vector<std::string> open;
  const std::regex bad_text("[<>]|&(?!(amp|lt|gt|quot);)");
  size_t end = 0;
  for (std::sregex_iterator tag(text.begin(), text.end(), *kTag), none; tag != none; ++tag) {
    const std::string between = text.substr(end, tag->position() - end);
    if (std::regex_search(between, bad_text)) return absl::StrCat("between tags: ", between);
    end = tag->position() + tag->length();
    if ((*tag)[1].length() > 0) {
      if (open.empty() || open.back() != (*tag)[2]) return absl::StrCat("not open: ", tag->str());
      open.pop_back();
    } else if ((*tag)[4].length() == 0) {
      open.push_back((*tag)[2]);
    }
    if (open.empty() && end != text.find_last_not_of('\n') + 1) return "more than one document";
  }
  return open.empty() && end > 0 ? "" : "something is open at the end";
}

std::vector<std::string> FilesIn(const ScratchFolder& folder) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path())) names.push_back(entry.path().filename());
  std::sort(names.begin(), names.end());
  return names;
}

// While it lives, programs are only those of one folder (and what a script there names by its path).
class OnlyPath {
 public:
  explicit OnlyPath(const std::string& folder) : before_(std::getenv("PATH")) { setenv("PATH", folder.c_str(), 1); }
  ~OnlyPath() { setenv("PATH", before_.c_str(), 1); }

 private:
  const std::string before_;
};

// Keeps what it is given as the film.
constexpr char kFakeFfmpeg[] = "for last; do :; done\n/bin/cat > \"${last#file:}\"\n";

TEST(RenderEpisode, DrawsATrailForEachUavAndACrossForEachCrash) {
  const ScratchFolder folder;
  for (const std::string env_id : {"UavNavigate-v0", "UavCover-v0"}) {
    const RecordedFlight flight = Fly(env_id, "random", 2, {.uavs = 12});
    ASSERT_TRUE(RenderEpisode(folder.path() + "/map.svg", flight.episode).ok());
    const std::string svg = folder.Read("map.svg");
    EXPECT_EQ(WhatIsWrongWithXml(svg), "");
    const auto counted = [&](const char* metric) {
      const auto found = flight.result.metrics.find(metric);
      return found == flight.result.metrics.end() ? 0 : static_cast<int>(std::lround(12 * found->second[2]));
    };
    const int crashed = counted("collision_rate"), arrived = counted("success_rate");
    EXPECT_GT(crashed, 0);
    EXPECT_EQ(CountOf(svg, "class=\"trail\""), 12);
    EXPECT_EQ(CountOf(svg, "class=\"start\""), 12);
    EXPECT_EQ(CountOf(svg, "class=\"crash\""), crashed);
    EXPECT_EQ(CountOf(svg, "class=\"arrival\""), arrived);
    EXPECT_EQ(CountOf(svg, "class=\"uav\""), 12 - crashed - arrived);
    EXPECT_EQ(CountOf(svg, "class=\"target\""), env_id == "UavNavigate-v0" ? 12 : 0);
    EXPECT_EQ(CountOf(svg, "class=\"visited\""), env_id == "UavCover-v0" ? 1 : 0);
    EXPECT_THAT(svg, AllOf(HasSubstr("seed 1000, episode 2, 12 UAVs"), HasSubstr(env_id + ", random")));
  }
}

TEST(RenderEpisode, TheCaptionSaysWhatTheMetricsSay) {
  const RecordedFlight flight = Fly("UavNavigate-v0", "greedy", 0);
  const auto metric = [&](const char* name) { return absl::StrFormat("%.2f", flight.result.metrics.at(name)[0]); };
  EXPECT_EQ(UavCaption(flight.episode, flight.episode.states.size() - 1),
            absl::StrCat("step ", flight.result.lengths[0], ", success ", metric("success_rate"), ", collisions ",
                         metric("collision_rate"), ", coverage ", metric("coverage")));
  EXPECT_THAT(UavCaption(flight.episode, 0), HasSubstr("step 0, success 0.00, collisions 0.00, coverage 0.03"));
}

TEST(RenderEpisode, LeavesNothingBehindWhereItCannotWrite) {
  const ScratchFolder folder;
  const RecordedFlight flight = Fly("UavNavigate-v0", "greedy", 0);
  EXPECT_FALSE(RenderEpisode(folder.path() + "/none/map.svg", flight.episode).ok());
  std::filesystem::create_directories(folder.path() + "/map.svg/full");
  const auto taken = RenderEpisode(folder.path() + "/map.svg", flight.episode);
  EXPECT_FALSE(taken.ok());
  EXPECT_THAT(taken.message(), HasSubstr("map.svg"));
  EXPECT_THAT(FilesIn(folder), ElementsAre("map.svg"));
}

TEST(CheckRender, SaysWhatCannotBeDrawn) {
  const ScratchFolder folder;
  const auto refused = [&](const char* name, const char* env_id) {
    return CheckRender(folder.path() + "/" + name, env_id);
  };
  EXPECT_TRUE(refused("map.svg", "UavCover-v0").ok());
  EXPECT_THAT(refused("map.gif", "UavCover-v0").message(), HasSubstr(".mp4, .png or .svg"));
  EXPECT_TRUE(absl::IsInvalidArgument(refused("map.gif", "UavCover-v0")));
  EXPECT_TRUE(absl::IsInvalidArgument(refused("map.png", "CartPole-v1")));
  EXPECT_TRUE(absl::IsInvalidArgument(refused("map.svg", "HalfCheetah-v5")));
  EXPECT_TRUE(absl::IsInvalidArgument(refused("film.mp4", "CartPole-v1")));
  EXPECT_TRUE(absl::IsNotFound(refused("none/map.svg", "UavNavigate-v0")));
  const OnlyPath path(folder.path());
  const auto no_ffmpeg = refused("film.mp4", "UavNavigate-v0");
  EXPECT_TRUE(absl::IsUnavailable(no_ffmpeg));
  EXPECT_THAT(no_ffmpeg.message(), HasSubstr("Debian: ffmpeg"));
}

// Puts the pictures that it is told to read into the film, one after the other.
constexpr char kJoiningFfmpeg[] = R"(while [ "$1" != -i ]; do shift; done
pictures=${2#file:}
for last; do :; done
/bin/cat "${pictures%/*}"/*.svg > "${last#file:}"
)";

TEST(RenderEpisode, FilmsEveryStepAndThenTheEnd) {
  const ScratchFolder folder;
  folder.WriteScript("ffmpeg", kJoiningFfmpeg);
  const OnlyPath path(folder.path());
  const RecordedFlight flight = Fly("UavNavigate-v0", "greedy", 0, {.uavs = 2, .obstacles = 10, .size = 8});
  ASSERT_TRUE(RenderEpisode(folder.path() + "/film.mp4", flight.episode).ok());
  EXPECT_THAT(FilesIn(folder), ElementsAre("ffmpeg", "film.mp4"));
  // The reset, each step, 18 times the end: 640 + 2 x 24 by 640 + 24 + 88 pixels.
  const std::string film = folder.Read("film.mp4");
  EXPECT_EQ(CountOf(film, "width=\"688\" height=\"752\" role"), 1 + flight.result.lengths[0] + 18);
  EXPECT_EQ(CountOf(film, absl::StrCat(">step ", flight.result.lengths[0], ", ")), 19);
  EXPECT_EQ(CountOf(film, ">step 1, "), 1);
}

// ffmpeg is given one picture of three by two, each with the cheetah in the middle, orange and brown.
TEST(RenderEpisode, DrawsSixMomentsOfAMujocoEpisode) {
  const ScratchFolder folder;
  folder.WriteScript("ffmpeg", kFakeFfmpeg);
  const OnlyPath path(folder.path());
  const RecordedFlight flight = Fly("HalfCheetah-v5", "random", 0);
  const absl::Status drawn = RenderEpisode(folder.path() + "/run.png", flight.episode);
  if (absl::IsUnavailable(drawn)) GTEST_SKIP() << drawn;
  ASSERT_TRUE(drawn.ok()) << drawn;
  constexpr size_t kWidth = 640, kHeight = 480;
  const std::string picture = folder.Read("run.png");
  ASSERT_EQ(picture.size(), 6 * kWidth * kHeight * 3);
  for (size_t moment = 0; moment < 6; ++moment) {
    int orange = 0;
    for (size_t y = kHeight / 4; y < kHeight * 3 / 4; ++y) {
      for (size_t x = kWidth / 4; x < kWidth * 3 / 4; ++x) {
        const size_t row = moment / 3 * kHeight + y, column = moment % 3 * kWidth + x;
        const size_t pixel = 3 * (row * 3 * kWidth + column);
        orange += static_cast<uint8_t>(picture[pixel]) > static_cast<uint8_t>(picture[pixel + 2]) + 60;
      }
    }
    EXPECT_GT(orange, 2000) << moment;
  }
}

class RenderTask : public testing::TestWithParam<std::string> {};

// With the real ffmpeg: the files are what their names say.
TEST_P(RenderTask, DrawsAndFilmsAnEpisode) {
  const ScratchFolder folder;
  RecordedFlight flight = Fly(GetParam(), "random", 0);
  ASSERT_GE(flight.episode.states.size(), 2u);
  flight.episode.states.resize(std::min<size_t>(flight.episode.states.size(), 20));
  for (const char* const name : {"/run.png", "/run.mp4"}) {
    const absl::Status possible = CheckRender(folder.path() + name, GetParam());
    if (absl::IsUnavailable(possible)) GTEST_SKIP() << possible;
    const absl::Status drawn = RenderEpisode(folder.path() + name, flight.episode);
    ASSERT_TRUE(drawn.ok()) << drawn;
  }
  const std::string picture = folder.Read("run.png"), film = folder.Read("run.mp4");
  EXPECT_EQ(picture.substr(0, 8), "\x89PNG\r\n\x1a\n");
  // Width and height, three pictures of 640 by 480 in two rows, begin at byte 16, the largest byte first.
  EXPECT_EQ(picture.substr(16, 8), std::string("\0\0\x07\x80\0\0\x03\xc0", 8));
  EXPECT_EQ(film.substr(4, 4), "ftyp");
  EXPECT_GT(film.size(), 2000u);
}

std::vector<std::string> TasksOfMujoco() {
  std::vector<std::string> ids = MujocoTaskIds();
  std::sort(ids.begin(), ids.end());
  return ids;
}

INSTANTIATE_TEST_SUITE_P(Tasks, RenderTask, testing::ValuesIn(TasksOfMujoco()),
                         [](const auto& info) { return info.param.substr(0, info.param.find('-')); });

TEST(RenderEpisode, DrawsTheEndOfAFlightAsAPng) {
  const ScratchFolder folder;
  folder.WriteScript("ffmpeg", kJoiningFfmpeg);
  const OnlyPath path(folder.path());
  const RecordedFlight flight = Fly("UavNavigate-v0", "greedy", 0, {.uavs = 2, .obstacles = 10, .size = 8});
  ASSERT_TRUE(RenderEpisode(folder.path() + "/map.png", flight.episode).ok());
  EXPECT_EQ(CountOf(folder.Read("map.png"), ">step "),
            CountOf(folder.Read("map.png"), absl::StrCat(">step ", flight.result.lengths[0], ", ")));
}

TEST(VideoWriter, LeavesNothingBehindIfFfmpegFails) {
  const std::vector<uint8_t> frame(640 * 480 * 3);
  for (const char* script :
       {"exit 3\n", "/bin/cat > /dev/null\nexit 3\n", "for last; do :; done\n/bin/cat > \"${last#file:}\"\nexit 3\n"}) {
    const ScratchFolder folder;
    folder.WriteScript("ffmpeg", script);
    const OnlyPath path(folder.path());
    auto video = VideoWriter::Start(folder.path() + "/film.mp4", 640, 480, 20);
    ASSERT_TRUE(video.ok()) << video.status();
    absl::Status status = (*video)->Write(frame.data());
    if (status.ok()) status = (*video)->Finish();
    EXPECT_TRUE(absl::IsInternal(status)) << status;
    EXPECT_THAT(status.message(), HasSubstr("film.mp4"));
    video->reset();
    EXPECT_THAT(FilesIn(folder), ElementsAre("ffmpeg"));
  }
}

TEST(VideoWriter, LeavesNothingBehindIfItIsGivenUp) {
  const ScratchFolder folder;
  folder.WriteScript("ffmpeg", kFakeFfmpeg);
  const OnlyPath path(folder.path());
  auto video = VideoWriter::Start(folder.path() + "/film.mp4", 640, 480, 20);
  ASSERT_TRUE(video.ok()) << video.status();
  EXPECT_TRUE((*video)->Write(std::vector<uint8_t>(640 * 480 * 3).data()).ok());
  video->reset();
  EXPECT_THAT(FilesIn(folder), ElementsAre("ffmpeg"));
}

TEST(SvgCanvas, EscapesWhatPeopleWrite) {
  SvgCanvas canvas(10, 10, "a < b & \"c\"");
  canvas.Text({1, 2}, 3, {0, 0, 0}, "<&>");
  canvas.Strokes("dot", {{{1, 1}}}, 2, {255, 0, 16});
  const std::string svg = canvas.Document();
  EXPECT_EQ(WhatIsWrongWithXml(svg), "");
  EXPECT_THAT(svg, AllOf(HasSubstr("&lt;&amp;&gt;"), HasSubstr("d=\"M1 1L1 1\""), HasSubstr("#ff0010")));
}

}  // namespace
}  // namespace skein
