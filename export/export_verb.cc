// SPDX-License-Identifier: Apache-2.0
// skein export: a checkpoint's policy as one file.
#include "export/export_verb.h"

#include <filesystem>
#include <iostream>
#include <memory>
#include <string>

#include "CLI/CLI.hpp"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "base/command/arguments.h"
#include "base/process/exit_code.h"
#include "base/process/file.h"
#include "base/process/message_text.h"
#include "eval/checkpoint_policy.h"
#include "export/portable_policy.h"
#include "nlohmann/json.hpp"

namespace skein {
namespace {

struct ExportFlags {
  std::string checkpoint, format, out;
  std::string name = "skein_policy";
  bool json = false;
};

// What a function's name may begin with.
bool IsIdentifier(const std::string& name) {
  constexpr size_t kMost = 60;
  if (name.empty() || name.size() > kMost || absl::ascii_isdigit(static_cast<unsigned char>(name[0]))) return false;
  for (const char c : name) {
    if (!absl::ascii_isalnum(static_cast<unsigned char>(c)) && c != '_') return false;
  }
  return true;
}

std::string DefaultFile(const std::string& format) { return format == "c" ? "policy.h" : "policy." + format; }

std::string Encode(const PortablePolicy& policy, const ExportFlags& flags) {
  if (flags.format == "onnx") return WriteOnnx(policy);
  return flags.format == "c" ? WriteC(policy, flags.name) : WriteSafetensors(policy);
}

// Whether a file can be put there. It is renamed to its name: what is there and is no file would be gone.
absl::Status CheckOut(const std::string& out) {
  if (out == "-") return absl::InvalidArgumentError("--out: got '-', want a file");
  std::error_code error;
  const auto there = std::filesystem::status(out, error);
  if (std::filesystem::exists(there) && !std::filesystem::is_regular_file(there)) {
    return absl::InvalidArgumentError(absl::StrCat("--out: ", Quoted(out), " is there and is no regular file"));
  }
  const auto folder = std::filesystem::path(out).parent_path();
  if (folder.empty() || std::filesystem::is_directory(folder, error)) return absl::OkStatus();
  return absl::PermissionDeniedError(
      absl::StrCat("--out: cannot create ", Quoted(out), ": ", Quoted(folder.string()), " is no folder"));
}

absl::Status Export(const ExportFlags& flags) {
  if (!IsIdentifier(flags.name)) {
    return absl::InvalidArgumentError(
        absl::StrCat("--name: got ", Quoted(flags.name), ", want letters, digits and '_', and no digit first"));
  }
  const std::string out = flags.out.empty() ? DefaultFile(flags.format) : flags.out;
  if (absl::Status status = CheckOut(out); !status.ok()) return status;
  const auto checkpoint = LoadCheckpointPolicy(flags.checkpoint);
  if (!checkpoint.ok()) return checkpoint.status();
  for (const std::string& warning : checkpoint->warnings) {
    std::cerr << "skein export: warning: " << warning << std::endl;
  }
  const PortablePolicy policy = MakePortable(*checkpoint);
  const std::string bytes = Encode(policy, flags);
  if (absl::Status status = WriteFileAtomically(out, bytes); !status.ok()) return status;
  if (flags.json) {
    std::cout << nlohmann::ordered_json({{"file", out},
                                         {"format", flags.format},
                                         {"bytes", bytes.size()},
                                         {"env_id", policy.env_id},
                                         {"checkpoint", checkpoint->path},
                                         {"digest", policy.digest},
                                         {"observation_size", policy.env.obs_size},
                                         {"action_size", policy.spec.action_size},
                                         {"discrete", policy.spec.discrete},
                                         {"state_size", policy.state_size()}})
                     .dump()
              << std::endl;
    return absl::OkStatus();
  }
  std::cout << "wrote " << Escaped(out) << " (" << bytes.size() << " bytes): " << policy.env_id << ", observations of "
            << policy.env.obs_size << " numbers, " << (policy.spec.discrete ? "a choice of " : "actions of ")
            << policy.spec.action_size;
  if (policy.state_size() > 0) std::cout << ", a state of " << policy.state_size();
  std::cout << "\ncheckpoint " << Escaped(checkpoint->path) << " (digest " << policy.digest << ")" << std::endl;
  return absl::OkStatus();
}

}  // namespace

void AddExport(CLI::App* app, std::function<int()>* action) {
  CLI::App* const verb = app->add_subcommand("export", "Write a checkpoint's policy as one file for other programs");
  const auto flags = std::make_shared<ExportFlags>();
  verb->add_option("--checkpoint", flags->checkpoint, "Checkpoint folder, or a run's folder for its newest one")
      ->required();
  verb->add_option("--format", flags->format, "Of the file")->required()->check(OneOf({"onnx", "safetensors", "c"}));
  verb->add_option("--out", flags->out, "The file; without it policy.onnx, policy.safetensors or policy.h");
  verb->add_option("--name", flags->name, "c: what the names of its functions begin with")->capture_default_str();
  verb->add_flag("--json", flags->json, "Print one JSON object");
  verb->footer(
      "Example:\n  skein export --checkpoint runs/HalfCheetah-v5-s1 --format onnx\n"
      "  skein export --checkpoint runs/HalfCheetah-v5-s1 --format c --out cheetah.h --name cheetah");
  verb->callback([flags, action] { *action = [flags] { return ReportAndExitCode("skein export", Export(*flags)); }; });
}

}  // namespace skein
