// SPDX-License-Identifier: Apache-2.0
#include "coordinator/status_page.h"

#include "coordinator/page/embedded.h"

namespace skein {

namespace {

constexpr char kText[] = "text/plain; charset=utf-8";
constexpr char kScript[] = "text/javascript; charset=utf-8";
constexpr char kStyle[] = "text/css; charset=utf-8";

}  // namespace

const std::vector<StatusPageFile>& StatusPageFiles() {
  static const auto* const files = new std::vector<StatusPageFile>{
      {"/", "text/html; charset=utf-8", embedded::index_html()},
      {"/page/skein.css", kStyle, embedded::skein_css()},
      {"/page/skein.js", kScript, embedded::skein_js()},
      {"/page/charts.js", kScript, embedded::charts_js()},
      {"/page/log.js", kScript, embedded::log_js()},
      {"/page/uplot.css", kStyle, embedded::uPlot_min_css()},
      {"/page/uplot.js", kScript, embedded::uPlot_iife_min_js()},
      {"/page/uplot-license", kText, embedded::LICENSE()},
      {"/docs/metrics", kText, embedded::metrics_md()},
      {"/docs/tuning", kText, embedded::tuning_md()},
  };
  return *files;
}

}  // namespace skein
