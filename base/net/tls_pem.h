// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/status/status.h"
#include "base/net/credentials.h"

struct ssl_ctx_st;
struct ssl_st;

// Converts credentials to OpenSSL's types.
namespace skein {

// Checks the PEM texts. InvalidArgument names the flag: PEM cannot be parsed, or the key does not belong to the
// certificate. An expired certificate only logs a warning: the peer refuses it. REQUIRES: credentials.has_tls().
absl::Status CheckTlsPem(const Credentials& credentials);

// Configures an SSL_CTX for a server with this certificate and key, TLS 1.2 at least. Without a token, it requests a
// client certificate, which must be of the CA; a client may still send none, see HasCertificate().
// False: the credentials cannot be used. REQUIRES: credentials.has_tls().
bool SetUpTlsServer(const Credentials& credentials, ssl_ctx_st* context);

// Whether the client of an SSL connection has sent a certificate (which was then checked).
bool HasCertificate(const ssl_st* connection);

}  // namespace skein
