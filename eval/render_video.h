// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

// Writes films and pictures with ffmpeg.
namespace skein {

// Path of ffmpeg on this machine. Unavailable: there is none in PATH; says what to install.
absl::StatusOr<std::string> FindFfmpeg();

// Encodes pictures as an MP4 (H.264), or the first one as a PNG if the path ends in .png, through a pipe to ffmpeg. The
// file appears when Finish() succeeds, never in part.
// Not thread-safe.
class VideoWriter {
 public:
  // Starts a film of pictures passed to Write(). REQUIRES: sizes are even. Unavailable: as FindFfmpeg. Internal: the
  // system could not start it.
  static absl::StatusOr<std::unique_ptr<VideoWriter>> Start(const std::string& path, int width, int height,
                                                            int frames_per_second);
  // Starts a film of picture files that ffmpeg draws. Their names are `pattern` with a number from 0, e.g.
  // "/tmp/a/%06d.svg". Write() is not used. Errors as Start.
  static absl::StatusOr<std::unique_ptr<VideoWriter>> StartFromFiles(const std::string& path,
                                                                     const std::string& pattern, int frames_per_second);
  // Stops ffmpeg and removes what it wrote unless Finish was called.
  ~VideoWriter();

  // rgb: [height, width, 3]. REQUIRES: made by Start. Internal: ffmpeg ended early; it has printed why.
  absl::Status Write(const uint8_t* rgb);
  // Waits for ffmpeg and moves the film into place. Internal: ffmpeg failed; it has printed why. As SystemError: the
  // file cannot be moved there.
  absl::Status Finish();

 private:
  VideoWriter(std::string path, size_t frame_bytes);
  static absl::StatusOr<std::unique_ptr<VideoWriter>> StartFfmpeg(const std::string& path, size_t frame_bytes,
                                                                  const std::vector<std::string>& input);
  absl::Status Failed();

  const std::string path_, partial_path_;
  const size_t frame_bytes_;
  pid_t pid_ = -1;
  int input_ = -1;
};

}  // namespace skein
