// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

// Credentials of a process, and those it asks of its callers. docs/security.md says which role may do what.
namespace skein {

// Where the credentials are; empty = none. The three of TLS are given together.
struct CredentialFiles {
  std::string tls_cert;    // PEM: this process's certificate, then any between it and the CA's.
  std::string tls_key;     // PEM: its key; no other user may read it.
  std::string tls_ca;      // PEM: the CA whose certificates others must have.
  std::string token_file;  // A secret that all processes of a run share.
  bool insecure = false;   // Lets servers listen on public addresses without any of these.
};

struct Credentials {
  std::string certificate_pem, key_pem, ca_pem;  // All or none.
  std::string token;                             // Printable ASCII. Empty = none is asked for.
  bool insecure = false;

  bool has_tls() const { return !ca_pem.empty(); }
};

// A token is at least this long: one that can be guessed is none.
inline constexpr size_t kMinTokenBytes = 16;
inline constexpr size_t kMaxTokenBytes = 4096;

// Reads them. InvalidArgument names the flag and what to do: one of three TLS files is missing, a file cannot be read
// or is empty, every user of this machine may read the key or the token, a token that is too short or not one word, PEM
// that cannot be read, a key that is not the certificate's.
absl::StatusOr<Credentials> LoadCredentials(const CredentialFiles& files);

// Makes them those of this process, and of the processes that it starts, by the environment variables of
// credential_flags.h. To be called once, before other threads look at the environment and before the first server or
// channel. Errors as LoadCredentials.
absl::Status UseCredentials(const CredentialFiles& files);

// What UseCredentials() has set, none by default.
const Credentials& ProcessCredentials();

// Whether a server may listen on `address` (host:port): on the loopback always, elsewhere if it asks callers for a
// token or a certificate, or if it was told that it need not. InvalidArgument says what to do; or it is not host:port.
absl::Status CheckExposure(const std::string& address, const Credentials& credentials = ProcessCredentials());

// In a time that says nothing of where they differ (but of their sizes).
bool EqualsInConstantTime(absl::string_view a, absl::string_view b);

}  // namespace skein
