// SPDX-License-Identifier: Apache-2.0
#include "base/net/join_flags.h"

#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "base/net/credential_flags.h"

namespace skein {
namespace {

namespace fs = std::filesystem;

std::string Variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::string FileFlag(const char* flag, const std::string& path) {
  std::error_code error;
  return path.empty() ? "" : absl::StrCat(" ", flag, " ", ShellWord(fs::absolute(path, error).string()));
}

}  // namespace

std::string JoinFlags(const CredentialFiles& files, const std::string& role) {
  CredentialFiles own = files;
  std::error_code ignored;
  const fs::path folder = fs::path(files.tls_cert).parent_path();
  const fs::path certificate = folder / (role + ".crt"), key = folder / (role + ".key");
  if (!files.tls_cert.empty() && fs::exists(certificate, ignored) && fs::exists(key, ignored)) {
    own.tls_cert = certificate.string();
    own.tls_key = key.string();
  }
  return absl::StrCat(FileFlag(kTlsCertFlag, own.tls_cert), FileFlag(kTlsKeyFlag, own.tls_key),
                      FileFlag(kTlsCaFlag, own.tls_ca), FileFlag(kTokenFileFlag, own.token_file));
}

CredentialFiles CredentialFilesInEnvironment() {
  CredentialFiles files;
  files.tls_cert = Variable(kTlsCertVariable);
  files.tls_key = Variable(kTlsKeyVariable);
  files.tls_ca = Variable(kTlsCaVariable);
  files.token_file = Variable(kTokenFileVariable);
  files.insecure = !Variable(kInsecureVariable).empty();
  return files;
}

std::string ShellWord(const std::string& text) {
  bool plain = !text.empty();
  for (const char c : text) plain = plain && (absl::ascii_isalnum(c) || absl::StrContains("/._-+:,@%", c));
  return plain ? text : absl::StrCat("'", absl::StrReplaceAll(text, {{"'", "'\\''"}}), "'");
}

std::string CommandOf(const std::string& folder, const std::string& program) {
  // A command that stands for the program, as a Python package has it.
  const std::string commands = Variable("SKEIN_COMMAND_FOLDER");
  const fs::path path = fs::path(commands.empty() ? folder : commands) / program;
  for (const std::string& place : std::vector<std::string>(absl::StrSplit(Variable("PATH"), ':', absl::SkipEmpty()))) {
    std::error_code error;
    if (!fs::exists(fs::path(place) / program, error)) continue;
    if (fs::equivalent(fs::path(place) / program, path, error)) return program;
    break;  // The shell would find another one.
  }
  return ShellWord(path.string());
}

}  // namespace skein
