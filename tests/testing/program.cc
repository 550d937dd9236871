// SPDX-License-Identifier: Apache-2.0
#include "tests/testing/program.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cctype>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <regex>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/testing/wait_until.h"

namespace skein {
namespace {

std::vector<std::string> CommandLine(const std::string& program, const std::vector<std::string>& arguments) {
  const char* folder = std::getenv("SKEIN_BIN");
  const std::string ours = folder == nullptr ? ProgramFolder() + "/.." : std::string(folder);
  std::vector<std::string> argv = {program.find('/') == std::string::npos ? ours + "/" + program : program};
  argv.insert(argv.end(), arguments.begin(), arguments.end());
  return argv;
}

std::string NameOf(const std::string& program) { return program.substr(program.rfind('/') + 1); }

}  // namespace

Ended RunToEnd(const std::string& program, const std::vector<std::string>& arguments, absl::Duration limit) {
  const ScratchFolder folder;
  Ended ended;
  const absl::Time begin = absl::Now();
  auto process = Subprocess::Spawn(
      {.argv = CommandLine(program, arguments), .output_path = folder.path() + "/err", .capture_stdout = true});
  if (!process.ok()) {
    ADD_FAILURE() << process.status();
    return ended;
  }
  while (true) {
    auto line = (*process)->ReadLine(begin + limit - absl::Now());
    if (!line.ok()) break;
    absl::StrAppend(&ended.out, *line, "\n");
  }
  const std::optional<int> code = (*process)->Wait(begin + limit - absl::Now());
  ended.wall_time = absl::Now() - begin;
  ended.code = code.value_or(-1);
  ended.err = folder.Read("err");
  EXPECT_TRUE(code) << NameOf(program) << " still runs after " << limit << "\n" << ended.out << ended.err;
  return ended;
}

Running::Running(const std::string& program, const std::vector<std::string>& arguments,
                 const std::vector<std::string>& extra_env)
    : name_(NameOf(program)) {
  auto process = Subprocess::Spawn(
      {.argv = CommandLine(program, arguments), .output_path = folder_.path() + "/output", .extra_env = extra_env});
  if (!process.ok()) {
    std::cerr << process.status() << std::endl;
    std::abort();  // Nothing was built.
  }
  process_ = *std::move(process);
}

Running::~Running() {
  const bool still_running = !ended();
  process_.reset();
  if (!testing::Test::HasFailure()) return;
  std::cerr << "--- output of " << name_ << (still_running ? ", killed now" : "") << "\n" << Output() << std::endl;
}

std::string Running::WaitForOutput(const std::string& pattern, absl::Duration limit) {
  std::string found;
  const bool came = WaitUntil(
      [&] {
        const bool over = ended();  // Asked first: what it wrote before its end must not be missed.
        found = FirstMatch(Output(), pattern);
        return over || !found.empty();
      },
      limit, absl::Milliseconds(10));
  EXPECT_TRUE(!came || !found.empty()) << name_ << " ended without writing " << pattern;
  return found;
}

int Running::WaitForEnd(absl::Duration limit) {
  const std::optional<int> code = process_->Wait(limit);
  EXPECT_TRUE(code) << name_ << " still runs after " << limit;
  return code.value_or(-1);
}

void Running::Kill() {
  Signal(SIGKILL);
  WaitForEnd();
}

std::optional<pid_t> FindChild(pid_t parent, const std::string& name) {
  std::error_code error;
  for (std::filesystem::directory_iterator it("/proc", error), end; !error && it != end; it.increment(error)) {
    const std::string pid = it->path().filename();
    if (std::isdigit(static_cast<unsigned char>(pid[0])) == 0) continue;
    // "pid (name) state ppid ..."
    std::ifstream file(it->path() / "stat");
    std::string stat;
    if (!std::getline(file, stat) || stat.find("(" + name + ") ") == std::string::npos) continue;
    std::istringstream rest(stat.substr(stat.rfind(") ") + 2));
    std::string state;
    pid_t ppid = 0;
    if (rest >> state >> ppid && ppid == parent && state != "Z") return std::stoi(pid);
  }
  return std::nullopt;
}

int FreePort() {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  const bool bound = bind(fd, reinterpret_cast<sockaddr*>(&address), size) == 0 &&
                     getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) == 0;
  EXPECT_TRUE(bound);
  close(fd);
  return ntohs(address.sin_port);
}

std::string FirstMatch(const std::string& text, const std::string& pattern) {
  std::smatch match;
  return std::regex_search(text, match, std::regex(pattern)) ? match[1].str() : "";
}

}  // namespace skein
