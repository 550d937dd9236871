// SPDX-License-Identifier: Apache-2.0
#include "tests/architecture/include_rules.h"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/process/file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace skein::architecture {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr char kDocument[] = "docs/architecture.md";  // Tests run in the root of the tree.

IncludeRules RulesOfThisTree() {
  const auto text = ReadFile(kDocument);
  EXPECT_TRUE(text.ok()) << text.status();
  const auto rules = ParseIncludeRules(text.value_or(""));
  EXPECT_TRUE(rules.ok()) << rules.status();
  return rules.value_or(IncludeRules());
}

std::string Quoted(const std::string& header) { return absl::StrCat("#include \"", header, "\"\n"); }

std::string Tables(const std::string& files, const std::string& libraries) {
  return absl::StrCat("# A page\n\n<!-- include-rules: files -->\n\n| files | may include |\n|---|---|\n", files,
                      "\n<!-- include-rules: libraries -->\n| library | headers |\n|---|---|\n", libraries, "\nEnd.\n");
}

// Sources of the product that Git has; 0 outside of a checkout.
int SourcesInGit() {
  FILE* const listed =
      popen("git ls-files 2>/dev/null | grep -E '\\.(h|hh|hpp|c|cc|cpp|cu)$' | grep -vcE '^tests/'", "r");
  int count = 0;
  if (listed == nullptr || fscanf(listed, "%d", &count) != 1) count = 0;
  if (listed != nullptr) pclose(listed);
  return count;
}

TEST(IncludeRules, ThisTreeKeepsThem) {
  const TreeCheck check = CheckTree(RulesOfThisTree(), ".");
  EXPECT_THAT(check.violations, IsEmpty());
  // Else it looked in the wrong place, or not everywhere.
  EXPECT_GT(check.files, 900);
  EXPECT_GE(check.files, SourcesInGit());
}

// What the architecture is for.
TEST(IncludeRules, TheTableForbidsWhatTheArchitectureForbids) {
  const IncludeRules rules = RulesOfThisTree();
  const std::vector<std::pair<std::string, std::string>> forbidden = {
      {"base/telemetry/log.cc", "env/env.h"},
      {"base/telemetry/log.cc", "policy/policy.h"},
      {"base/telemetry/log.cc", "torch/types.h"},
      {"base/number/philox.cc", "base/net/host_port.h"},
      {"base/process/file.cc", "base/telemetry/log.h"},
      {"env/env.h", "policy/policy.h"},
      {"env/vector_env.cc", "env/mujoco/model.h"},
      {"env/vector_env.cc", "skein/v1/config.pb.h"},
      {"env/vector_env.cc", "mujoco/mujoco.h"},
      {"env/classic/cartpole.cc", "mujoco/mujoco.h"},
      {"policy/policy.cc", "env/vector_env.h"},
      {"policy/policy.cc", "actor/runner.h"},
      {"policy/policy.cc", "torch/types.h"},
      {"actor/runner.cc", "torch/types.h"},
      {"actor/runner.cc", "env/tensor/tensor_env.h"},  // Which includes Torch.
      {"policy/policy.cc", "env/tensor/tensor_env.h"},
      {"trajectory/schema.cc", "env/tensor/tensor_env.h"},
      {"eval/evaluation.cc", "env/tensor/tensor_env.h"},
      {"eval/checkpoint_policy.cc", "env/tensor/tensor_env.h"},
      {"export/portable_policy.cc", "env/tensor/tensor_env.h"},
      {"serve/action_server.cc", "env/tensor/tensor_env.h"},
      {"learner/collect/collector.cc", "env/tensor/uav/tensor_world.h"},
      {"eval/evaluation.cc", "torch/types.h"},
      {"policy/policy.cc", "grpcpp/channel.h"},
      {"actor/runner.cc", "learner/collect/ticket_office.h"},
      {"actor/runner.cc", "coordinator/membership.h"},
      {"actor/runner.cc", "cli/verbs.h"},
      {"actor/runner.cc", "torch/csrc/distributed/c10d/ProcessGroup.hpp"},
      {"learner/run/learner.cc", "actor/outbox.h"},
      {"learner/run/learner.cc", "coordinator/coordinator.h"},
      {"learner/algorithm/ppo/ppo.cc", "grpcpp/server_context.h"},
      {"learner/algorithm/ppo/ppo.cc", "learner/run/trainer.h"},
      {"learner/optimize/flat_adam.cc", "learner/algorithm/ppo/ppo.h"},
      {"learner/network/actor_critic.cc", "learner/optimize/flat_adam.h"},
      {"learner/collect/collector.cc", "learner/run/trainer.h"},
      {"learner/run/trainer.cc", "torch/csrc/distributed/c10d/ProcessGroup.hpp"},
      {"learner/run/trainer.cc", "nccl.h"},
      {"learner/run/trainer.cc", "learner/algorithm/ppo/ppo.h"},
      {"learner/run/trainer.cc", "c10/cuda/CUDAStream.h"},
      {"coordinator/service.cc", "env/env.h"},
      {"coordinator/service.cc", "policy/policy.h"},
      {"coordinator/service.cc", "learner/report/metrics.h"},
      {"coordinator/service.cc", "actor/metrics.h"},
      {"coordinator/service.cc", "torch/torch.h"},
      {"coordinator/service.cc", "ATen/ATen.h"},
      {"cli/main.cc", "torch/torch.h"},
      {"cli/main.cc", "learner/run/checkpoint.h"},
      {"cli/main.cc", "policy/policy.h"},
      {"cli/main.cc", "bench/tune.h"},
      {"bench/main.cc", "cli/verbs.h"},
      {"launch/launch_plan.cc", "cli/verbs.h"},
      {"launch/launch_plan.cc", "torch/torch.h"},
      {"eval/evaluation.cc", "learner/run/trainer.h"},
      {"learner/run/learner.cc", "tests/learner/sample_fragment.h"},
  };
  for (const auto& [path, header] : forbidden) {
    EXPECT_THAT(CheckIncludes(rules, path, Quoted(header)), ElementsAre(HasSubstr("may not include")))
        << path << " includes " << header;
    EXPECT_THAT(CheckIncludes(rules, path, absl::StrCat("#include <", header, ">\n")), testing::SizeIs(1));
  }
}

