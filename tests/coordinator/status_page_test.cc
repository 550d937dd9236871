// SPDX-License-Identifier: Apache-2.0
#include "coordinator/status_page.h"

#include <regex>
#include <set>
#include <string>

#include "base/process/file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace skein {
namespace {

using testing::HasSubstr;

std::string BytesOf(const std::string& path) {
  for (const StatusPageFile& file : StatusPageFiles()) {
    if (file.path == path) return std::string(file.bytes);
  }
  ADD_FAILURE() << "nothing is served at " << path;
  return "";
}

TEST(StatusPageFiles, AreTheFilesOfTheTreeByteByByte) {
  const std::pair<const char*, const char*> files[] = {{"/", "coordinator/page/index.html"},
                                                       {"/page/skein.css", "coordinator/page/skein.css"},
                                                       {"/page/skein.js", "coordinator/page/skein.js"},
                                                       {"/page/charts.js", "coordinator/page/charts.js"},
                                                       {"/page/log.js", "coordinator/page/log.js"},
                                                       {"/page/uplot.js", "third_party/uplot/uPlot.iife.min.js"},
                                                       {"/page/uplot.css", "third_party/uplot/uPlot.min.css"},
                                                       {"/page/uplot-license", "third_party/uplot/LICENSE"},
                                                       {"/docs/metrics", "docs/metrics.md"},
                                                       {"/docs/tuning", "docs/tuning.md"}};
  EXPECT_EQ(StatusPageFiles().size(), std::size(files));
  for (const auto& [path, file] : files) {
    const auto bytes = ReadFile(file);  // Tests run in the root of the tree.
    ASSERT_TRUE(bytes.ok()) << bytes.status();
    EXPECT_EQ(BytesOf(path), *bytes) << path;
  }
}

TEST(StatusPageFiles, ThePageNeedsNothingThatIsNotServed) {
  std::set<std::string> paths;
  for (const StatusPageFile& file : StatusPageFiles()) paths.insert(file.path);
  for (const char* path : {"/metrics", "/api/status", "/api/history", "/api/log", "/api/config", "/sd/prometheus"})
    paths.insert(path);
  const std::string page = BytesOf("/");
  const std::regex reference("(?:href|src)=\"([^\"]*)\"");
  int references = 0;
  for (std::sregex_iterator it(page.begin(), page.end(), reference), end; it != end; ++it) {
    const std::string target = (*it)[1];
    ++references;
    EXPECT_TRUE(paths.count(target) == 1 || target.rfind("data:", 0) == 0) << target;
  }
  EXPECT_GT(references, 8);
}

TEST(StatusPageFiles, ThePageForbidsTheBrowserEverythingElse) {
  const std::string page = BytesOf("/");
  EXPECT_THAT(page, HasSubstr("default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'"));
  EXPECT_THAT(page, HasSubstr("width=device-width"));
}

TEST(StatusPageFiles, WhatMembersReportIsNeverMarkup) {
  for (const char* path : {"/page/skein.js", "/page/charts.js", "/page/log.js"}) {
    const std::string script = BytesOf(path);
    for (const char* way : {"innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval("}) {
      EXPECT_EQ(script.find(way), std::string::npos) << path << " uses " << way;
    }
  }
}

}  // namespace
}  // namespace skein
