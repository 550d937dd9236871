// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace skein {

struct KeyAndCertificate {
  std::string key_pem, certificate_pem;
};

// A CA for the processes of one run, and the certificates that it makes: keys on P-256, OpenSSL's library.
class CertificateAuthority {
 public:
  // Internal: OpenSSL refused.
  static absl::StatusOr<CertificateAuthority> Make(absl::Duration valid_for);
  // One that was made before.
  explicit CertificateAuthority(KeyAndCertificate own) : own_(std::move(own)) {}

  struct Request {
    std::string common_name;
    std::vector<std::string> names;  // DNS names or IP addresses: alternative names.
    bool serves = false;             // For servers as well as for clients.
    absl::Duration valid_from = -absl::Hours(1), valid_until = absl::Hours(24);  // From now on. Clocks differ.
  };
  // InvalidArgument: a name that is neither a host's name nor an address. Internal: OpenSSL refused, e.g. own() is no
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
  std::vector<std::string> hosts;  // Names and addresses under which browsers and Prometheus reach servers.
};

// Makes the folder with ca.crt and ca.key; coordinator, learner, actor, client and node (all of them at once), each
// .crt and .key; and token. Keys and token are for the owner only. Returns the files' names. InvalidArgument: a file is
// there already, a host that is none. As the system says: nothing could be written.
absl::StatusOr<std::vector<std::string>> MakeCertificateFolder(const CertificateFolderOptions& options);

}  // namespace skein
