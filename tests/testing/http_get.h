// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace skein {

struct HttpReply {
  int status = 0;  // 0 = no answer.
  std::string content_type;
  std::string body;
};

// GET http://127.0.0.1:port/path over a plain socket; gives up after 20 s. `headers`: lines that end with "\r\n".
HttpReply HttpGet(int port, const std::string& path, const std::string& headers = "");

// Exit code of `command` with `input` on standard input; its output in *output. -1: it could not be run.
int RunWithInput(const std::string& command, const std::string& input, std::string* output);

}  // namespace skein
