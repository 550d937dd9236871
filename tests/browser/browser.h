// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "httplib.h"
#include "nlohmann/json.hpp"
#include "tests/cli/scratch_folder.h"
#include "tests/testing/program.h"

namespace skein {

// A headless Chromium with a fresh profile, driven by WebDriver over HTTP (chromedriver). What goes wrong fails the
// test. Not thread-safe.
class Browser {
 public:
  Browser();
  ~Browser();
  Browser(const Browser&) = delete;
  Browser& operator=(const Browser&) = delete;

  // Whether there is a page to work with.
  bool ok() const { return !session_.empty(); }

  void Open(const std::string& url);
  // What the body of a function in the page returns; of a promise, what it is resolved to.
  nlohmann::json Run(const std::string& script);
  // Runs it every 100 ms until it returns something true, for at most `limit`; false: the test has failed.
  bool WaitFor(const std::string& script, absl::Duration limit = absl::Seconds(30));

  // A viewport of this size in CSS pixels and a colour scheme, "light" or "dark".
  void Look(int width, int height, bool phone, const std::string& scheme);
  // The whole page as PNG.
  void SaveScreenshot(const std::string& path);

  // What axe-core (scripts/fetch_axe.sh) has against the page for people who see or hear it otherwise: a line for each
  // element and rule, by the rules of WCAG 2.2 AA and axe's best practices.
  std::vector<std::string> Barriers();

  // Errors that the page caused: uncaught exceptions, refused resources, console.error().
  std::vector<std::string> Complaints();
  // The address of each request since the last call.
  std::vector<std::string> Requests();

 private:
  // The "value" of WebDriver's answer; null: it failed.
  nlohmann::json Ask(const std::string& path, const nlohmann::json& body);
  nlohmann::json Devtools(const std::string& command, const nlohmann::json& parameters);

  const ScratchFolder profile_;
  std::unique_ptr<Running> driver_;
  std::unique_ptr<httplib::Client> client_;
  std::string session_;  // "/session/ID"
};

}  // namespace skein
