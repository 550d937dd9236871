// SPDX-License-Identifier: Apache-2.0
#include "base/net/credentials.h"

#include <sys/stat.h>

#include <cstdlib>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/net/credential_flags.h"
#include "base/net/host_port.h"
#include "base/net/tls_pem.h"
#include "base/process/file.h"

namespace skein {
namespace {

constexpr uint64_t kMaxFileBytes = 1 << 20;

Credentials& TheCredentials() {
  static Credentials* const credentials = new Credentials;  // Servers may outlive static objects.
  return *credentials;
}

absl::StatusOr<std::string> ReadNonEmpty(const char* flag, const std::string& path) {
  auto text = ReadFile(path, kMaxFileBytes);
  if (!text.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat(flag, ": ", text.status().message(), "; this process must be able to read it"));
  }
  if (absl::StripAsciiWhitespace(*text).empty()) {
    return absl::InvalidArgumentError(absl::StrCat(flag, ": ", path, " is empty"));
  }
  return text;
}

absl::StatusOr<std::string> ReadSecret(const char* flag, const std::string& path) {
  struct stat info = {};
  if (stat(path.c_str(), &info) == 0 && (info.st_mode & S_IRWXO) != 0) {
    return absl::InvalidArgumentError(
        absl::StrFormat("%s: every user of this machine has access to %s (mode %04o): chmod 600 %s", flag, path,
                        info.st_mode & 07777, path));
  }
  return ReadNonEmpty(flag, path);
}

absl::StatusOr<std::string> ReadToken(const std::string& path) {
  const auto text = ReadSecret(kTokenFileFlag, path);
  if (!text.ok()) return text.status();
  const absl::string_view token = absl::StripAsciiWhitespace(*text);
  for (const char c : token) {
    if (absl::ascii_isgraph(static_cast<unsigned char>(c))) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(kTokenFileFlag, ": ", path, " must have one word of printable ASCII, the token"));
  }
  if (token.size() < kMinTokenBytes || token.size() > kMaxTokenBytes) {
    return absl::InvalidArgumentError(absl::StrCat(kTokenFileFlag, ": the token in ", path, " has ", token.size(),
                                                   " characters, want ", kMinTokenBytes, " to ", kMaxTokenBytes,
                                                   "; `skein certs init DIR` makes one"));
  }
  return std::string(token);
}

}  // namespace

absl::StatusOr<Credentials> LoadCredentials(const CredentialFiles& files) {
  Credentials credentials;
  credentials.insecure = files.insecure;
  const bool any = !files.tls_cert.empty() || !files.tls_key.empty() || !files.tls_ca.empty();
  if (any && (files.tls_cert.empty() || files.tls_key.empty() || files.tls_ca.empty())) {
    return absl::InvalidArgumentError(absl::StrCat(kTlsCertFlag, ", ", kTlsKeyFlag, " and ", kTlsCaFlag,
                                                   " are given together, or none of them: each side checks the other"));
  }
  if (any) {
    auto certificate = ReadNonEmpty(kTlsCertFlag, files.tls_cert);
    if (!certificate.ok()) return certificate.status();
    auto key = ReadSecret(kTlsKeyFlag, files.tls_key);
    if (!key.ok()) return key.status();
    auto ca = ReadNonEmpty(kTlsCaFlag, files.tls_ca);
    if (!ca.ok()) return ca.status();
    credentials.certificate_pem = *std::move(certificate);
    credentials.key_pem = *std::move(key);
    credentials.ca_pem = *std::move(ca);
    if (absl::Status status = CheckTlsPem(credentials); !status.ok()) return status;
  }
  if (!files.token_file.empty()) {
    auto token = ReadToken(files.token_file);
    if (!token.ok()) return token.status();
    credentials.token = *std::move(token);
  }
  return credentials;
}

absl::Status UseCredentials(const CredentialFiles& files) {
  auto credentials = LoadCredentials(files);
  if (!credentials.ok()) return credentials.status();
  TheCredentials() = *std::move(credentials);
  const auto pass_on = [](const char* variable, const std::string& value) {
    if (!value.empty()) setenv(variable, value.c_str(), 1);
  };
  pass_on(kTlsCertVariable, files.tls_cert);
  pass_on(kTlsKeyVariable, files.tls_key);
  pass_on(kTlsCaVariable, files.tls_ca);
  pass_on(kTokenFileVariable, files.token_file);
  pass_on(kInsecureVariable, files.insecure ? "true" : "");
  return absl::OkStatus();
}

void ForgetCredentialVariables() {
  for (const char* variable :
       {kTlsCertVariable, kTlsKeyVariable, kTlsCaVariable, kTokenFileVariable, kInsecureVariable}) {
    unsetenv(variable);
  }
}

const Credentials& ProcessCredentials() { return TheCredentials(); }

const char* HttpScheme() { return ProcessCredentials().has_tls() ? "https" : "http"; }

absl::Status CheckExposure(const std::string& address, const Credentials& credentials) {
  const auto parsed = ParseHostPort(address);
  if (!parsed.ok()) return parsed.status();
  if (IsLoopback(parsed->host)) return absl::OkStatus();
  if (credentials.has_tls() || !credentials.token.empty() || credentials.insecure) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "address '", address,
      "' is open to other machines, and nothing asks who calls: make credentials with `skein certs init DIR` "
      "and give ",
      kTokenFileFlag, " or ", kTlsCertFlag, ", ", kTlsKeyFlag, " and ", kTlsCaFlag, "; or ", kInsecureFlag,
      " in a network whose members you trust"));
}

bool EqualsInConstantTime(absl::string_view a, absl::string_view b) {
  if (a.size() != b.size()) return false;
  volatile unsigned char difference = 0;
  for (size_t i = 0; i < a.size(); ++i) difference = difference | static_cast<unsigned char>(a[i] ^ b[i]);
  return difference == 0;
}

}  // namespace skein
