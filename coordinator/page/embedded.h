// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/strings/string_view.h"

// The bytes of files, made by cmake/embed_files.cmake: FILE.EXT is file_ext() with other characters as underscores.
namespace skein::embedded {

absl::string_view index_html();
absl::string_view skein_css();
absl::string_view skein_js();
absl::string_view charts_js();
absl::string_view uPlot_min_css();
absl::string_view uPlot_iife_min_js();
absl::string_view LICENSE();
absl::string_view metrics_md();
absl::string_view tuning_md();

}  // namespace skein::embedded
