// SPDX-License-Identifier: Apache-2.0
// Against a real etcd.
#include "coordinator/etcd_store.h"

#include "absl/synchronization/notification.h"
#include "coordinator/saved_run.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/coordinator/etcd_relay.h"
#include "tests/testing/etcd_server.h"
#include "tests/testing/wait_until.h"

namespace skein {
namespace {

using testing::HasSubstr;
using testing::Pair;
using testing::UnorderedElementsAre;

TEST(EtcdAddress, IsTakenApart) {
  const auto address = ParseEtcdAddress("etcd://node1:2379,[fd00::7]:2380/skein/run1/");
  ASSERT_TRUE(address.ok()) << address.status();
  EXPECT_THAT(address->endpoints, testing::ElementsAre("node1:2379", "[fd00::7]:2380"));
  EXPECT_EQ(address->prefix, "/skein/run1");
  EXPECT_FALSE(address->tls);
  EXPECT_TRUE(ParseEtcdAddress("etcds://node1:2379/run")->tls);
  for (const char* bad : {"http://node1:2379/run", "etcd://node1:2379", "etcd://node1:2379/", "etcd://node1/run",
                          "etcd:///run", "etcd://node1:2379/a b", "etcd://node1:2379//"}) {
    const absl::Status status = ParseEtcdAddress(bad).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << bad;
    EXPECT_THAT(std::string(status.message()), HasSubstr("want etcd://host:port[,host:port]/prefix"));
  }
}

TEST(EtcdClient, WhereNobodyAnswersIsUnavailable) {
  EtcdClient client(*ParseEtcdAddress("etcd://127.0.0.1:1,127.0.0.1:2/run"));
  EXPECT_TRUE(absl::IsUnavailable(client.ReadKey("a").status()));
  EXPECT_TRUE(absl::IsUnavailable(client.Grant(5).status()));
  EXPECT_TRUE(absl::IsUnavailable(client.KeepAlive(5).status()));
}

class EtcdStoreTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!EtcdServer::Installed()) GTEST_SKIP() << "no etcd on this machine";
    server_ = std::make_unique<EtcdServer>();
  }

  EtcdStore::Options Options(const std::string& address) const {
    EtcdStore::Options options;
    options.etcd = *ParseEtcdAddress(server_->Url("/skein/run"));
    // The first does not answer: the next one does.
    options.etcd.endpoints.insert(options.etcd.endpoints.begin(), "127.0.0.1:1");
    options.address = address;
    options.lease = absl::Seconds(2);
    options.patience = absl::Seconds(20);
    return options;
  }
  static std::unique_ptr<EtcdStore> Acquire(EtcdStore::Options options) {
    auto store = EtcdStore::Acquire(std::move(options));
    EXPECT_TRUE(store.ok()) << store.status();
    return store.ok() ? *std::move(store) : nullptr;
  }

  std::unique_ptr<EtcdServer> server_;
};

TEST_F(EtcdStoreTest, KeepsRecordsForASuccessor) {
  {
    const auto store = Acquire(Options("node1:7070"));
    EXPECT_TRUE(store->Serving());
    std::vector<StateChange> many;
    for (int i = 0; i < 250; ++i) many.push_back({"member/" + std::to_string(i), "x"});  // Three transactions.
    EXPECT_TRUE(store->Write(many).ok());
    for (StateChange& change : many) change.value.reset();
    EXPECT_TRUE(store->Write(many).ok());
    EXPECT_TRUE(store->Write({{"a", "1"}, {"b", std::string("\0\xff", 2)}, {"c", "3"}}).ok());
    EXPECT_TRUE(store->Write({{"a", "4"}, {"c", std::nullopt}}).ok());
  }
  const auto successor = Acquire(Options("node2:7070"));
  EXPECT_THAT(*successor->Load(), UnorderedElementsAre(Pair("a", "4"), Pair("b", std::string("\0\xff", 2))));
}

