// SPDX-License-Identifier: Apache-2.0
#include "base/telemetry/log.h"

#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/process/message_text.h"
#include "base/process/no_links.h"
#include "google/protobuf/stubs/logging.h"
#include "nlohmann/json.hpp"
#include "spdlog/pattern_formatter.h"
#include "spdlog/sinks/base_sink.h"
#include "spdlog/sinks/stdout_color_sinks.h"

namespace skein {
namespace {

class JsonFormatter : public spdlog::formatter {
 public:
  void format(const spdlog::details::log_msg& message, spdlog::memory_buf_t& out) override {
    const auto text = [](spdlog::string_view_t view) { return std::string(view.data(), view.size()); };
    nlohmann::ordered_json line;
    line["time"] = absl::FormatTime("%Y-%m-%dT%H:%M:%E3SZ", absl::FromChrono(message.time), absl::UTCTimeZone());
    line["level"] = text(spdlog::level::to_string_view(message.level));
    line["program"] = text(message.logger_name);
    line["message"] = text(message.payload);
    // Bytes that are not UTF-8 are replaced, so that dump() does not throw.
    const std::string dumped = line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
    out.append(dumped.data(), dumped.data() + dumped.size());
  }

  std::unique_ptr<spdlog::formatter> clone() const override { return std::make_unique<JsonFormatter>(); }
};

// Appends each message to a file by one system call, so that lines of several processes do not mix.
class JsonFileSink : public spdlog::sinks::base_sink<std::mutex> {
 public:
  // Takes ownership of `fd`, which was opened to append.
  explicit JsonFileSink(int fd) : base_sink(std::make_unique<JsonFormatter>()), fd_(fd) {}
  ~JsonFileSink() override { close(fd_); }

 protected:
  void sink_it_(const spdlog::details::log_msg& message) override {
    spdlog::memory_buf_t line;
    formatter_->format(message, line);
    const char* left = line.data();
    while (left < line.data() + line.size()) {
      const ssize_t written = write(fd_, left, static_cast<size_t>(line.data() + line.size() - left));
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) spdlog::throw_spdlog_ex("cannot write the log", errno);  // spdlog says so, once a second.
      left += written;
    }
  }
  void flush_() override {}

 private:
  const int fd_;
};

// The message for a terminal: %v without control characters.
class OneLineMessage : public spdlog::custom_flag_formatter {
 public:
  void format(const spdlog::details::log_msg& message, const std::tm&, spdlog::memory_buf_t& out) override {
    const std::string line = OneLine({message.payload.data(), message.payload.size()});
    out.append(line.data(), line.data() + line.size());
  }

  std::unique_ptr<spdlog::custom_flag_formatter> clone() const override { return std::make_unique<OneLineMessage>(); }
};

}  // namespace

void InitLog(const std::string& program, const std::string& json_path) {
  auto terminal = std::make_shared<spdlog::sinks::stderr_color_sink_mt>();
  auto lines = std::make_unique<spdlog::pattern_formatter>();
  lines->add_flag<OneLineMessage>('*').set_pattern("%H:%M:%S.%e %^%-5l%$ [%n] %*");
  terminal->set_formatter(std::move(lines));
  std::vector<spdlog::sink_ptr> sinks = {terminal};
  std::string problem;
  if (!json_path.empty()) {
    const std::string folder = std::filesystem::path(json_path).parent_path();
    const absl::Status made = folder.empty() ? absl::OkStatus() : MakeFolder(folder);
    const absl::StatusOr<int> file = made.ok() ? OpenForAppend(json_path) : made;
    if (file.ok()) {
      sinks.push_back(std::make_shared<JsonFileSink>(*file));
    } else {
      problem = absl::StrCat(made.ok() ? "" : absl::StrCat("cannot write ", json_path, ": "), file.status().message());
    }
  }
  auto logger = std::make_shared<spdlog::logger>(program, sinks.begin(), sinks.end());
  logger->flush_on(spdlog::level::info);
  const char* level = std::getenv("SKEIN_LOG");
  // An unknown name reads as off, which is never what was meant.
  const spdlog::level::level_enum parsed = spdlog::level::from_str(level == nullptr ? "info" : level);
  logger->set_level(parsed == spdlog::level::off ? spdlog::level::info : parsed);
  spdlog::set_default_logger(std::move(logger));
  // Protobuf would write a line for each text that is not UTF-8, as often as one is received; the parser's caller says
  // so.
  google::protobuf::SetLogHandler(nullptr);
  if (!problem.empty()) spdlog::warn("logging to standard error only: {}", problem);
}

}  // namespace skein
