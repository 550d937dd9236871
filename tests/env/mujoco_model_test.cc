// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <thread>
#include <type_traits>
#include <vector>

#include "absl/strings/match.h"
#include "env/mujoco/library.h"
#include "env/mujoco/model.h"
#include "tests/env/golden.h"

namespace skein {
namespace {

absl::StatusOr<SharedModel> Published(const std::string& id) {
  return ModelOf(**MakeMujocoTask(id), ModelForm::kPublished);
}
absl::StatusOr<SharedModel> Stepped(const std::string& id) {
  return ModelOf(**MakeMujocoTask(id), ModelForm::kStepped);
}
absl::StatusOr<SharedModel> HalfCheetahModel() { return Stepped("HalfCheetah-v5"); }
absl::StatusOr<SharedModel> PublishedHalfCheetahModel() { return Published("HalfCheetah-v5"); }

template <typename T>
std::vector<double> Numbers(const T& value, int size) {
  if constexpr (std::is_arithmetic_v<T>) {
    return {static_cast<double>(value)};
  } else {
    return std::vector<double>(&value[0], &value[0] + size);
  }
}

// The same fields as scripts/make_env_golden.py writes.
std::map<std::string, std::vector<double>> Describe(const mjModel& m) {
  std::map<std::string, std::vector<double>> fields;
#define SKEIN_SIZE(name) fields[#name] = {static_cast<double>(m.name)}
  SKEIN_SIZE(nq), SKEIN_SIZE(nv), SKEIN_SIZE(nu), SKEIN_SIZE(na), SKEIN_SIZE(nbody), SKEIN_SIZE(njnt);
  SKEIN_SIZE(ngeom), SKEIN_SIZE(ntendon), SKEIN_SIZE(neq), SKEIN_SIZE(npair), SKEIN_SIZE(nexclude);
  SKEIN_SIZE(nsensor), SKEIN_SIZE(nmocap);
#undef SKEIN_SIZE
#define SKEIN_OPT(name, n) fields["opt_" #name] = Numbers(m.opt.name, n)
  SKEIN_OPT(timestep, 1), SKEIN_OPT(gravity, 3), SKEIN_OPT(integrator, 1), SKEIN_OPT(cone, 1), SKEIN_OPT(jacobian, 1);
  SKEIN_OPT(solver, 1), SKEIN_OPT(iterations, 1), SKEIN_OPT(tolerance, 1), SKEIN_OPT(noslip_iterations, 1);
  SKEIN_OPT(impratio, 1), SKEIN_OPT(wind, 3), SKEIN_OPT(density, 1), SKEIN_OPT(viscosity, 1);
  SKEIN_OPT(disableflags, 1), SKEIN_OPT(enableflags, 1);
#undef SKEIN_OPT
#define SKEIN_ARRAY(name, n) fields[#name] = Numbers(m.name, n)
  const int nb = m.nbody, nj = m.njnt, nv = m.nv, ng = m.ngeom, nu = m.nu;
  SKEIN_ARRAY(body_parentid, nb), SKEIN_ARRAY(body_pos, 3 * nb), SKEIN_ARRAY(body_quat, 4 * nb);
  SKEIN_ARRAY(body_ipos, 3 * nb), SKEIN_ARRAY(body_iquat, 4 * nb), SKEIN_ARRAY(body_mass, nb);
  SKEIN_ARRAY(body_inertia, 3 * nb), SKEIN_ARRAY(body_subtreemass, nb), SKEIN_ARRAY(body_invweight0, 2 * nb);
  SKEIN_ARRAY(body_jntnum, nb), SKEIN_ARRAY(body_geomnum, nb);
  SKEIN_ARRAY(jnt_type, nj), SKEIN_ARRAY(jnt_bodyid, nj), SKEIN_ARRAY(jnt_axis, 3 * nj), SKEIN_ARRAY(jnt_pos, 3 * nj);
  SKEIN_ARRAY(jnt_stiffness, nj), SKEIN_ARRAY(jnt_range, 2 * nj), SKEIN_ARRAY(jnt_limited, nj);
  SKEIN_ARRAY(jnt_solref, mjNREF * nj), SKEIN_ARRAY(jnt_solimp, mjNIMP * nj), SKEIN_ARRAY(jnt_margin, nj);
  SKEIN_ARRAY(dof_armature, nv), SKEIN_ARRAY(dof_damping, nv), SKEIN_ARRAY(dof_frictionloss, nv);
  SKEIN_ARRAY(dof_solref, mjNREF * nv), SKEIN_ARRAY(dof_solimp, mjNIMP * nv), SKEIN_ARRAY(dof_invweight0, nv);
  SKEIN_ARRAY(geom_type, ng), SKEIN_ARRAY(geom_bodyid, ng), SKEIN_ARRAY(geom_size, 3 * ng);
  SKEIN_ARRAY(geom_pos, 3 * ng), SKEIN_ARRAY(geom_quat, 4 * ng), SKEIN_ARRAY(geom_contype, ng);
  SKEIN_ARRAY(geom_conaffinity, ng), SKEIN_ARRAY(geom_condim, ng), SKEIN_ARRAY(geom_friction, 3 * ng);
  SKEIN_ARRAY(geom_solref, mjNREF * ng), SKEIN_ARRAY(geom_solimp, mjNIMP * ng), SKEIN_ARRAY(geom_solmix, ng);
  SKEIN_ARRAY(geom_priority, ng), SKEIN_ARRAY(geom_margin, ng), SKEIN_ARRAY(geom_gap, ng);
  SKEIN_ARRAY(actuator_trntype, nu), SKEIN_ARRAY(actuator_trnid, 2 * nu), SKEIN_ARRAY(actuator_gear, 6 * nu);
  SKEIN_ARRAY(actuator_ctrllimited, nu), SKEIN_ARRAY(actuator_ctrlrange, 2 * nu);
  SKEIN_ARRAY(actuator_forcelimited, nu), SKEIN_ARRAY(actuator_dyntype, nu), SKEIN_ARRAY(actuator_gaintype, nu);
  SKEIN_ARRAY(actuator_gainprm, mjNGAIN * nu), SKEIN_ARRAY(actuator_biastype, nu);
  SKEIN_ARRAY(actuator_biasprm, mjNBIAS * nu), SKEIN_ARRAY(qpos0, m.nq), SKEIN_ARRAY(qpos_spring, m.nq);
#undef SKEIN_ARRAY
  return fields;
}

void ExpectNumbersOf(const std::string& golden_name, const absl::StatusOr<SharedModel>& model) {
  ASSERT_TRUE(model.ok()) << model.status();
  const auto got = Describe(**model);
  nlohmann::json golden = ReadGolden(golden_name);
  golden.erase("made_with");
  EXPECT_EQ(golden.size(), got.size());
  for (const auto& [field, numbers] : golden.items()) {
    ASSERT_TRUE(got.contains(field)) << field;
    const std::vector<double> want = numbers;
    EXPECT_THAT(got.at(field), testing::Pointwise(testing::DoubleNear(1e-9), want)) << field;
  }
}

TEST(PublishedModels, HaveTheNumbersOfGymnasiumsModels) {
  const std::pair<const char*, const char*> models[] = {{"Ant-v5", "ant"},
                                                        {"HalfCheetah-v5", "half_cheetah"},
                                                        {"Hopper-v5", "hopper"},
                                                        {"Humanoid-v5", "humanoid"},
                                                        {"HumanoidStandup-v5", "humanoid_standup"},
                                                        {"InvertedDoublePendulum-v5", "inverted_double_pendulum"},
                                                        {"InvertedPendulum-v5", "inverted_pendulum"},
                                                        {"Pusher-v5", "pusher"},
                                                        {"Reacher-v5", "reacher"},
                                                        {"Swimmer-v5", "swimmer"},
                                                        {"Walker2d-v5", "walker2d"}};
  const std::vector<std::string> ids = MujocoTaskIds();
  const auto of_gymnasium = [](const std::string& id) { return absl::EndsWith(id, "-v5"); };
  EXPECT_EQ(std::ssize(models), std::count_if(ids.begin(), ids.end(), of_gymnasium));
  const std::string folder = "mujoco-" + MujocoLibraryVersion() + "/";
  if (MujocoLibraryVersion() == "2.2.2") GTEST_SKIP() << "Debian's 2.2.2 is too old for Gymnasium";
  for (const auto& [id, name] : models) {
    SCOPED_TRACE(id);
    ExpectNumbersOf(folder + name + "_model.json", Published(id));
  }
}

TEST(HalfCheetahModel, DiffersFromThePublishedOneInHowContactsAreFoundOnly) {
  ASSERT_TRUE(HalfCheetahModel().ok()) << HalfCheetahModel().status();
  auto got = Describe(**HalfCheetahModel());
  for (auto& [field, numbers] : Describe(**PublishedHalfCheetahModel())) {
    if (field == "npair") {
      EXPECT_THAT(got.at(field), testing::ElementsAre(8));
    } else if (field == "geom_contype" || field == "geom_conaffinity") {
      EXPECT_THAT(got.at(field), testing::Each(0));
    } else {
      EXPECT_EQ(got.at(field), numbers) << field;
    }
  }
}

TEST(HalfCheetahModel, IsCompiledOnceForAllThreads) {
  std::vector<const mjModel*> models(4);
  std::vector<std::thread> threads;
  for (size_t i = 0; i < models.size(); ++i) threads.emplace_back([&, i] { models[i] = HalfCheetahModel()->get(); });
  for (std::thread& thread : threads) thread.join();
  for (const mjModel* model : models) EXPECT_EQ(model, HalfCheetahModel()->get());
}

TEST(CompileModel, ReportsWhatMujocoRefuses) {
  const absl::Status broken = CompileModel("broken", "<mujoco><worldbody></mujoco>", 1).status();
  EXPECT_EQ(broken.code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(broken.message()), testing::HasSubstr("the model of broken"));
  const absl::Status unknown = CompileModel("odd", "<mujoco><no_such_thing/></mujoco>", 1).status();
  EXPECT_EQ(unknown.code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(unknown.message()), testing::HasSubstr("no_such_thing"));
}

}  // namespace
}  // namespace skein
