// SPDX-License-Identifier: Apache-2.0
#include "base/process/file.h"
#include "coordinator/history.h"
#include "coordinator/state_log.h"
#include "coordinator/state_records.h"
#include "tests/fuzz/scratch.h"
#include "tests/fuzz/seeds.h"
#include "tests/fuzz/targets.h"

namespace skein::fuzz {

std::vector<Seed> StateLogSeeds() {
  const Scratch folder("seeds");
  auto log = StateLog::Open(folder.path()).value();
  store::RunRecord run;
  run.set_run_id("run");
  run.set_epoch(7);
  store::ProgressRecord progress;
  progress.mutable_progress()->set_state(v1::RUN_STATE_TRAINING);
  store::BarrierRecord barrier;
  barrier.set_role(v1::ROLE_LEARNER);
  barrier.set_name("start");
  barrier.set_opened_generation(3);
  barrier.add_members("learner-0");
  barrier.add_payloads("x");
  Member member;
  member.id = "actor-1";
  member.role = v1::ROLE_ACTOR;
  Check(log->Load().ok() && log->Write({PutRun(run), PutProgress(progress), PutMember(member)}).ok() &&
            log->Write({PutBarrier(barrier), RemoveMember("actor-1")}).ok(),
        "a log can be written");
  History history;
  history.Add(v1::StatusResponse(), absl::ZeroDuration());
  Check(log->Write(history.TakeChanges(1.7e9)).ok(), "a history can be written");
  const std::string whole = ReadFile(folder.path() + "/log").value();
  store::LogEntry entry;
  store::Change& change = *entry.add_changes();
  change.set_key("run");
  change.set_value(run.SerializeAsString());
  store::LogEntry damaged = entry;
  damaged.mutable_changes(0)->set_value("\xff\xff");
  std::string flipped = whole;
  flipped[40] = static_cast<char>(flipped[40] ^ 1);
  return {{"state_log", "good_log", "\x02" + whole},
          {"state_log", "good_cut_off", "\x02" + whole.substr(0, whole.size() - 3)},
          {"state_log", "good_entry", "\x01" + entry.SerializeAsString()},
          {"state_log", "bad_record", "\x01" + damaged.SerializeAsString()},
          {"state_log", "bad_bit", "\x02" + flipped},
          {"state_log", "bad_magic", "\x02" + whole.substr(1)},
          {"state_log", "bad_empty", "\x02"}};
}

}  // namespace skein::fuzz
