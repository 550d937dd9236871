// SPDX-License-Identifier: Apache-2.0
#include "bench/scaling_dashboard.h"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/time/time.h"
#include "base/process/file.h"
#include "base/process/subprocess.h"

namespace skein {
namespace {

constexpr absl::Duration kDrawLimit = absl::Minutes(1);

// @NAMES@ are filled in by DashboardScript().
constexpr char kScript[] = R"(# Draws dashboard.png from dashboard.dat:  gnuplot dashboard.gp
set terminal pngcairo size 1800,1080 font "DejaVu Sans,11" background "#ffffff"
set output "dashboard.png"
set datafile separator "\t"
set datafile missing "?"
set key autotitle columnhead
data = "dashboard.dat"

ours = "#1f6fb4"; ideal = "#8a8a8a"; law = "#d1495b"; other = "#edae49"; physical = "#2e8b57"
set border 3 lc rgb "#666666"
set tics nomirror textcolor rgb "#333333"
set grid ytics lc rgb "#e4e4e4" lt 1
set style fill solid 0.85 noborder
set boxwidth 0.62
set key top left reverse Left samplen 2 spacing 1.1
set multiplot layout 2,3 title "@TITLE@" font "DejaVu Sans,16" offset 0,-0.3 \
       margins 0.045,0.985,0.075,0.90 spacing 0.055,0.15

set logscale x 2
set xrange [0.9:@MAX@*2.2]
set xlabel "environments"
set logscale y 2
set yrange [@LOW@:@MAX@*1.3]
set title "Speed-up against one environment"
plot [0.9:@MAX@*2.2] (x <= @MAX@ ? x : NaN) with lines dt 2 lc rgb ideal title "ideal", \
     @LAWS@data using "environments":"speed_up" with points pt 7 ps 1.4 lc rgb ours title "measured", \
     data using "environments":"speed_up":"speed_up_label" \
       with labels left offset 1,-0.2 font ",9" tc rgb "#444444" notitle

unset logscale y
set yrange [0:@TOP@]
set key top right noreverse Right
set title "Parallel efficiency in %"
plot 60 with lines dt 3 lc rgb ideal title "60 %", \
     data using "environments":"limit_percent" with points pt 9 ps 1.3 lc rgb physical title "of the physical limit", \
     data using "environments":"efficiency_percent" with points pt 7 ps 1.4 lc rgb ours title "of ideal speed-up", \
     data using "environments":"efficiency_percent":"efficiency_label" \
       with labels left offset 1,0 font ",9" tc rgb "#444444" notitle

unset logscale x
set xrange [-0.6:@COUNT@-0.4]
set xlabel "runners x environments of each"
@ROTATE@set yrange [0:*]
set title "Time per iteration in s, with standard deviation"
plot data using 0:"seconds":xtic(1) with boxes lc rgb ours notitle, \
     data using 0:(column("seconds")-column("deviation")):(0):(2*column("deviation")) \
       with vectors nohead lw 2 lc rgb "#222222" notitle

set yrange [0:108]
set title "CPU in %, all cores: average, and from least to most"
plot 70 with lines dt 3 lc rgb ideal title "70 %", \
     data using 0:"cpu_average":xtic(1) with boxes lc rgb other notitle, \
     data using 0:"cpu_min":(0):(column("cpu_max")-column("cpu_min")) with vectors nohead lw 2 lc rgb "#222222" notitle

@GPU@
set yrange [0:@RATE@]
set key top left reverse Left
set title "Env-steps/s in thousands"
plot data using 0:(column("rate")/1000):xtic(1) with boxes lc rgb ours notitle, \
     data using 0:(column("limit")/1000) with points pt 9 ps 1.3 lc rgb physical title "physical limit of its threads"
unset multiplot
)";

constexpr char kGpuChart[] = R"(set title "GPU in %: average, and the most"
plot data using 0:"gpu_average":xtic(1) with boxes lc rgb other notitle, \
     data using 0:"gpu_average":(0):(column("gpu_max")-column("gpu_average")) \
       with vectors nohead lw 2 lc rgb "#222222" notitle
)";

