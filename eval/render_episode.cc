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
#include "env/registry.h"
#include "eval/render_uav.h"
#include "eval/render_video.h"
#include "eval/svg_canvas.h"

namespace skein {
namespace {

constexpr int kMapFramesPerSecond = 12;
constexpr int kMapLastFrames = 18;  // How long the end is shown.
constexpr int kSceneWidth = 640, kSceneHeight = 480;
constexpr int kColumns = 3, kRows = 2;  // Of moments in a picture.

std::string DrawMap(const RecordedEpisode& episode, size_t step) {
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

// Films the episode from state `first` on. ffmpeg draws the pictures itself.
absl::Status FilmMap(const std::string& path, const RecordedEpisode& episode, size_t first) {
  const PictureFolder folder;
  if (absl::Status status = folder.status(); !status.ok()) return status;
  for (size_t frame = 0; first + frame < episode.states.size() + kMapLastFrames; ++frame) {
    const std::string picture = DrawMap(episode, std::min(first + frame, episode.states.size() - 1));
    if (absl::Status status = WriteFileAtomically(folder.File(frame), picture); !status.ok()) return status;
  }
  auto video = VideoWriter::StartFromFiles(path, folder.Pattern(), kMapFramesPerSecond);
  return video.ok() ? (*video)->Finish() : video.status();
}

absl::Status FilmScene(const std::string& path, const RecordedEpisode& episode) {
  auto renderer = OffscreenRenderer::Make(episode.spec.id, kSceneWidth, kSceneHeight, episode.options.mujoco);
  if (!renderer.ok()) return renderer.status();
  auto video = VideoWriter::Start(path, kSceneWidth, kSceneHeight, (*renderer)->frames_per_second());
  if (!video.ok()) return video.status();
  std::vector<uint8_t> rgb(size_t{kSceneWidth} * kSceneHeight * 3);
  for (const std::vector<double>& state : episode.states) {
    (*renderer)->Render(state.data(), rgb.data());
    if (absl::Status status = (*video)->Write(rgb.data()); !status.ok()) return status;
  }
  return (*video)->Finish();
}

absl::Status DrawMoments(const std::string& path, const RecordedEpisode& episode) {
  auto renderer = OffscreenRenderer::Make(episode.spec.id, kSceneWidth, kSceneHeight, episode.options.mujoco);
  if (!renderer.ok()) return renderer.status();
  constexpr int kMoments = kColumns * kRows;
  constexpr size_t kLine = size_t{kSceneWidth} * 3;  // Bytes.
  std::vector<uint8_t> rgb(kLine * kSceneHeight), picture(rgb.size() * kMoments);
  for (int moment = 0; moment < kMoments; ++moment) {
    (*renderer)->Render(episode.states[(episode.states.size() - 1) * moment / (kMoments - 1)].data(), rgb.data());
    const size_t row = moment / kColumns, column = moment % kColumns;
    for (size_t y = 0; y < kSceneHeight; ++y) {
      std::copy_n(rgb.data() + y * kLine, kLine,
                  picture.data() + ((row * kSceneHeight + y) * kColumns + column) * kLine);
    }
  }
  auto video = VideoWriter::Start(path, kColumns * kSceneWidth, kRows * kSceneHeight, 1);
  if (!video.ok()) return video.status();
  if (absl::Status status = (*video)->Write(picture.data()); !status.ok()) return status;
  return (*video)->Finish();
}

}  // namespace

absl::Status CheckRender(const std::string& path, const std::string& env_id) {
  const bool svg = absl::EndsWith(path, ".svg");
  if (!svg && !absl::EndsWith(path, ".mp4") && !absl::EndsWith(path, ".png")) {
    return absl::InvalidArgumentError(
        absl::StrCat("--render: got ", path, ", want a name that ends in .mp4, .png or .svg"));
  }
  const EnvDrawing drawing = FindEnvExtras(env_id).drawing;
  if (drawing == EnvDrawing::kNone || (svg && drawing != EnvDrawing::kMap)) {
    return absl::InvalidArgumentError(
        absl::StrCat("--render ", path, ": there is no such picture of ", env_id,
                     "; .svg is for the UAV environments, .mp4 and .png for those of MuJoCo too"));
  }
  const std::string parent = std::filesystem::path(path).parent_path().string();
  if (access(parent.empty() ? "." : parent.c_str(), W_OK) != 0) {
    return SystemError(errno, absl::StrCat("cannot create ", path));
  }
  if (!svg) {
    if (const auto ffmpeg = FindFfmpeg(); !ffmpeg.ok()) return ffmpeg.status();
  }
  if (drawing == EnvDrawing::kScene) return OffscreenRenderer::Make(env_id, kSceneWidth, kSceneHeight).status();
  return absl::OkStatus();
}

absl::Status RenderEpisode(const std::string& path, const RecordedEpisode& episode) {
  if (absl::EndsWith(path, ".svg")) {
    return WriteFileAtomically(path, DrawMap(episode, episode.states.size() - 1));
  }
  const bool film = absl::EndsWith(path, ".mp4");
  if (FindEnvExtras(episode.spec.id).drawing == EnvDrawing::kMap)
    return FilmMap(path, episode, film ? 0 : episode.states.size() - 1);
  return film ? FilmScene(path, episode) : DrawMoments(path, episode);
}

}  // namespace skein
