// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/net/credentials.h"

// Credential flags of every program that listens or connects, and the environment variables that replace them. A
// process passes its credentials to the processes that it starts by these variables.
namespace skein {

inline constexpr char kTlsCertFlag[] = "--tls-cert", kTlsCertVariable[] = "SKEIN_TLS_CERT";
inline constexpr char kTlsKeyFlag[] = "--tls-key", kTlsKeyVariable[] = "SKEIN_TLS_KEY";
inline constexpr char kTlsCaFlag[] = "--tls-ca", kTlsCaVariable[] = "SKEIN_TLS_CA";
inline constexpr char kTokenFileFlag[] = "--token-file", kTokenFileVariable[] = "SKEIN_TOKEN_FILE";
inline constexpr char kInsecureFlag[] = "--insecure", kInsecureVariable[] = "SKEIN_INSECURE";

// The variables that name files, for a process that must not know them (Subprocess::Options::unset_env).
inline std::vector<std::string> CredentialFileVariables() {
  return {kTlsCertVariable, kTlsKeyVariable, kTlsCaVariable, kTokenFileVariable};
}

// Removes all of these variables from this process's environment, and so from that of processes that it starts.
void ForgetCredentialVariables();

// `app` is a CLI::App; a template, so that base does not depend on CLI11.
template <typename App>
void AddCredentialFlags(App* app, CredentialFiles* files) {
  const auto file = [app](const char* flag, std::string* path, const char* help, const char* variable) {
    app->add_option(flag, *path, help)->envname(variable)->type_name("FILE")->group("Security");
  };
  file(kTlsCertFlag, &files->tls_cert, "Certificate of this process (PEM): all connections are TLS, both sides checked",
       kTlsCertVariable);
  file(kTlsKeyFlag, &files->tls_key, "Its key", kTlsKeyVariable);
  file(kTlsCaFlag, &files->tls_ca, "Certificate of the CA that the other side's must be from", kTlsCaVariable);
  file(kTokenFileFlag, &files->token_file, "File with the token that every caller must have", kTokenFileVariable);
  app->add_flag(kInsecureFlag, files->insecure, "Listen on public addresses without asking who calls")
      ->envname(kInsecureVariable)
      ->group("Security");
}

}  // namespace skein