TEST(IncludeRules, TheTableAllowsWhatTheArchitectureAllows) {
  const IncludeRules rules = RulesOfThisTree();
  const std::vector<std::pair<std::string, std::string>> allowed = {
      {"base/config/config.h", "skein/v1/config.pb.h"},
      {"env/env.h", "base/number/philox.h"},
      {"env/mujoco/model.cc", "mujoco/mujoco.h"},
      {"policy/policy.h", "env/env.h"},
      {"actor/runner.cc", "env/vector_env.h"},
      {"actor/runner.cc", "policy/policy.h"},
      {"learner/algorithm/ppo/ppo.cc", "learner/network/distribution.h"},
      {"learner/ranks/collective.cc", "nccl.h"},
      {"coordinator/service.h", "grpcpp/support/server_callback.h"},
      {"eval/checkpoint_policy.cc", "learner/run/checkpoint.h"},
      {"cli/envs_verb.cc", "env/registry.h"},
      {"coordinator/coordinator.cc", "base/config/config.h"}};
  for (const auto& [path, header] : allowed) {
    EXPECT_THAT(CheckIncludes(rules, path, Quoted(header)), IsEmpty()) << path << " includes " << header;
  }
}

// The folder that a name of the table belongs to: "env/env.h" is of env.
std::string FolderOfName(const IncludeRules& rules, const std::string& name) {
  return rules.allowed.count(name) > 0 && name.find('.') == std::string::npos ? name : name.substr(0, name.rfind('/'));
}

