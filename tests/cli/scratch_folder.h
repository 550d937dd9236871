// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace skein {

// A new empty folder, removed with all that is in it at the end of its scope.
class ScratchFolder {
 public:
  ScratchFolder();
  ~ScratchFolder();
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;

  const std::string& path() const { return path_; }
  // Writes path()/name, folders included, and returns its path.
  std::string Write(const std::string& name, const std::string& text) const;
  // The same, executable: a stand-in for a program.
  std::string WriteScript(const std::string& name, const std::string& body) const;
  // Empty if there is no such file.
  std::string Read(const std::string& name) const;

 private:
  std::string path_;
};

}  // namespace skein
