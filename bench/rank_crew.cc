// SPDX-License-Identifier: Apache-2.0
#include "bench/rank_crew.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/process/exit_code.h"
#include "base/process/file.h"
#include "base/process/system_error.h"

namespace skein {
namespace {

constexpr absl::Duration kBetweenLooks = absl::Milliseconds(200);  // At whether to stop.
constexpr absl::Duration kToEnd = absl::Seconds(2);                // For a rank whose neighbour has failed.
constexpr double kPilotShare = 0.1;

}  // namespace

absl::StatusOr<std::unique_ptr<RankCrew>> RankCrew::Start(const Job& job, int ranks, std::function<bool()> stopped) {
  auto folder = TemporaryFolder::Make();
  if (!folder.ok()) return folder.status();
  std::unique_ptr<RankCrew> crew(new RankCrew(*std::move(folder), std::move(stopped)));
  if (absl::Status s = WriteFileSynced(crew->folder_.path() + "/config.yaml", job.config_yaml); !s.ok()) return s;
  if (absl::Status s = crew->StartRank(job, 0, ranks, 0); !s.ok()) return s;
  const auto port = crew->Line(&crew->ranks_[0]);
  if (!port.ok()) return port.status();
  int store_port = 0;
  if (!absl::SimpleAtoi(*port, &store_port)) return absl::InternalError("rank 0 says no port: " + *port);
  for (int rank = 1; rank < ranks; ++rank) {
    if (absl::Status s = crew->StartRank(job, rank, ranks, store_port); !s.ok()) return s;
  }
  for (Rank& rank : crew->ranks_) {
    if (const auto ready = crew->Line(&rank); !ready.ok()) return ready.status();
  }
  return crew;
}

RankCrew::~RankCrew() {
  for (const Rank& rank : ranks_) {
    if (rank.commands >= 0) close(rank.commands);
  }
}

absl::Status RankCrew::StartRank(const Job& job, int rank, int ranks, int store_port) {
  Rank started;
  const std::string pipe = absl::StrCat(folder_.path(), "/commands-", rank);
  if (mkfifo(pipe.c_str(), 0600) != 0) return SystemError(errno, pipe);
  started.commands = open(pipe.c_str(), O_RDWR | O_CLOEXEC);  // Does not wait for the reader.
  if (started.commands < 0) return SystemError(errno, pipe);
  Child::Options options;
  options.name = absl::StrCat("learner rank ", rank, " of ", ranks);
  std::error_code error;
  options.program = std::filesystem::read_symlink("/proc/self/exe", error).string();
  options.arguments = {job.verb,
                       "--config",
                       folder_.path() + "/config.yaml",
                       "--commands",
                       pipe,
                       "--rank",
                       absl::StrCat(rank),
                       "--ranks",
                       absl::StrCat(ranks),
                       "--store-port",
                       absl::StrCat(store_port)};
  if (!job.data_path.empty()) options.arguments.insert(options.arguments.end(), {"--data", job.data_path});
  options.log_path = absl::StrCat(folder_.path(), "/rank-", rank, ".log");
  options.capture_stdout = true;
  auto process = Child::Start(options);
  if (process.ok()) started.process = *std::move(process);
  const absl::Status status = process.status();
  ranks_.push_back(std::move(started));
  return status;
}

absl::StatusOr<std::string> RankCrew::Line(Rank* rank) {
  while (true) {
    if (stopped_()) return absl::CancelledError("stopped on request");
    auto line = rank->process->process().ReadLine(kBetweenLooks);
    if (absl::IsDeadlineExceeded(line.status())) continue;
    if (line.ok()) return line;
    return Failure();
  }
}

absl::Status RankCrew::Failure() {
  absl::Status failure = absl::InternalError("a rank has closed its output");
  bool found = false;
  for (const Rank& rank : ranks_) {
    const auto code = rank.process->process().Wait(kToEnd);
    if (!code || *code == 0) continue;
    // The others only report the loss of the failed rank.
    const bool is_cause = *code != kExitUnavailable;
    if (found && !is_cause) continue;
    failure = rank.process->ExitStatus(*code);
    if (is_cause) break;
    found = true;
  }
  return failure;
}

absl::StatusOr<std::vector<Json>> RankCrew::Run(RankMode mode, int64_t updates) {
  const std::string command = absl::StrCat(mode == RankMode::kSumming ? "summing " : "alone ", updates, "\n");
  for (const Rank& rank : ranks_) {
    if (write(rank.commands, command.data(), command.size()) != static_cast<ssize_t>(command.size())) {
      return SystemError(errno, "commanding a rank");
    }
  }
  std::vector<Json> said;
  for (Rank& rank : ranks_) {
    const auto line = Line(&rank);
    if (!line.ok()) return line.status();
    said.push_back(Json::parse(*line, nullptr, /*allow_exceptions=*/false));
    if (!said.back().is_object()) return absl::InternalError("a rank says " + *line);
  }
  return said;
}

absl::StatusOr<int64_t> RankCrew::Rehearse(absl::Duration duration) {
  const auto updates_in = [](absl::Duration time, const std::vector<Json>& ranks) {
    const double each = ranks[0].at("seconds").get<double>() / ranks[0].at("updates").get<double>();
    return std::max<int64_t>(1, std::llround(absl::ToDoubleSeconds(time) / each));
  };
  if (const auto first = Run(RankMode::kAlone, 1); !first.ok()) return first.status();
  auto ranks = Run(RankMode::kSumming, 1);
  if (!ranks.ok()) return ranks.status();
  if (const int64_t pilot = updates_in(kPilotShare * duration, *ranks); pilot > 1) {
    ranks = Run(RankMode::kSumming, pilot);
    if (!ranks.ok()) return ranks.status();
  }
  return updates_in(duration, *ranks);
}

}  // namespace skein