// Rows of single files are left out: a registry may see what includes its folder.
TEST(IncludeRules, TheFoldersOfTheTableMakeNoCircle) {
  const IncludeRules rules = RulesOfThisTree();
  std::map<std::string, std::set<std::string>> below;
  for (const auto& [scope, allowed] : rules.allowed) {
    if (scope.find('.') != std::string::npos) continue;
    for (const std::string& name : allowed) {
      if (rules.libraries.count(name) > 0) continue;
      const std::string folder = FolderOfName(rules, name);
      for (const auto& [other, unused] : rules.allowed) {  // With its sub-folders, if it stands for them.
        const bool within = other == folder || (folder == name && other.rfind(folder + "/", 0) == 0);
        if (within && other != scope && other.find('.') == std::string::npos) below[scope].insert(other);
      }
    }
  }
  // Takes away what is above nothing that is left, until nothing changes.
  std::set<std::string> left;
  for (const auto& [scope, unused] : below) left.insert(scope);
  for (bool changed = true; changed;) {
    changed = false;
    for (auto scope = left.begin(); scope != left.end();) {
      const std::set<std::string>& names = below[*scope];
      const bool stays =
          std::any_of(names.begin(), names.end(), [&](const auto& name) { return left.count(name) > 0; });
      changed |= !stays;
      scope = stays ? std::next(scope) : left.erase(scope);
    }
  }
  EXPECT_THAT(left, IsEmpty());
}

TEST(IncludeRules, ABadFileInATreeIsFound) {
  const fs::path root = fs::path(testing::TempDir()) / "include_rules_test";
  fs::remove_all(root);
  for (const char* folder : {"coordinator", "plugins/deep", "tests/env", "build/env", ".cache"}) {
    fs::create_directories(root / folder);
  }
  const auto write = [&](const std::string& path, const std::string& text) {
    ASSERT_TRUE(WriteFileSynced(root / path, text).ok());
  };
  write("coordinator/good.cc", Quoted("base/config/config.h"));
  write("coordinator/planted.cc", absl::StrCat("// Comment.\n\n", Quoted("env/env.h")));
  write("plugins/deep/unknown.h", Quoted("base/config/config.h"));
  write("tests/env/any.cc", Quoted("learner/run/trainer.h"));
  write("build/env/any.cc", Quoted("learner/run/trainer.h"));
  write(".cache/any.cc", Quoted("learner/run/trainer.h"));
  write("coordinator/notes.txt", Quoted("env/env.h"));
  const TreeCheck check = CheckTree(RulesOfThisTree(), root);
  EXPECT_EQ(check.files, 3);
  EXPECT_THAT(check.violations,
              ElementsAre("coordinator/planted.cc:3: coordinator may not include env/env.h",
                          "plugins/deep/unknown.h:1: plugins/deep has no row in the table of docs/architecture.md"));
  fs::remove_all(root);
}

TEST(IncludeRules, TheLongestScopeAndTheLongestPrefixCount) {
  const auto rules = ParseIncludeRules(Tables("| `a` | `b` |\n| `a/x` | `big` |\n| `a/x/y.cc` | |\n| `b` | `a/x` |\n",
                                              "| `big` | `big/` `big.h` |\n| `inner` | `big/inner/` |\n"));
  ASSERT_TRUE(rules.ok()) << rules.status();
  EXPECT_THAT(CheckIncludes(*rules, "a/z.cc", Quoted("b/b.h")), IsEmpty());
  EXPECT_THAT(CheckIncludes(*rules, "a/z.cc", Quoted("big/a.h")),
              ElementsAre("a/z.cc:1: a may not include big/a.h (big)"));
  EXPECT_THAT(CheckIncludes(*rules, "a/x/z.cc", Quoted("big/a.h")), IsEmpty());
  EXPECT_THAT(CheckIncludes(*rules, "a/x/z.cc", Quoted("big.h")), IsEmpty());
  EXPECT_THAT(CheckIncludes(*rules, "a/x/z.cc", Quoted("b/b.h")), testing::SizeIs(1));
  EXPECT_THAT(CheckIncludes(*rules, "a/x/z.cc", Quoted("big/inner/a.h")), testing::SizeIs(1));
  EXPECT_THAT(CheckIncludes(*rules, "a/x/y.cc", Quoted("big/a.h")), testing::SizeIs(1));
  EXPECT_THAT(CheckIncludes(*rules, "a/x/y.cc", Quoted("a/x/z.h")), IsEmpty());  // Its own folder.
  EXPECT_THAT(CheckIncludes(*rules, "b/z.cc", Quoted("a/x/z.h")), IsEmpty());
  EXPECT_THAT(CheckIncludes(*rules, "b/z.cc", Quoted("a/z.h")), ElementsAre("b/z.cc:1: b may not include a/z.h"));
  EXPECT_THAT(CheckIncludes(*rules, "ab/z.cc", Quoted("b/b.h")), ElementsAre(HasSubstr("ab has no row")));
}

