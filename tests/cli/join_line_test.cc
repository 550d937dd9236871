// SPDX-License-Identifier: Apache-2.0
// The lines with which `skein head` invites workers and learners, pasted into a shell of another folder: they join.
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/net/join_flags.h"
#include "base/process/subprocess.h"
#include "gmock/gmock.h"
#include "tests/cli/scratch_folder.h"

namespace skein {
namespace {

using testing::HasSubstr;

std::string BinFolder() {
  const char* bin = std::getenv("SKEIN_BIN");
  return std::filesystem::absolute(bin == nullptr ? ProgramFolder() + "/.." : std::string(bin)).string();
}

TEST(ShellWord, QuotesWhatAShellWouldRead) {
  EXPECT_EQ(ShellWord("/runs/a-b_c.1"), "/runs/a-b_c.1");
  EXPECT_EQ(ShellWord("a b"), "'a b'");
  EXPECT_EQ(ShellWord("it's"), "'it'\\''s'");
  EXPECT_EQ(ShellWord(""), "''");
}

TEST(CommandOf, IsTheNameWhereTheShellFindsThatProgram) {
  const ScratchFolder folder;
  folder.WriteScript("skein", "exit 0");
  const ScratchFolder other;
  other.WriteScript("skein", "exit 0");
  const std::string path = std::getenv("PATH");
  setenv("PATH", absl::StrCat("/nowhere:", folder.path(), ":", other.path()).c_str(), 1);
  EXPECT_EQ(CommandOf(folder.path(), "skein"), "skein");
  EXPECT_EQ(CommandOf(other.path(), "skein"), other.path() + "/skein");
  setenv("PATH", path.c_str(), 1);
}

class JoinLine : public testing::Test {
 protected:
  void SetUp() override {
    Run({BinFolder() + "/skein", "certs", "init", credentials_});
    std::filesystem::create_directory(elsewhere_);
  }

  std::unique_ptr<Subprocess> Start(const std::vector<std::string>& argv, const std::string& log, bool capture) {
    auto process =
        Subprocess::Spawn({.argv = argv,
                           .output_path = folder_.path() + "/" + log,
                           .capture_stdout = capture,
                           .unset_env = {"SKEIN_TOKEN_FILE", "SKEIN_TLS_CERT", "SKEIN_TLS_KEY", "SKEIN_TLS_CA"}});
    EXPECT_TRUE(process.ok()) << process.status();
    return *std::move(process);
  }
  void Run(const std::vector<std::string>& argv) {
    EXPECT_EQ(Start(argv, "log", false)->Wait(absl::Seconds(30)), 0) << folder_.Read("log");
  }
  std::unique_ptr<Subprocess> Paste(const std::string& line, const std::string& log) {
    return Start({"/bin/sh", "-c", absl::StrCat("cd ", elsewhere_, " && exec ", line)}, log, false);
  }

  // Starts a head without learners with `flags`, pastes what it prints, and sees the run to its end.
  void JoinARun(const std::vector<std::string>& flags) {
    std::vector<std::string> argv = {BinFolder() + "/skein",
                                     "head",
                                     "--env",
                                     "CartPole-v1",
                                     "--steps",
                                     "2048",
                                     "--learners",
                                     "0",
                                     "--host",
                                     "0.0.0.0",
                                     "--announce-host",
                                     "127.0.0.1",
                                     "--port",
                                     "0",
                                     "--http-port",
                                     "0",
                                     "--no-eval",
                                     "--runs-dir",
                                     folder_.path() + "/all runs"};
    argv.insert(argv.end(), flags.begin(), flags.end());
    const auto head = Start(argv, "head", true);
    std::string worker, learner, all;
    while (worker.empty() || learner.empty()) {
      const auto line = head->ReadLine(absl::Seconds(30));
      ASSERT_TRUE(line.ok()) << line.status() << all << folder_.Read("head");
      absl::StrAppend(&all, *line, "\n");
      if (const size_t at = line->find("srun -n 2 "); at != std::string::npos) learner = line->substr(at + 10);
      if (const size_t at = line->find("nodes, with: "); at != std::string::npos) worker = line->substr(at + 13);
    }
    SCOPED_TRACE(all);
    const auto learning = Paste(learner, "learner");
    const auto working = Paste(worker, "worker");
    EXPECT_EQ(learning->Wait(absl::Seconds(50)), 0) << learner << "\n" << folder_.Read("learner");
    EXPECT_EQ(head->Wait(absl::Seconds(30)), 0) << folder_.Read("head");
    EXPECT_EQ(working->Wait(absl::Seconds(30)), 0) << worker << "\n" << folder_.Read("worker");
  }

  const ScratchFolder folder_;
  const std::string credentials_ = folder_.path() + "/my credentials";  // A space, as in many home folders.
  const std::string elsewhere_ = folder_.path() + "/elsewhere";
};

TEST_F(JoinLine, HasTheToken) { JoinARun({"--token-file", credentials_ + "/token"}); }

TEST_F(JoinLine, HasTheCertificatesOfTheRole) {
  JoinARun({"--token-file", credentials_ + "/token", "--tls-cert", credentials_ + "/node.crt", "--tls-key",
            credentials_ + "/node.key", "--tls-ca", credentials_ + "/ca.crt"});
  const CredentialFiles files = {.tls_cert = credentials_ + "/node.crt",
                                 .tls_key = credentials_ + "/node.key",
                                 .tls_ca = credentials_ + "/ca.crt"};
  EXPECT_THAT(JoinFlags(files, "actor"), HasSubstr("/my credentials/actor.key' --tls-ca "));
  EXPECT_THAT(JoinFlags(files, "nobody"), HasSubstr("/my credentials/node.key' --tls-ca "));
  EXPECT_EQ(JoinFlags({}, "actor"), "");
}

TEST_F(JoinLine, IsInsecureWhereTheHeadIs) { JoinARun({"--insecure"}); }

}  // namespace
}  // namespace skein
