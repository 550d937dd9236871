// SPDX-License-Identifier: Apache-2.0
#include "sweep/slot_lender.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/process/message_text.h"
#include "base/process/no_links.h"
#include "base/process/system_error.h"
#include "sweep/place_file.h"

namespace skein {
namespace {

namespace fs = std::filesystem;

// The order of a process that lives; makes the file, so that there is one to write to. Nullopt: there is none.
absl::StatusOr<std::optional<SlotOrder>> ReadOrder(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);
  if (fd < 0) return SystemError(errno, absl::StrCat("cannot write ", path));
  std::optional<SlotOrder> order;
  if (const std::string text = ReadAll(fd); !text.empty()) order = OrderOf(text);
  // No process has it locked: the sweep's process is no more.
  if (order && flock(fd, LOCK_SH | LOCK_NB) == 0) order.reset();
  close(fd);
  return order;
}

// Whether an order's folders are the same here.
absl::Status CheckFolders(const SlotOrder& order, const std::string& folder) {
  std::error_code error;
  if (!fs::is_directory(order.cwd, error)) {
    return absl::FailedPreconditionError(absl::StrCat("the sweep was started in ", order.cwd,
                                                      ", which is no folder here; workers must see the same folders"));
  }
  const fs::path theirs = fs::path(order.cwd) / order.folder;
  if (fs::equivalent(theirs, folder, error)) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat("the sweep has its folder at ", theirs.string(), ", which is not ",
                                                    folder, " here; workers must see the same folders"));
}

}  // namespace

absl::StatusOr<std::unique_ptr<SlotLender>> SlotLender::Lend(Options options) {
  std::unique_ptr<SlotLender> lender(new SlotLender(std::move(options)));
  const std::string& folder = lender->options_.folder;
  if (absl::Status s = MakeFolder(OrdersFolder(folder)); !s.ok()) return s;
  for (uint32_t i = 0; i < lender->options_.slots; ++i) {
    Slot slot;
    slot.name = absl::StrCat(lender->options_.name, "-", i);
    // The order's file first: the sweep writes to it as soon as it sees the slot.
    if (const auto order = ReadOrder(OrderPath(folder, slot.name)); !order.ok()) return order.status();
    const auto fd = TakePlaceFile(WorkerPath(folder, slot.name));
    if (!fd.ok()) return fd.status();
    slot.fd = *fd;
    lender->slots_.push_back(std::move(slot));
    // A process of the same name may have left its answer there.
    if (absl::Status s = Rewrite(*fd, WorkerPath(folder, lender->slots_.back().name), ""); !s.ok()) return s;
  }
  return lender;
}

SlotLender::~SlotLender() {
  for (const Slot& slot : slots_) {
    unlink(WorkerPath(options_.folder, slot.name).c_str());
    unlink(OrderPath(options_.folder, slot.name).c_str());
    close(slot.fd);
  }
}

absl::Status SlotLender::Step() {
  absl::Status status;
  for (size_t i = 0; i < slots_.size(); ++i) status.Update(StepSlot(i));
  return status;
}

void SlotLender::Leave() { leaving_ = true; }

uint32_t SlotLender::busy() const {
  return static_cast<uint32_t>(
      std::count_if(slots_.begin(), slots_.end(), [](const Slot& slot) { return slot.child != nullptr; }));
}

absl::Status SlotLender::StepSlot(size_t number) {
  Slot& slot = slots_[number];
  const auto read = ReadOrder(OrderPath(options_.folder, slot.name));
  if (!read.ok() && !leaving_) return read.status();
  const std::optional<SlotOrder> order = read.ok() ? *read : std::nullopt;
  const bool known = order && order->id == slot.id;
  if (slot.child == nullptr) return leaving_ || !order || known ? absl::OkStatus() : Start(number, *order);
  if ((leaving_ || !known || order->stop) && !std::exchange(slot.asked, true)) slot.child->process().Signal(SIGTERM);
  const auto code = slot.child->process().Poll();
  if (!code) return absl::OkStatus();
  news_.push_back(absl::StrCat(slot.name, ": ", slot.child->name(), " has ended with code ", *code));
  const absl::Status answered = known && !leaving_ ? Answer(slot, *code) : absl::OkStatus();
  slot.child.reset();
  return answered;
}

absl::Status SlotLender::Start(size_t number, const SlotOrder& order) {
  if (absl::Status s = CheckFolders(order, options_.folder); !s.ok()) return s;
  const auto program = FindProgram(options_.program_folder, "skein");
  if (!program.ok()) return program.status();
  std::vector<std::string> arguments = {absl::StrCat("--chdir=", order.cwd), *program};
  arguments.insert(arguments.end(), order.arguments.begin(), order.arguments.end());
  std::vector<std::string> environment;
  if (!options_.gpus.empty()) environment.push_back("CUDA_VISIBLE_DEVICES=" + options_.gpus[number]);
  auto child = Child::Start({.name = order.name,
                             .program = "/usr/bin/env",
                             .arguments = std::move(arguments),
                             .log_path = (fs::path(order.cwd) / order.log_path).string(),
                             .extra_env = environment,
                             .share = options_.share,
                             .enforcer = &enforcer_});
  if (!child.ok()) return child.status();
  Slot& slot = slots_[number];
  slot.child = *std::move(child);
  slot.id = order.id;
  slot.asked = false;
  news_.push_back(absl::StrCat(slot.name, ": ", order.name));
  return absl::OkStatus();
}

absl::Status SlotLender::Answer(const Slot& slot, int code) {
  const std::string why = code == 0 ? "" : OneLine(slot.child->DescribeExit(code));
  return Rewrite(slot.fd, WorkerPath(options_.folder, slot.name), ToText(SlotAnswer{slot.id, code, why}));
}

}  // namespace skein
