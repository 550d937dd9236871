// SPDX-License-Identifier: Apache-2.0
#include "tests/testing/scrape.h"

#include <cstdlib>
#include <limits>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "tests/testing/http_get.h"

namespace skein {

double Scrape(int port, const std::string& series) {
  const std::string page = HttpGet(port, "/metrics").body;
  for (absl::string_view line : absl::StrSplit(page, '\n')) {
    if (!absl::StartsWith(line, absl::StrCat(series, " "))) continue;
    return std::strtod(std::string(line.substr(series.size() + 1)).c_str(), nullptr);
  }
  return std::numeric_limits<double>::quiet_NaN();
}

}  // namespace skein
