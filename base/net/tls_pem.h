// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/status/status.h"
#include "base/net/credentials.h"

struct ssl_ctx_st;
struct ssl_st;

// Credentials as OpenSSL wants them.
namespace skein {

// InvalidArgument names the flag: PEM that cannot be read, a key that is not the certificate's. A certificate that has
// expired is only warned of: it is for the other side to refuse. REQUIRES: credentials.has_tls().
absl::Status CheckTlsPem(const Credentials& credentials);

// Makes an SSL_CTX that of a server with this certificate and key. A client's certificate is asked for, and must be of
// the CA, if there is no token that identifies the caller; a client may have none, see HasCertificate(). TLS 1.2 at
// least. False: they cannot be used. REQUIRES: credentials.has_tls().
bool SetUpTlsServer(const Credentials& credentials, ssl_ctx_st* context);

// Whether the client of an SSL connection has shown a certificate (which was then checked).
bool HasCertificate(const ssl_st* connection);

}  // namespace skein