// An empty frame that says why it is empty.
constexpr char kNoGpuChart[] = R"(set title "GPU"
unset xtics
unset xlabel
set label 1 "@REASON@" at graph 0.5,0.5 center textcolor rgb "#777777"
plot -1 with lines notitle
unset label 1
set xtics nomirror textcolor rgb "#333333" @ROTATED@
set xlabel "runners x environments of each"
)";

// For a gnuplot string in double quotes, in which an underscore would lower the next letter.
std::string Escaped(const std::string& text) {
  return absl::StrReplaceAll(text, {{"\\", "/"}, {"\"", "'"}, {"_", "\\\\_"}, {"\n", " "}});
}

std::string LawFunction(const ScalingLaw& law) {
  return absl::StrFormat("x/(1+%.8g*(x-1)+%.8g*x*(x-1))", law.sigma, law.kappa);
}

// One label for points of the same number of environments that lie closer to each other than `distance`: at the first
// of them, with all their names. A quoted space for the others: gnuplot takes nothing for the label before.
template <typename Height>
std::vector<std::string> Labels(const std::vector<ScalingRow>& rows, const Height& height, double distance) {
  std::vector<std::string> labels(rows.size(), "\" \"");
  std::vector<bool> labelled(rows.size());
  for (size_t i = 0; i < rows.size(); ++i) {
    if (labelled[i]) continue;
    std::vector<std::string> names;
    for (size_t j = i; j < rows.size(); ++j) {
      const bool near = std::abs(height(rows[i]) - height(rows[j])) < distance;
      if (labelled[j] || rows[j].point.environments() != rows[i].point.environments() || !near) continue;
      labelled[j] = true;
      names.push_back(rows[j].point.name());
    }
    labels[i] = absl::StrJoin(names, ", ");
  }
  return labels;
}

}  // namespace

std::string DashboardData(const ScalingAnalysis& analysis) {
  const auto speed_up_label = Labels(
      analysis.rows, [](const ScalingRow& row) { return std::log2(std::max(row.speed_up, 1e-3)); }, 0.25);
  const auto efficiency_label = Labels(
      analysis.rows, [](const ScalingRow& row) { return 100 * row.efficiency; }, 5);
  const auto figure = [](const std::optional<double>& value) { return value ? absl::StrFormat("%.6g", *value) : "?"; };
  std::string text =
      "configuration\tenvironments\tseconds\tdeviation\tspeed_up\tefficiency_percent\trate\tlimit\tlimit_percent\t"
      "cpu_average\tcpu_min\tcpu_max\tgpu_average\tgpu_max\tspeed_up_label\tefficiency_label\n";
  for (size_t i = 0; i < analysis.rows.size(); ++i) {
    const ScalingRow& row = analysis.rows[i];
    const auto percent = [&](const std::optional<double>& share) {
      return figure(share ? std::optional<double>(100 * *share) : std::nullopt);
    };
    const auto gpu = [&](double UsageSummary::*field) {
      return percent(row.gpu ? std::optional<double>((*row.gpu).*field) : std::nullopt);
    };
    absl::StrAppend(&text, row.point.name(), "\t", row.point.environments(), "\t", figure(row.seconds_mean), "\t",
                    figure(row.seconds_deviation), "\t", figure(row.speed_up), "\t", percent(row.efficiency), "\t",
                    figure(row.env_steps_per_second), "\t", figure(row.limit), "\t", percent(row.limit_ratio), "\t",
                    percent(row.cpu.average), "\t", percent(row.cpu.min), "\t", percent(row.cpu.max));
    absl::StrAppend(&text, "\t", gpu(&UsageSummary::average), "\t", gpu(&UsageSummary::max), "\t", speed_up_label[i],
                    "\t", efficiency_label[i], "\n");
  }
  return text;
}

