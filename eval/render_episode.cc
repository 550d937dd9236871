// SPDX-License-Identifier: Apache-2.0
#include "eval/render_episode.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/process/file.h"
#include "base/process/system_error.h"
#include "env/mujoco/offscreen_renderer.h"
#include "env/mujoco/task.h"
#include "eval/render_raster.h"
#include "eval/render_svg.h"
#include "eval/render_uav.h"
#include "eval/render_video.h"

namespace skein {
namespace {

constexpr int kUavFramesPerSecond = 12;
constexpr int kUavLastFrames = 18;  // The end is shown for so long.
constexpr int kMujocoWidth = 640, kMujocoHeight = 480;

bool IsUav(const std::string& env_id) { return absl::StartsWith(env_id, "Uav"); }
bool IsMujoco(const std::string& env_id) { return FindMujocoTask(env_id) != nullptr; }

absl::Status DrawUavPicture(const std::string& path, const RecordedEpisode& episode) {
  const UavPictureSize size = SizeOfUavPicture(episode);
  const size_t last = episode.states.size() - 1;
  SvgCanvas canvas(size.width, size.height,
                   absl::StrCat(episode.spec.id, ", ", episode.policy, ", seed ", episode.seed, ", episode ",
                                episode.episode, ": ", UavCaption(episode, last)));
  DrawUavs(episode, last, canvas);
  return WriteFileAtomically(path, canvas.Document());
}

absl::Status FilmUavs(const std::string& path, const RecordedEpisode& episode) {
  const UavPictureSize size = SizeOfUavPicture(episode);
  auto video = VideoWriter::Start(path, size.width, size.height, kUavFramesPerSecond);
  if (!video.ok()) return video.status();
  for (size_t frame = 0; frame < episode.states.size() + kUavLastFrames; ++frame) {
    RasterCanvas canvas(size.width, size.height);
    DrawUavs(episode, std::min(frame, episode.states.size() - 1), canvas);
    if (absl::Status status = (*video)->Write(canvas.rgb().data()); !status.ok()) return status;
  }
  return (*video)->Finish();
}

absl::Status FilmMujoco(const std::string& path, const RecordedEpisode& episode) {
  auto renderer = OffscreenRenderer::Make(episode.spec.id, kMujocoWidth, kMujocoHeight);
  if (!renderer.ok()) return renderer.status();
  auto video = VideoWriter::Start(path, kMujocoWidth, kMujocoHeight, (*renderer)->frames_per_second());
  if (!video.ok()) return video.status();
  std::vector<uint8_t> rgb(size_t{kMujocoWidth} * kMujocoHeight * 3);
  for (const std::vector<double>& state : episode.states) {
    (*renderer)->Render(state.data(), rgb.data());
    if (absl::Status status = (*video)->Write(rgb.data()); !status.ok()) return status;
  }
  return (*video)->Finish();
}

}  // namespace

absl::Status CheckRender(const std::string& path, const std::string& env_id) {
  const bool film = absl::EndsWith(path, ".mp4");
  if (!film && !absl::EndsWith(path, ".svg")) {
    return absl::InvalidArgumentError(absl::StrCat("--render: got ", path, ", want a name that ends in .svg or .mp4"));
  }
  if (!IsUav(env_id) && !(film && IsMujoco(env_id))) {
    return absl::InvalidArgumentError(absl::StrCat("--render ", path, ": there is no such picture of ", env_id,
                                                   "; .svg is for the UAV environments, .mp4 for those of MuJoCo too"));
  }
  const std::string parent = std::filesystem::path(path).parent_path().string();
  if (access(parent.empty() ? "." : parent.c_str(), W_OK) != 0) {
    return SystemError(errno, absl::StrCat("cannot create ", path));
  }
  if (film) {
    if (const auto ffmpeg = FindFfmpeg(); !ffmpeg.ok()) return ffmpeg.status();
  }
  if (IsMujoco(env_id)) return OffscreenRenderer::Make(env_id, kMujocoWidth, kMujocoHeight).status();
  return absl::OkStatus();
}

absl::Status RenderEpisode(const std::string& path, const RecordedEpisode& episode) {
  if (absl::EndsWith(path, ".svg")) return DrawUavPicture(path, episode);
  return IsUav(episode.spec.id) ? FilmUavs(path, episode) : FilmMujoco(path, episode);
}

}  // namespace skein
