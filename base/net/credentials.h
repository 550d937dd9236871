// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

// Credentials that a process has and that it requires of its callers. docs/security.md lists the rights of each role.
namespace skein {

// Paths of the credential files; empty = none. The three TLS files must be given together.
struct CredentialFiles {
  std::string tls_cert;    // PEM: this process's certificate, then intermediate certificates up to the CA's.
  std::string tls_key;     // PEM: its key; other users must not be able to read it.
  std::string tls_ca;      // PEM: the CA that must have issued the certificates of all peers.
  std::string token_file;  // A secret that all processes of a run share.
  bool insecure = false;   // Lets servers listen on public addresses without any of these.
};

struct Credentials {
  std::string certificate_pem, key_pem, ca_pem;  // All or none.
  std::string token;                             // Printable ASCII. Empty = none is required.
  bool insecure = false;

  bool has_tls() const { return !ca_pem.empty(); }
};

// The least size of a token, so that it cannot be guessed.
inline constexpr size_t kMinTokenBytes = 16;
inline constexpr size_t kMaxTokenBytes = 4096;

// Reads the files. InvalidArgument names the flag and the remedy: not all three TLS files are given, a file cannot be
// read or is empty, all users of this machine may read the key or the token, a token is too short or not one word, PEM
// cannot be parsed, or the key does not belong to the certificate.
absl::StatusOr<Credentials> LoadCredentials(const CredentialFiles& files);

// Loads the credentials of this process, and passes the files to processes that it starts, by the environment variables
// of credential_flags.h. Call it once, before other threads read the environment and before the first server or
// channel. Errors as LoadCredentials.
absl::Status UseCredentials(const CredentialFiles& files);

// The credentials that UseCredentials() loaded; none by default.
const Credentials& ProcessCredentials();

// "https" if this process has certificates: all that it serves then uses TLS. Otherwise "http".
const char* HttpScheme();

// Checks whether a server may listen on `address` (host:port): on the loopback always, elsewhere if it requires a
// token or a certificate, or with `insecure`. InvalidArgument: it may not (with the remedy), or it is not host:port.
absl::Status CheckExposure(const std::string& address, const Credentials& credentials = ProcessCredentials());

// Compares in a time that does not depend on the position of a difference (only on the sizes).
bool EqualsInConstantTime(absl::string_view a, absl::string_view b);

}  // namespace skein