std::string DashboardScript(const ScalingResults& results, const ScalingAnalysis& analysis) {
  uint32_t most = 1;
  double top = 115, low = 0.8, rate = 0;
  bool any_gpu = false;
  for (const ScalingRow& row : analysis.rows) {
    most = std::max(most, row.point.environments());
    top = std::max({top, 115 * row.efficiency, 115 * row.limit_ratio.value_or(0)});
    low = std::min(low, 0.85 * row.speed_up);
    rate = std::max({rate, row.env_steps_per_second, row.limit.value_or(0)});
    any_gpu |= row.gpu.has_value();
  }
  const bool crowded = analysis.rows.size() > 10;
  std::string laws;
  if (analysis.amdahl) {
    absl::StrAppend(&laws, LawFunction(*analysis.amdahl), " with lines lw 2 lc rgb law title ",
                    absl::StrFormat("\"Amdahl, serial %.0f %%\", \\\n     ", 100 * analysis.amdahl->sigma));
  }
  if (analysis.universal) {
    absl::StrAppend(&laws, LawFunction(*analysis.universal),
                    " with lines lw 2 dt 4 lc rgb other title \"universal scalability law\", \\\n     ");
  }
  const std::string title = absl::StrCat(results.config.value("env", ""), " on ", results.machine.value("cpu", ""),
                                         ", ", results.machine.value("cores", 0), " cores");
  const std::string gpu =
      any_gpu ? kGpuChart : absl::StrReplaceAll(kNoGpuChart, {{"@REASON@", Escaped(results.gpu_reason)}});
  return absl::StrReplaceAll(kScript,
                             {{"@TITLE@", Escaped(title)},
                              {"@MAX@", absl::StrCat(most)},
                              {"@TOP@", absl::StrCat(1.15 * top)},
                              {"@LOW@", absl::StrCat(low)},
                              {"@RATE@", absl::StrCat(1.2 * rate / 1000)},
                              {"@COUNT@", absl::StrCat(analysis.rows.size())},
                              {"@LAWS@", laws},
                              {"@ROTATE@", crowded ? "set xtics rotate by -45\n" : ""},
                              {"@GPU@", absl::StrReplaceAll(gpu, {{"@ROTATED@", crowded ? "rotate by -45" : ""}})}});
}

absl::Status WriteDashboard(const std::string& folder, const ScalingResults& results, const ScalingAnalysis& analysis) {
  if (absl::Status s = WriteFileAtomically(folder + "/dashboard.dat", DashboardData(analysis)); !s.ok()) return s;
  if (absl::Status s = WriteFileAtomically(folder + "/dashboard.gp", DashboardScript(results, analysis)); !s.ok()) {
    return s;
  }
  const std::string log_path = folder + "/gnuplot.log";
  std::error_code ignored;
  std::filesystem::remove(log_path, ignored);
  // The shell looks gnuplot up and ends with 127 where there is none.
  auto process = Subprocess::Spawn(
      {.argv = {"/bin/sh", "-c", "cd \"$1\" && exec gnuplot dashboard.gp", "sh", folder}, .output_path = log_path});
  if (!process.ok()) return process.status();
  const std::optional<int> code = (*process)->Wait(kDrawLimit);
  if (code == 127) {
    std::filesystem::remove(log_path, ignored);
    return absl::UnavailableError(
        absl::StrCat("no dashboard: gnuplot is missing (apt-get install gnuplot-nox); then: cd ", folder,
                     " && gnuplot dashboard.gp"));
  }
  if (code != 0) {
    return absl::InternalError(absl::StrCat("no dashboard: gnuplot says: ", ReadFile(log_path).value_or("nothing")));
  }
  std::filesystem::remove(log_path, ignored);
  return absl::OkStatus();
}

}  // namespace skein
