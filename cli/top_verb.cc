// SPDX-License-Identifier: Apache-2.0
// skein top: shows a run and its members, refreshed periodically.
#include <poll.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "base/command/arguments.h"
#include "base/net/grpc_transport.h"
#include "base/process/clock.h"
#include "base/process/exit_code.h"
#include "base/process/message_text.h"
#include "base/process/shutdown.h"
#include "base/process/terminal.h"
#include "cli/member_text.h"
#include "cli/progress_text.h"
#include "cli/status_json.h"
#include "cli/verbs.h"
#include "launch/status_client.h"

namespace skein {
namespace {

constexpr absl::Duration kStatusDeadline = absl::Seconds(3);
constexpr size_t kFramesCompared = 10;

struct TopOptions {
  std::string address = kDefaultAddress;
  std::string interval = "1s";
  uint64_t count = 0;
  bool json = false;
};

// The terminal's alternate screen, without echo. The destructor restores the terminal and prints the last frame.
class Screen {
 public:
  Screen() {
    tcgetattr(STDIN_FILENO, &before_);
    termios raw = before_;
    raw.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
    raw.c_cc[VMIN] = 0;
    raw.c_cc[VTIME] = 0;
    tcsetattr(STDIN_FILENO, TCSANOW, &raw);
    std::fputs("\x1b[?1049h\x1b[?25l", stdout);
  }
  ~Screen() {
    std::fputs("\x1b[?25h\x1b[?1049l", stdout);
    for (const std::string& line : frame_) std::fprintf(stdout, "%s\n", line.c_str());
    std::fflush(stdout);
    tcsetattr(STDIN_FILENO, TCSANOW, &before_);
  }
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;

  void Draw(std::vector<std::string> frame) {
    std::string text = "\x1b[H";
    for (size_t i = 0; i < frame.size(); ++i) absl::StrAppend(&text, i > 0 ? "\r\n" : "", frame[i], "\x1b[K");
    std::fputs((text + "\r\nq to quit\x1b[K\x1b[J").c_str(), stdout);
    std::fflush(stdout);
    frame_ = std::move(frame);
  }

 private:
  termios before_{};
  std::vector<std::string> frame_;
};

// A signal as something to wait for together with keys.
class Stop {
 public:
  Stop() {
    if (pipe(pipe_) != 0) pipe_[0] = pipe_[1] = -1;
    signal_.OnSignal([this] { [[maybe_unused]] const ssize_t written = write(pipe_[1], "", 1); });
  }
  ~Stop() {
    signal_.OnSignal({});
    close(pipe_[0]);
    close(pipe_[1]);
  }
  Stop(const Stop&) = delete;
  Stop& operator=(const Stop&) = delete;

  // Whether a signal, or with `keys` q, came within `timeout`.
  bool Wait(absl::Duration timeout, bool keys) {
    const absl::Duration until = MonotonicNow() + timeout;
    while (true) {
      pollfd fds[2] = {{pipe_[0], POLLIN, 0}, {STDIN_FILENO, POLLIN, 0}};
      const absl::Duration left = std::max(until - MonotonicNow(), absl::ZeroDuration());
      const int ready = poll(fds, keys ? 2 : 1, static_cast<int>(absl::ToInt64Milliseconds(left)));
      if (signal_.signalled()) return true;
      if (ready <= 0) {
        if (left == absl::ZeroDuration()) return false;
        continue;
      }
      if (!keys || fds[1].revents == 0) continue;
      char key = 0;
      if (read(STDIN_FILENO, &key, 1) <= 0 || key == 'q' || key == 'Q') return true;
    }
  }

 private:
  ShutdownSignal signal_;
  int pipe_[2];
};

winsize TerminalSize() {
  winsize size{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0 || size.ws_row == 0) return {24, 80, 0, 0};
  return size;
}

absl::Status Show(const TopOptions& options) {
  if (const auto address = ParseAddresses(options.address); !address.ok()) {
    return absl::InvalidArgumentError(absl::StrCat("--address: ", address.status().message()));
  }
  absl::Duration interval;
  if (!absl::ParseDuration(options.interval, &interval) || interval < absl::Milliseconds(100) ||
      interval > absl::Hours(1)) {
    return absl::InvalidArgumentError(
        absl::StrCat("--interval: got ", Quoted(options.interval), ", want a duration from 100ms to 1h"));
  }
  Stop stop;
  const StatusClient client(options.address);
  auto status = client.Get(kStatusDeadline);
  if (!status.ok()) return status.status();  // Later failures are tolerated.
  const bool terminal = !options.json && TerminalWidth(stdout) > 0 && isatty(STDIN_FILENO) != 0;
  std::optional<Screen> screen;
  if (terminal) screen.emplace();
  std::deque<v1::StatusResponse> recent;  // Reports are rarer than frames: shares cover several.
  for (uint64_t frame = 1;; ++frame) {
    const std::string away = status.ok() ? "" : std::string(status.status().message());
    if (status.ok()) recent.push_back(*std::move(status));
    if (recent.size() > kFramesCompared) recent.pop_front();
    const winsize size = terminal ? TerminalSize() : winsize{};
    std::vector<std::string> lines =
        FormatTop(recent.back(), recent.size() > 1 ? &recent.front() : nullptr,
                  terminal ? size.ws_col : kUnlimitedWidth, terminal ? size.ws_row - 1 : kUnlimitedWidth);
    if (options.json) {
      auto line = StatusAsJson(recent.back());
      if (!line.ok()) return line.status();
      lines = {*std::move(line)};
    }
    if (!away.empty() && !options.json) lines.front() = absl::StrCat("trying on: ", away);
    if (screen) {
      screen->Draw(std::move(lines));
    } else {
      for (const std::string& line : lines) std::printf("%s\n", line.c_str());
      if (!options.json) std::printf("\n");
      if (std::fflush(stdout) != 0) return absl::OkStatus();  // main() says so.
    }
    if (frame == options.count || stop.Wait(interval, terminal)) return absl::OkStatus();
    status = client.Get(kStatusDeadline);
  }
}

}  // namespace

void AddTop(CLI::App* app, Action* action) {
  CLI::App* verb = app->add_subcommand("top", "Watch a run: progress, members, where their time goes; q quits");
  auto options = std::make_shared<TopOptions>();
  verb->add_option("--address", options->address, "The head's HOST:PORT")->capture_default_str();
  verb->add_option("--interval", options->interval, "Time between two frames")->capture_default_str();
  verb->add_option("--count", options->count, "End after this many frames, 0 = go on")
      ->transform(WholeNumber())
      ->capture_default_str();
  verb->add_flag("--json", options->json, "Print a line of JSON for each frame (skein.v1.StatusResponse)");
  verb->footer(
      "Without a terminal each frame is printed below the last one.\n"
      "Example:\n  skein top --address 10.0.0.1:7070");
  verb->callback([options, action] { *action = [options] { return ReportAndExitCode("skein top", Show(*options)); }; });
}

}  // namespace skein
