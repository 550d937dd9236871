// SPDX-License-Identifier: Apache-2.0
#include "eval/render_video.h"

#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/process/system_error.h"

namespace skein {

absl::StatusOr<std::string> FindFfmpeg() {
  const char* const path = std::getenv("PATH");
  const std::vector<std::string> folders = absl::StrSplit(path == nullptr ? "" : path, ':');
  for (const std::string& folder : folders) {
    const std::string program = folder + "/ffmpeg";
    if (!folder.empty() && access(program.c_str(), X_OK) == 0) return program;
  }
  return absl::UnavailableError(
      "drawing an .mp4 or .png needs the program ffmpeg, which is not there (Debian: ffmpeg)");
}

VideoWriter::VideoWriter(std::string path, size_t frame_bytes)
    : path_(std::move(path)),
      partial_path_(absl::StrCat(path_, ".", getpid(), ".partial")),
      frame_bytes_(frame_bytes) {}

absl::StatusOr<std::unique_ptr<VideoWriter>> VideoWriter::Start(const std::string& path, int width, int height,
                                                                int frames_per_second) {
  return StartFfmpeg(path, size_t(width) * height * 3,
                     {"-f", "rawvideo", "-pixel_format", "rgb24", "-video_size", absl::StrCat(width, "x", height),
                      "-framerate", absl::StrCat(frames_per_second), "-i", "pipe:0"});
}

absl::StatusOr<std::unique_ptr<VideoWriter>> VideoWriter::StartFromFiles(const std::string& path,
                                                                         const std::string& pattern,
                                                                         int frames_per_second) {
  return StartFfmpeg(path, 0, {"-f", "image2", "-framerate", absl::StrCat(frames_per_second), "-i", "file:" + pattern});
}

absl::StatusOr<std::unique_ptr<VideoWriter>> VideoWriter::StartFfmpeg(const std::string& path, size_t frame_bytes,
                                                                      const std::vector<std::string>& input) {
  const auto program = FindFfmpeg();
  if (!program.ok()) return program.status();
  std::unique_ptr<VideoWriter> writer(new VideoWriter(path, frame_bytes));
  // ffmpeg reads "file:" as a path whatever is in it. A socket in place of a pipe can be written to without SIGPIPE.
  std::vector<std::string> arguments = {*program, "-hide_banner", "-loglevel", "error", "-y"};
  arguments.insert(arguments.end(), input.begin(), input.end());
  const std::vector<std::string> film = {"-c:v",      "libx264",    "-pix_fmt", "yuv420p",
                                         "-movflags", "+faststart", "-f",       "mp4"};
  const std::vector<std::string> picture = {"-frames:v", "1", "-c:v", "png", "-f", "image2pipe"};
  const std::vector<std::string>& output = absl::EndsWith(path, ".png") ? picture : film;
  arguments.insert(arguments.end(), output.begin(), output.end());
  arguments.push_back("file:" + writer->partial_path_);
  std::vector<char*> argv;
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    return absl::InternalError(absl::StrCat("cannot make a pipe for ffmpeg: ", strerror(errno)));
  }
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, STDERR_FILENO, STDOUT_FILENO);
  const int error = posix_spawn(&writer->pid_, argv[0], &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  writer->input_ = ends[0];
  if (error != 0) {
    writer->pid_ = -1;
    return absl::InternalError(absl::StrCat("cannot start ", *program, ": ", strerror(error)));
  }
  return writer;
}

VideoWriter::~VideoWriter() {
  if (input_ >= 0) close(input_);
  if (pid_ < 0) return;
  kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
  unlink(partial_path_.c_str());
}

absl::Status VideoWriter::Failed() { return absl::InternalError(absl::StrCat("ffmpeg could not make ", path_)); }

absl::Status VideoWriter::Write(const uint8_t* rgb) {
  for (size_t written = 0; written < frame_bytes_;) {
    const ssize_t sent = send(input_, rgb + written, frame_bytes_ - written, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0) return Failed();
    written += static_cast<size_t>(sent);
  }
  return absl::OkStatus();
}

absl::Status VideoWriter::Finish() {
  close(std::exchange(input_, -1));
  int state = 0;
  while (waitpid(pid_, &state, 0) < 0 && errno == EINTR) {
  }
  pid_ = -1;
  absl::Status status;
  if (!WIFEXITED(state) || WEXITSTATUS(state) != 0) {
    status = Failed();
  } else if (rename(partial_path_.c_str(), path_.c_str()) != 0) {
    status = SystemError(errno, absl::StrCat("cannot create ", path_));
  }
  if (!status.ok()) unlink(partial_path_.c_str());
  return status;
}

}  // namespace skein
