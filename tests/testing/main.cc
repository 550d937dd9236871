// SPDX-License-Identifier: Apache-2.0
// main() of every test program. --files=a/b_test.cc,c/d_test.cc, paths below tests/, runs the tests that these files
// define; without it, or with --gtest_filter, googletest's own flags choose. Exit code 2 if one of the files defines no
// test.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <string>
#include <string_view>

namespace {

// The tests of a file as a part of googletest's filter. What __FILE__ begins with depends on how the compiler was
// called.
std::string TestsOf(std::string_view file) {
  const std::string end = "/tests/" + std::string(file);
  const testing::UnitTest& all = *testing::UnitTest::GetInstance();
  std::string filter;
  for (int s = 0; s < all.total_test_suite_count(); ++s) {
    const testing::TestSuite& suite = *all.GetTestSuite(s);
    for (int t = 0; t < suite.total_test_count(); ++t) {
      const testing::TestInfo& test = *suite.GetTestInfo(t);
      if (std::string_view(test.file()).ends_with(end)) {
        filter += std::string(suite.name()) + "." + test.name() + ":";
      }
    }
  }
  return filter;
}

}  // namespace

int main(int argc, char** argv) {
  testing::InitGoogleMock(&argc, argv);
  for (int i = 1; i < argc; ++i) {
    std::string_view files = argv[i];
    constexpr std::string_view kFlag = "--files=";
    if (!files.starts_with(kFlag)) {
      std::fprintf(stderr, "unknown argument %s\n", argv[i]);
      return 2;
    }
    std::string filter;
    for (files.remove_prefix(kFlag.size()); !files.empty();) {
      const std::string_view file = files.substr(0, files.find(','));
      const std::string tests = TestsOf(file);
      if (tests.empty()) {
        std::fprintf(stderr, "tests/%s defines no test\n", std::string(file).c_str());
        return 2;
      }
      filter += tests;
      files.remove_prefix(std::min(files.size(), file.size() + 1));
    }
    if (testing::GTEST_FLAG(filter) == "*") testing::GTEST_FLAG(filter) = filter;
  }
  return RUN_ALL_TESTS();
}
