// SPDX-License-Identifier: Apache-2.0
#include "eval/render_episode.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/process/file.h"
#include "base/process/system_error.h"
#include "env/mujoco/offscreen_renderer.h"
#include "env/mujoco/task.h"
#include "env/uav/uav_layout.h"
#include "eval/render_uav.h"
#include "eval/render_video.h"
#include "eval/svg_canvas.h"

namespace skein {
namespace {

constexpr int kUavFramesPerSecond = 12;
constexpr int kUavLastFrames = 18;  // How long the end is shown.
constexpr int kMujocoWidth = 640, kMujocoHeight = 480;

bool IsUav(const std::string& env_id) { return FindUavTask(env_id).has_value(); }
bool IsMujoco(const std::string& env_id) { return MakeMujocoTask(env_id).ok(); }

std::string DrawUavPicture(const RecordedEpisode& episode, size_t step) {
  const UavPictureSize size = SizeOfUavPicture(episode);
  SvgCanvas canvas(size.width, size.height,
                   absl::StrCat(episode.spec.id, ", ", episode.policy, ", seed ", episode.seed, ", episode ",
                                episode.episode, ": ", UavCaption(episode, step)));
  DrawUavs(episode, step, canvas);
  return canvas.Document();
}

// A folder of its own for the pictures of a film.
class PictureFolder {
 public:
  PictureFolder() : path_((std::filesystem::temp_directory_path() / "skein-film-XXXXXX").string()) {
    made_ = mkdtemp(path_.data()) != nullptr;
    error_ = errno;
  }
  ~PictureFolder() {
    std::error_code ignored;
    if (made_) std::filesystem::remove_all(path_, ignored);
  }
  PictureFolder(const PictureFolder&) = delete;
  PictureFolder& operator=(const PictureFolder&) = delete;

  absl::Status status() const { return made_ ? absl::OkStatus() : SystemError(error_, "cannot create " + path_); }
  std::string Pattern() const { return path_ + "/%06d.svg"; }
  std::string File(size_t number) const { return absl::StrFormat("%s/%06d.svg", path_, number); }

 private:
  std::string path_;
  bool made_ = false;
  int error_ = 0;
};

// ffmpeg draws the pictures itself.
absl::Status FilmUavs(const std::string& path, const RecordedEpisode& episode) {
  const PictureFolder folder;
  if (absl::Status status = folder.status(); !status.ok()) return status;
  for (size_t frame = 0; frame < episode.states.size() + kUavLastFrames; ++frame) {
    const std::string picture = DrawUavPicture(episode, std::min(frame, episode.states.size() - 1));
    if (absl::Status status = WriteFileAtomically(folder.File(frame), picture); !status.ok()) return status;
  }
  auto video = VideoWriter::StartFromFiles(path, folder.Pattern(), kUavFramesPerSecond);
  return video.ok() ? (*video)->Finish() : video.status();
}

absl::Status FilmMujoco(const std::string& path, const RecordedEpisode& episode) {
  auto renderer = OffscreenRenderer::Make(episode.spec.id, kMujocoWidth, kMujocoHeight, episode.options.mujoco);
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
  if (absl::EndsWith(path, ".svg")) {
    return WriteFileAtomically(path, DrawUavPicture(episode, episode.states.size() - 1));
  }
  return IsUav(episode.spec.id) ? FilmUavs(path, episode) : FilmMujoco(path, episode);
}

}  // namespace skein
