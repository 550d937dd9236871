// SPDX-License-Identifier: Apache-2.0
#include "base/telemetry/log.h"

#include <cstdlib>
#include <memory>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "base/process/message_text.h"
#include "google/protobuf/stubs/logging.h"
#include "nlohmann/json.hpp"
#include "spdlog/pattern_formatter.h"
#include "spdlog/sinks/basic_file_sink.h"
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
    try {
      auto file = std::make_shared<spdlog::sinks::basic_file_sink_mt>(json_path);
      file->set_formatter(std::make_unique<JsonFormatter>());
      sinks.push_back(std::move(file));
    } catch (const spdlog::spdlog_ex& error) {
      problem = error.what();
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
