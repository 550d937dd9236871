// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <unistd.h>

#include <filesystem>
#include <string>
#include <system_error>

namespace skein::fuzz {

// A new folder of this process, in memory where that can be had, removed at its end.
class Scratch {
 public:
  explicit Scratch(const std::string& name)
      : path_(Memory() / ("skein-fuzz-" + name + "-" + std::to_string(getpid()))) {
    std::filesystem::remove_all(path_);
    std::filesystem::create_directories(path_);
  }
  ~Scratch() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  const std::string& path() const { return path_; }

 private:
  static std::filesystem::path Memory() {
    const std::filesystem::path memory = "/dev/shm";
    return access(memory.c_str(), W_OK) == 0 ? memory : std::filesystem::temp_directory_path();
  }
  const std::string path_;
};

}  // namespace skein::fuzz
