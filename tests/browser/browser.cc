// SPDX-License-Identifier: Apache-2.0
#include "tests/browser/browser.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "base/process/file.h"
#include "gtest/gtest.h"
#include "tests/testing/wait_until.h"

namespace skein {
namespace {

using nlohmann::json;

constexpr char kDriver[] = "/usr/bin/chromedriver";
constexpr char kChromium[] = "/usr/bin/chromium";
constexpr char kAxe[] = ".deps/axe/axe.min.js";  // Tests run in the root of the tree.

}  // namespace

Browser::Browser() {
  if (access(kDriver, X_OK) != 0 || access(kChromium, X_OK) != 0) {
    ADD_FAILURE() << "Chromium and its driver are needed: scripts/install_dependencies.sh cluster";
    return;
  }
  driver_ = std::make_unique<Running>(kDriver, std::vector<std::string>{"--port=0"});
  const std::string port = driver_->WaitForOutput("started successfully on port (\\d+)");
  if (port.empty()) return;
  client_ = std::make_unique<httplib::Client>("127.0.0.1", std::stoi(port));
  client_->set_read_timeout(60);
  const json options = {
      {"binary", kChromium},
      {"args",
       {"--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
        "--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage",
        "--hide-scrollbars", absl::StrCat("--user-data-dir=", profile_.path(), "/profile")}}};
  const json session = Ask("/session", {{"capabilities",
                                         {{"alwaysMatch",
                                           {{"browserName", "chrome"},
                                            {"goog:chromeOptions", options},
                                            {"goog:loggingPrefs", {{"browser", "ALL"}, {"performance", "ALL"}}}}}}}});
  if (!session.is_object()) return;
  session_ = "/session/" + session.value("sessionId", "");
  Open("about:blank");
  Requests();  // Of the browser's own first page.
}

Browser::~Browser() {
  if (ok()) client_->Delete(session_);  // Ends Chromium.
}

json Browser::Ask(const std::string& path, const json& body) {
  if (client_ == nullptr) return nullptr;
  const auto answer = client_->Post(path, body.dump(), "application/json");
  if (!answer) {
    ADD_FAILURE() << path << ": " << httplib::to_string(answer.error());
    return nullptr;
  }
  const json parsed = json::parse(answer->body, nullptr, false);
  const json value = parsed.is_object() ? parsed.value("value", json()) : json();
  if (answer->status == 200) return value;
  ADD_FAILURE() << path << ": " << (value.is_object() ? value.value("message", answer->body) : answer->body);
  return nullptr;
}

json Browser::Devtools(const std::string& command, const json& parameters) {
  return Ask(session_ + "/goog/cdp/execute", {{"cmd", command}, {"params", parameters}});
}

void Browser::Open(const std::string& url) { Ask(session_ + "/url", {{"url", url}}); }

json Browser::Run(const std::string& script) {
  return Ask(session_ + "/execute/sync", {{"script", script}, {"args", json::array()}});
}

bool Browser::WaitFor(const std::string& script, absl::Duration limit) {
  const bool came = WaitUntil([&] { return Run(script) == true; }, limit, absl::Milliseconds(100));
  EXPECT_TRUE(came) << script;
  return came;
}

void Browser::Look(int width, int height, bool phone, const std::string& scheme) {
  Devtools("Emulation.setDeviceMetricsOverride",
           {{"width", width}, {"height", height}, {"deviceScaleFactor", phone ? 2 : 1}, {"mobile", phone}});
  Devtools("Emulation.setEmulatedMedia", {{"features", {{{"name", "prefers-color-scheme"}, {"value", scheme}}}}});
}

void Browser::SaveScreenshot(const std::string& path) {
  const json size = Run("return [document.documentElement.clientWidth, document.documentElement.scrollHeight]");
  if (!size.is_array()) return;
  const json shot = Devtools("Page.captureScreenshot",
                             {{"format", "png"},
                              {"captureBeyondViewport", true},
                              {"clip", {{"x", 0}, {"y", 0}, {"width", size[0]}, {"height", size[1]}, {"scale", 1}}}});
  std::string bytes;
  if (!shot.is_object() || !absl::Base64Unescape(shot.value("data", ""), &bytes)) {
    ADD_FAILURE() << "no screenshot";
    return;
  }
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  std::ofstream(path, std::ios::binary) << bytes;
}

std::vector<std::string> Browser::Barriers() {
  const auto axe = ReadFile(kAxe);
  if (!axe.ok()) {
    ADD_FAILURE() << kAxe << " is needed: scripts/install_dependencies.sh cluster";
    return {};
  }
  if (Run("return typeof axe") == "undefined") Run(*axe);
  return Run(R"(
    return axe.run(document, {resultTypes: ['violations']}).then(({violations}) => violations.flatMap(
        ({id, nodes}) => nodes.map(({target, failureSummary}) => `${id}: ${target.join(' ')}: ${failureSummary}`)));
  )");
}

std::vector<std::string> Browser::Complaints() {
  std::vector<std::string> complaints;
  for (const json& entry : Ask(session_ + "/se/log", {{"type", "browser"}})) {
    if (entry.value("level", "") == "SEVERE") complaints.push_back(entry.value("message", ""));
  }
  return complaints;
}

std::vector<std::string> Browser::Requests() {
  std::vector<std::string> urls;
  for (const json& entry : Ask(session_ + "/se/log", {{"type", "performance"}})) {
    const json message = json::parse(entry.value("message", "{}")).value("message", json::object());
    if (message.value("method", "") != "Network.requestWillBeSent") continue;
    urls.push_back(message["params"]["request"].value("url", ""));
  }
  return urls;
}

}  // namespace skein