// etcd takes 1.5 MiB at a time.
TEST_F(EtcdStoreTest, LargeRecordsGoInSeveralTransactions) {
  const std::string large(400'000, 'x');
  std::vector<StateChange> many;
  for (int i = 0; i < 10; ++i) many.push_back({"member/" + std::to_string(i), large});
  const auto store = Acquire(Options("node1:7070"));
  const absl::Status written = store->Write(many);
  ASSERT_TRUE(written.ok()) << written;
  EXPECT_EQ(store->Load()->size(), 10u);
  const auto aside = store->SetAside("damaged");
  EXPECT_TRUE(aside.ok()) << aside.status();
}

TEST_F(EtcdStoreTest, WhatIsSetAsideIsFoundByPeopleAndNotByASuccessor) {
  EtcdClient people(*ParseEtcdAddress(server_->Url("/skein/run")));
  const auto aside = [&] {
    std::map<std::string, std::string> found;
    const auto all = people.ReadPrefix("/skein/run/aside/damaged/");
    EXPECT_TRUE(all.ok()) << all.status();
    for (const etcdserverpb::KeyValue& pair : all->kvs()) found[pair.key().substr(25)] = pair.value();
    return found;
  };
  const auto store = Acquire(Options("node1:7070"));
  std::vector<StateChange> many;
  for (int i = 0; i < 120; ++i) many.push_back({"member/" + std::to_string(i), "x"});
  EXPECT_TRUE(store->Write(many).ok());
  EXPECT_EQ(*store->SetAside("damaged"), "/skein/run/aside/damaged/");
  EXPECT_THAT(*store->Load(), testing::IsEmpty());
  EXPECT_EQ(aside().size(), 120u);
  EXPECT_EQ(aside()["member/7"], "x");

  EXPECT_TRUE(store->Write({{"member/7", "y"}, {"run", "z"}}).ok());
  EXPECT_TRUE(store->SetAside("damaged").ok());
  EXPECT_THAT(aside(), UnorderedElementsAre(Pair("member/7", "y"), Pair("run", "z")));
}

// After each number of transactions, until it takes no more: the next primary finds all records or none, and what it
// sets aside then is whole, whatever was there before.
TEST_F(EtcdStoreTest, WhoIsCutOffWhileSettingAsideLeavesItWhole) {
  static constexpr size_t kRecords = 250;  // Three transactions.
  EtcdClient people(*ParseEtcdAddress(server_->Url("/skein/run")));
  const auto aside = [&] {
    const auto all = people.ReadPrefix("/skein/run/aside/damaged/");
    EXPECT_TRUE(all.ok()) << all.status();
    return all.ok() ? static_cast<size_t>(all->kvs_size()) : 0;
  };
  EtcdRelay relay(server_->address());
  EtcdStore::Options through_relay = Options("node1:7070");
  through_relay.etcd.endpoints = {relay.address()};
  bool finished = false;
  int cuts = 0;
  for (int transactions = 0; !finished && transactions < 20; ++transactions) {
    std::vector<StateChange> many;
    for (size_t i = 0; i < kRecords; ++i) many.push_back({"member/" + std::to_string(i), std::to_string(transactions)});
    {
      const auto store = Acquire(through_relay);
      ASSERT_TRUE(store->Write(many).ok());
      relay.CutAfter(transactions);
      finished = store->SetAside("damaged").ok();
      EXPECT_EQ(finished, !relay.has_cut());
      relay.CutAfter(1000);
    }
    cuts += finished ? 0 : 1;
    const auto successor = Acquire(Options("node2:7070"));
    const size_t left = successor->Load()->size();
    EXPECT_EQ(left, finished ? 0 : kRecords) << transactions;
    if (left > 0) {
      EXPECT_TRUE(successor->SetAside("damaged").ok());
    }
    EXPECT_EQ(aside(), kRecords) << transactions;
    EXPECT_EQ(people.ReadKey("/skein/run/aside/damaged/member/7")->kvs(0).value(), std::to_string(transactions));
    EXPECT_THAT(*successor->Load(), testing::IsEmpty());
    // Once more, as after an answer that was lost: what was set aside stays.
    EXPECT_TRUE(successor->SetAside("damaged").ok());
    EXPECT_EQ(aside(), kRecords) << transactions;
  }
  EXPECT_TRUE(finished);
  EXPECT_GE(cuts, 4);  // Before it, and after some of its steps.
}

TEST_F(EtcdStoreTest, DamagedStateIsSetAsideAndTheRunGoesOnWithout) {
  StoreOptions options;
  options.url = server_->Url("/skein/run");
  options.address = "node1:7070";
  const auto store = OpenStore(options);
  ASSERT_TRUE(store.ok()) << store.status();
  ASSERT_TRUE((*store)->Write({{"run", "no record of a run"}, {"member/actor-3", "nor this"}}).ok());
  CoordinatorState::Options state;
  state.run_id = "run7";
  const absl::Status status = TakeOver(store->get(), 1'700'000'000'000, &state);
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_FALSE(state.saved);
  EXPECT_THAT(*(*store)->Load(), testing::IsEmpty());
  EtcdClient people(*ParseEtcdAddress(options.url));
  const auto aside = people.ReadKey("/skein/run/aside/damaged/run");
  ASSERT_TRUE(aside.ok()) << aside.status();
  ASSERT_EQ(aside->kvs_size(), 1);
  EXPECT_EQ(aside->kvs(0).value(), "no record of a run");
}

TEST_F(EtcdStoreTest, OnePrimaryAtATimeAndAnotherWaitsForItsTurn) {
  auto primary = Acquire(Options("node1:7070"));
  EtcdStore::Options impatient = Options("node2:7070");
  impatient.patience = absl::ZeroDuration();
  const absl::Status status = EtcdStore::Acquire(impatient).status();
  EXPECT_TRUE(absl::IsUnavailable(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("node1:7070 is the primary"));

  absl::Notification waits;
  EtcdStore::Options patient = Options("node2:7070");
  patient.on_wait = [&](const std::string&) { waits.Notify(); };
  std::unique_ptr<EtcdStore> standby;
  std::thread thread([&] { standby = Acquire(patient); });
  waits.WaitForNotification();
  primary.reset();  // In order: the lease is given back.
  thread.join();
  EXPECT_TRUE(standby->Serving());
}

TEST_F(EtcdStoreTest, AStandbyThatIsCancelledEnds) {
  const auto primary = Acquire(Options("node1:7070"));
  Cancellation cancel;
  EtcdStore::Options options = Options("node2:7070");
  options.cancel = &cancel;
  options.on_wait = [&](const std::string&) { cancel.Cancel(); };
  EXPECT_TRUE(absl::IsCancelled(EtcdStore::Acquire(options).status()));
}

// Somebody else takes the lease away, as etcd does when it has not heard of the primary for its time.
TEST_F(EtcdStoreTest, WhoHasLostTheLeaseWritesNothingAndServesNobody) {
  absl::Notification lost;
  EtcdStore::Options options = Options("node1:7070");
  options.on_lost = [&](const absl::Status& why) {
    EXPECT_TRUE(absl::IsAborted(why)) << why;
    lost.Notify();
  };
  const auto primary = Acquire(options);
  EXPECT_TRUE(primary->Write({{"a", "of the first"}}).ok());
  EtcdClient other(*ParseEtcdAddress(server_->Url("/skein/run")));
  const auto key = other.ReadKey("/skein/run/primary");
  ASSERT_TRUE(key.ok() && key->kvs_size() == 1);
  EXPECT_EQ(key->kvs(0).value(), "node1:7070");
  EXPECT_TRUE(other.Revoke(key->kvs(0).lease()).ok());
  const auto successor = Acquire(Options("node2:7070"));
  EXPECT_TRUE(absl::IsAborted(primary->Write({{"a", "of the first, late"}})));
  EXPECT_TRUE(absl::IsAborted(primary->SetAside("damaged").status()));
  EXPECT_FALSE(primary->Serving());
  lost.WaitForNotification();
  EXPECT_THAT(*successor->Load(), UnorderedElementsAre(Pair("a", "of the first")));
}

TEST_F(EtcdStoreTest, ServingEndsWithTheLeaseWhenEtcdIsAway) {
  absl::Notification lost;
  EtcdStore::Options options = Options("node1:7070");
  options.on_lost = [&](const absl::Status&) { lost.Notify(); };
  const auto primary = Acquire(options);
  server_->Kill();
  EXPECT_TRUE(absl::IsUnavailable(primary->Write({{"a", "1"}})));
  lost.WaitForNotification();
  EXPECT_FALSE(primary->Serving());
  server_->Start();  // Too late.
  EXPECT_FALSE(primary->Serving());
}

}  // namespace
}  // namespace skein
