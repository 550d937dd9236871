// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace skein {

// Path of ffmpeg on this machine. Unavailable: there is none in PATH; says what to install.
absl::StatusOr<std::string> FindFfmpeg();

// Pictures to an MP4 (H.264), through a pipe to ffmpeg. A file of that name is there once Finish has said ok, and never
// a part of one. Not thread-safe.
class VideoWriter {
 public:
  // Sizes are even. Unavailable: as FindFfmpeg. Internal: the system refused to start it.
  static absl::StatusOr<std::unique_ptr<VideoWriter>> Start(const std::string& path, int width, int height,
                                                            int frames_per_second);
  // Stops ffmpeg and removes what it wrote unless Finish was called.
  ~VideoWriter();

  // rgb: [height, width, 3]. Internal: ffmpeg ended early; it has printed why.
  absl::Status Write(const uint8_t* rgb);
  // Waits for ffmpeg and moves the film into place. Internal: it failed; it has printed why. As SystemError: the file
  // cannot be there.
  absl::Status Finish();

 private:
  VideoWriter(std::string path, size_t frame_bytes);
  absl::Status Failed();

  const std::string path_, partial_path_;
  const size_t frame_bytes_;
  pid_t pid_ = -1;
  int input_ = -1;
};

}  // namespace skein