TEST(IncludeRules, ASubFolderIsNotItsParentsFolder) {
  const auto rules =
      ParseIncludeRules(Tables("| `a` | |\n| `a/x` | `a/y/z.h` |\n| `a/y` | |\n", "| `lib` | `lib/` |\n"));
  ASSERT_TRUE(rules.ok()) << rules.status();
  EXPECT_THAT(CheckIncludes(*rules, "a/b.cc", Quoted("a/x/x.h")), ElementsAre("a/b.cc:1: a may not include a/x/x.h"));
  EXPECT_THAT(CheckIncludes(*rules, "a/x/x.cc", Quoted("a/b.h")), ElementsAre("a/x/x.cc:1: a/x may not include a/b.h"));
  EXPECT_THAT(CheckIncludes(*rules, "a/x/x.cc", Quoted("a/y/y.h")), testing::SizeIs(1));
  EXPECT_THAT(CheckIncludes(*rules, "a/x/x.cc", Quoted("a/y/z.h")), IsEmpty());
  EXPECT_THAT(CheckIncludes(*rules, "a/w/w.cc", Quoted("a/w/v.h")), ElementsAre(HasSubstr("a/w has no row")));
}

TEST(IncludeRules, IncludesAreReadHoweverTheyAreWritten) {
  const auto rules = ParseIncludeRules(Tables("| `a` | |\n| `b` | |\n", "| `lib` | `lib/` |\n"));
  ASSERT_TRUE(rules.ok()) << rules.status();
  for (const char* line :
       {"#include \"b/b.h\"", "  #  include   <b/b.h>  // Why.", "#include\"b/b.h\"", "#\tinclude <lib/l.h>"}) {
    EXPECT_THAT(CheckIncludes(*rules, "a/a.cc", line), testing::SizeIs(1)) << line;
  }
  for (const char* line :
       {"#include <vector>", "#include <sys/stat.h>", "// #include \"b/b.h\"", "#if 1", "include b/b.h"}) {
    EXPECT_THAT(CheckIncludes(*rules, "a/a.cc", line), IsEmpty()) << line;
  }
}

TEST(IncludeRules, PathsStartAtTheRoot) {
  const auto rules = ParseIncludeRules(Tables("| `a` | `lib` |\n", "| `lib` | `lib.h` |\n"));
  ASSERT_TRUE(rules.ok()) << rules.status();
  EXPECT_THAT(CheckIncludes(*rules, "a/a.cc", Quoted("a.h")), ElementsAre(HasSubstr("from the root")));
  EXPECT_THAT(CheckIncludes(*rules, "a/a.cc", Quoted("../b/b.h")), ElementsAre(HasSubstr("from the root")));
  EXPECT_THAT(CheckIncludes(*rules, "a/a.cc", Quoted("lib.h")), IsEmpty());
}

TEST(IncludeRules, ABrokenTableIsRefused) {
  const std::string library = "| `lib` | `lib/` |\n";
  EXPECT_EQ(ParseIncludeRules("# A page\n").status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(ParseIncludeRules(Tables("", library)).status().code(), absl::StatusCode::kNotFound);
  for (const char* files : {"| a | `lib` |\n", "| `a` | |\n| `a` | `lib` |\n", "| `a` | `elsewhere` |\n"}) {
    EXPECT_EQ(ParseIncludeRules(Tables(files, library)).status().code(), absl::StatusCode::kInvalidArgument) << files;
  }
  EXPECT_EQ(ParseIncludeRules(Tables("| `a` | |\n", "| `lib` | |\n")).status().code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace skein::architecture
