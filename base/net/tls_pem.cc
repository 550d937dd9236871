// SPDX-License-Identifier: Apache-2.0
#include "base/net/tls_pem.h"

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/net/credential_flags.h"
#include "openssl/bio.h"
#include "openssl/err.h"
#include "openssl/pem.h"
#include "openssl/ssl.h"
#include "openssl/x509.h"
#include "spdlog/spdlog.h"

namespace skein {
namespace {

struct Freer {
  void operator()(BIO* bio) const { BIO_free(bio); }
  void operator()(X509* certificate) const { X509_free(certificate); }
  void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
};
using Bio = std::unique_ptr<BIO, Freer>;
using Certificate = std::unique_ptr<X509, Freer>;
using Key = std::unique_ptr<EVP_PKEY, Freer>;

Bio Read(const std::string& text) { return Bio(BIO_new_mem_buf(text.data(), static_cast<int>(text.size()))); }

std::vector<Certificate> ReadCertificates(const std::string& pem) {
  std::vector<Certificate> certificates;
  const Bio bio = Read(pem);
  while (X509* one = PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr)) certificates.emplace_back(one);
  ERR_clear_error();  // The end of the text is an error, too.
  return certificates;
}

// A key with a pass phrase is refused instead of asking on the terminal.
Key ReadKey(const std::string& pem) {
  const auto no_phrase = [](char*, int, int, void*) { return 0; };
  Key key(PEM_read_bio_PrivateKey(Read(pem).get(), nullptr, no_phrase, nullptr));
  ERR_clear_error();
  return key;
}

absl::Status Bad(const char* flag, const char* what) {
  return absl::InvalidArgumentError(absl::StrCat(flag, ": ", what));
}

}  // namespace

absl::Status CheckTlsPem(const Credentials& credentials) {
  const auto own = ReadCertificates(credentials.certificate_pem);
  if (own.empty()) return Bad(kTlsCertFlag, "no certificate (PEM) in the file");
  if (ReadCertificates(credentials.ca_pem).empty()) return Bad(kTlsCaFlag, "no certificate (PEM) in the file");
  const Key key = ReadKey(credentials.key_pem);
  if (key == nullptr) return Bad(kTlsKeyFlag, "no private key (PEM, without a pass phrase) in the file");
  if (X509_check_private_key(own.front().get(), key.get()) != 1) {
    ERR_clear_error();
    return Bad(kTlsKeyFlag, "the key is not that of the certificate");
  }
  if (X509_cmp_current_time(X509_get0_notAfter(own.front().get())) < 0) {
    spdlog::warn("{}: the certificate has expired; others will refuse it", kTlsCertFlag);
  }
  return absl::OkStatus();
}

bool SetUpTlsServer(const Credentials& credentials, ssl_ctx_st* context) {
  const auto own = ReadCertificates(credentials.certificate_pem);
  const Key key = ReadKey(credentials.key_pem);
  if (own.empty() || key == nullptr) return false;
  bool good = SSL_CTX_use_certificate(context, own.front().get()) == 1 &&
              SSL_CTX_use_PrivateKey(context, key.get()) == 1 &&
              SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION) == 1;
  for (size_t i = 1; good && i < own.size(); ++i) good = SSL_CTX_add1_chain_cert(context, own[i].get()) == 1;
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_options(context, SSL_OP_NO_TICKET | SSL_OP_NO_RENEGOTIATION);
  if (!good || !credentials.token.empty()) return good;
  for (const Certificate& ca : ReadCertificates(credentials.ca_pem)) {
    good = good && X509_STORE_add_cert(SSL_CTX_get_cert_store(context), ca.get()) == 1 &&
           SSL_CTX_add_client_CA(context, ca.get()) == 1;
  }
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER, nullptr);
  return good;
}

bool HasCertificate(const ssl_st* connection) {
  return connection != nullptr && SSL_get0_peer_certificate(connection) != nullptr;
}

}  // namespace skein
