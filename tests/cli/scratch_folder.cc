// SPDX-License-Identifier: Apache-2.0
#include "tests/cli/scratch_folder.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "gtest/gtest.h"

namespace skein {

ScratchFolder::ScratchFolder() : path_(testing::TempDir() + "/skein-cli-XXXXXX") {
  EXPECT_NE(mkdtemp(path_.data()), nullptr);
}

ScratchFolder::~ScratchFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::string ScratchFolder::Write(const std::string& name, const std::string& text) const {
  const std::filesystem::path file = path_ + "/" + name;
  std::filesystem::create_directories(file.parent_path());
  std::ofstream(file) << text;
  return file;
}

std::string ScratchFolder::WriteScript(const std::string& name, const std::string& body) const {
  const std::string file = Write(name, "#!/bin/sh\n" + body);
  std::filesystem::permissions(file, std::filesystem::perms::owner_all);
  return file;
}

std::string ScratchFolder::Read(const std::string& name) const {
  std::ifstream file(path_ + "/" + name);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace skein
