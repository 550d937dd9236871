// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

// Certificates for the processes of a run, made for `skein certs`.   CertificateAuthority -> KeyAndCertificate in PEM
namespace skein {

struct KeyAndCertificate {
  std::string key_pem, certificate_pem;
};

// A certificate authority (CA) for the processes of one run. It issues certificates with P-256 keys through OpenSSL.
class CertificateAuthority {
 public:
  // Makes a new CA. Internal: OpenSSL failed.
  static absl::StatusOr<CertificateAuthority> Make(absl::Duration valid_for);
  // Uses an existing CA.
  explicit CertificateAuthority(KeyAndCertificate own) : own_(std::move(own)) {}

  struct Request {
    std::string common_name;
    std::vector<std::string> names;  // DNS names or IP addresses, as subject alternative names.
    bool serves = false;             // True: for servers too. False: for clients only.
    absl::Duration valid_from = -absl::Hours(1), valid_until = absl::Hours(24);  // Relative to now: clocks differ.
  };
  // InvalidArgument: a name that is neither a host name nor an address. Internal: OpenSSL failed, e.g. own() is not a
  // CA.
  absl::StatusOr<KeyAndCertificate> Issue(const Request& request) const;

  const KeyAndCertificate& own() const { return own_; }

 private:
  KeyAndCertificate own_;  // PEM.
};

// `skein certs init`.
struct CertificateFolderOptions {
  std::string folder;
  int days = 365;
  std::vector<std::string> hosts;  // Host names and addresses at which browsers and Prometheus reach the servers.
};

// Makes the folder with ca.crt and ca.key; a .crt and a .key for each of coordinator, learner, actor, client and node
// (node serves for all of them); and token. Only the owner can read keys and token. Returns the names of the files.
// InvalidArgument: a file exists already, or a host is invalid. Others: the system's error if a file cannot be written.
absl::StatusOr<std::vector<std::string>> MakeCertificateFolder(const CertificateFolderOptions& options);

}  // namespace skein
