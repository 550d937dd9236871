# SPDX-License-Identifier: Apache-2.0
# The tests that are compiled together, a line of files for each source that is made of them
# (skein_compile_tests_together() in cmake/targets.cmake). A test that is not listed is compiled alone: a new one needs
# no line. Two files of a list define no name twice, those in anonymous namespaces included, and define none that a
# header of the other uses for something else; all of them are in groups with TORCH or all in groups without. What a
# core-only build has too is in lists of its own, so that both builds compile the same.

skein_compile_tests_together(base
  philox_test.cc backoff_test.cc bfloat16_test.cc cancellation_test.cc config_test.cc edit_distance_test.cc
  event_file_test.cc exact_moments_test.cc exit_code_test.cc file_test.cc)
skein_compile_tests_together(base
  direction_rules_test.cc format_count_test.cc history_recorder_test.cc host_port_test.cc json_line_process_test.cc
  log_test.cc message_text_test.cc nearest_name_test.cc number_bounds_test.cc proc_text_test.cc)
skein_compile_tests_together(base
  phases_test.cc restart_budget_test.cc resource_rules_test.cc resume_mode_test.cc run_state_name_test.cc
  share_enforcer_test.cc shutdown_test.cc steady_wait_test.cc system_error_test.cc tensor_packing_test.cc)
skein_compile_tests_together(base
  setting_changes_test.cc subprocess_test.cc control_group_test.cc fault_hook_test.cc)
skein_compile_tests_together(base
  call_authorization_test.cc call_quota_test.cc connection_guard_test.cc first_bytes_test.cc grpc_transport_test.cc
  handover_test.cc http_server_test.cc rare_log_test.cc timed_socket_test.cc resource_sampler_test.cc)
skein_compile_tests_together(base
  held_connections_test.cc credentials_test.cc)

skein_compile_tests_together(policy
  dense_kernels_test.cc packed_layer_test.cc direction_test.cc policy_spec_test.cc safetensors_test.cc
  tensor_check_test.cc)

skein_compile_tests_together(trajectory
  frame_test.cc schema_test.cc)

skein_compile_tests_together(learner
  advantage_test.cc direction_search_test.cc normalized_advantages_test.cc posthumous_reward_test.cc ppo_sample.cc
  thread_team_test.cc)
skein_compile_tests_together(learner
  fused_gradient_test.cc vtrace_test.cc winsorize_test.cc actor_critic_test.cc distribution_test.cc
  exact_product_test.cc)
skein_compile_tests_together(learner
  ppo_loss_test.cc ppo_state_test.cc ppo_test.cc memory_test.cc normalizer_test.cc policy_snapshot_test.cc)
skein_compile_tests_together(learner
  tensor_codec_test.cc memory_sample.cc minibatch_order_test.cc ppo_agents_test.cc)
skein_compile_tests_together(learner
  ppo_data_parallel_test.cc ppo_device_test.cc collective_test.cc)
skein_compile_tests_together(learner
  trainer_init_test.cc trainer_samples_test.cc trainer_ranks_test.cc device_memory_test.cc ../cli/scratch_folder.cc)
skein_compile_tests_together(learner
  ppo_memory_test.cc ppo_recurrent_test.cc reinforce_test.cc step_graph_test.cc rank_threads.cc sample_fragment.cc)
skein_compile_tests_together(learner
  flat_adam_test.cc fused_memory_test.cc gradient_reducer_test.cc watchdog_test.cc)
skein_compile_tests_together(learner
  checkpoint_damage_test.cc checkpoint_test.cc listener_test.cc peer_mesh_test.cc)
skein_compile_tests_together(learner
  admission_test.cc async_collector_test.cc checked_copy_test.cc collector_history_test.cc collector_memory_test.cc
  collector_share_test.cc collector_test.cc direction_collect_test.cc dishonest_actor_test.cc env_share_test.cc
  failure_streak_test.cc)
skein_compile_tests_together(learner
  float_reader_test.cc late_tickets_test.cc metrics_test.cc packed_fragment_test.cc progress_test.cc step_account_test.cc
  step_ledger_test.cc ticket_office_ahead_test.cc ticket_office_test.cc staged_columns_test.cc ticket_timing_test.cc)
skein_compile_tests_together(learner
  run_accounts_test.cc sticky_groups_test.cc unserved_tickets_test.cc event_log_test.cc
  iteration_log_test.cc run_callbacks_test.cc policy_publisher_test.cc service_test.cc)
skein_compile_tests_together(learner
  fragment_shape_test.cc rank_forming_test.cc rank_roll_test.cc)

skein_compile_tests_together(member
  coordinator_client_barrier_test.cc coordinator_client_test.cc)

skein_compile_tests_together(testing
  fault_proxy_test.cc history_check_test.cc)

skein_compile_tests_together(architecture
  include_rules.cc metrics_doc_test.cc)

skein_compile_tests_together(env
  registry_test.cc searchable_test.cc classic_test.cc gymnasium_models_test.cc half_cheetah_test.cc
  mujoco_contacts_test.cc mujoco_model_test.cc vector_env_agents_test.cc vector_env_help_test.cc latency_test.cc)
skein_compile_tests_together(env
  golden.cc mujoco_starts_test.cc mujoco_suite_test.cc walker2d_test.cc repeat_previous_test.cc uav_contact_test.cc
  uav_env_test.cc uav_rules_test.cc uav_baselines_test.cc offscreen_renderer_test.cc)
skein_compile_tests_together(env
  user_model_test.cc vector_env_failure_test.cc)
skein_compile_tests_together(env
  mujoco_golden_test.cc vector_env_test.cc specs_test.cc)
skein_compile_tests_together(env
  step_watchdog_test.cc transform_test.cc uav_world_test.cc)

skein_compile_tests_together(env/external
  external_batch_test.cc external_envs_test.cc world_spec_test.cc)

skein_compile_tests_together(actor
  action_sampler_test.cc fragment_packing_test.cc env_rebuilds_test.cc faulty_env_test.cc held_envs_test.cc
  limit_probe_test.cc metrics_test.cc normal_noise_test.cc outbox_test.cc reachable_address_test.cc)
skein_compile_tests_together(actor
  frame_bytes_test.cc rollout_builder_test.cc step_sharing_test.cc collect_call_test.cc
  learner_link_move_test.cc learner_move_accounts_test.cc policy_store_test.cc)
skein_compile_tests_together(actor
  learner_link_test.cc runner_state_test.cc)
skein_compile_tests_together(actor
  direction_play_test.cc runner_test.cc)

skein_compile_tests_together(coordinator
  actor_demand_test.cc assignment_test.cc coordinator_state_test.cc drain_test.cc history_test.cc learner_watch_test.cc
  message_bounds_test.cc http_test.cc log_tail_test.cc peer_address_test.cc)
skein_compile_tests_together(coordinator
  barrier_test.cc learner_ranks_test.cc restored_state_test.cc status_page_test.cc fenced_service_test.cc
  membership_log_test.cc metrics_test.cc saved_run_test.cc state_log_test.cc state_writer_test.cc)
skein_compile_tests_together(coordinator
  membership_test.cc service_test.cc etcd_relay.cc external_scaler_test.cc process_test.cc)

skein_compile_tests_together(launch
  child_test.cc continued_plan_test.cc launch_plan_device_test.cc launch_plan_test.cc node_bookings_test.cc
  recipe_test.cc share_text_test.cc shipped_configs_test.cc status_client_test.cc visible_gpus_test.cc)

skein_compile_tests_together(eval
  env_check_test.cc evaluation_episodes_test.cc evaluation_result_test.cc render_test.cc)

skein_compile_tests_together(eval
  evaluation_test.cc ../cli/scratch_folder.cc)

skein_compile_tests_together(serve
  serve_test.cc serve_program_test.cc env_serve_program_test.cc ../cli/scratch_folder.cc)

skein_compile_tests_together(fit
  anomaly_test.cc batch_stream_test.cc fit_settings_test.cc line_reader_test.cc lstm_pass_test.cc
  sequence_store_test.cc)
skein_compile_tests_together(fit
  known_counts_test.cc fit_program_test.cc ../cli/scratch_folder.cc ../testing/program.cc)
skein_compile_tests_together(fit
  fit_ranks_test.cc fit_trainer_test.cc ../learner/rank_threads.cc)

skein_compile_tests_together(bench
  rank_report_test.cc report_test.cc training_log_test.cc scaling_grid_test.cc scaling_report_test.cc
  scaling_stages_test.cc scaling_study_test.cc scaling_usage_test.cc tune_test.cc fit_command_test.cc
  ../cli/scratch_folder.cc)
skein_compile_tests_together(bench
  scaling_analysis_test.cc command_test.cc)
skein_compile_tests_together(bench
  synthetic_batch_test.cc torch_forward_test.cc bare_fit_test.cc fit_data_test.cc)

skein_compile_tests_together(cli
  answer_clock_test.cc final_evaluation_test.cc member_text_test.cc progress_display_test.cc curve_plot_test.cc
  progress_text_test.cc replace_process_test.cc run_listing_test.cc run_directory_test.cc run_supervisor_test.cc
  run_supervisor_learners_test.cc man_page_test.cc scratch_folder.cc)
skein_compile_tests_together(cli
  silent_learners_test.cc training_session_test.cc usage_test.cc json_test.cc certificate_authority_test.cc
  https_test.cc secure_transport_test.cc)

skein_compile_tests_together(sweep
  first_rung_test.cc journal_test.cc places_test.cc report_test.cc run_launcher_test.cc sampler_test.cc
  scheduler_test.cc search_crash_test.cc search_test.cc space_file_test.cc)

skein_compile_tests_together(monitoring
  dashboards_test.cc rules_test.cc)

skein_compile_tests_together(integration
  bad_input_test.cc callbacks_test.cc directions_test.cc drain_test.cc memory_test.cc on_device_test.cc phases_test.cc
  scaling_test.cc sticky_test.cc sweep_test.cc)
skein_compile_tests_together(integration
  elastic_test.cc ranks_test.cc train_test.cc user_model_test.cc probes_test.cc metrics_test.cc monitoring_test.cc)

skein_compile_tests_together(faults
  configuration_test.cc flood_test.cc hostile_fragment_test.cc protocol_test.cc lost_receipt_test.cc
  checkpoint_kill_test.cc damaged_checkpoint_test.cc full_disk_test.cc stopped_coordinator_test.cc run_logs_test.cc)
skein_compile_tests_together(faults
  stranger.cc environment_test.cc soak_test.cc ranks_lost_test.cc security_test.cc ports_test.cc)
skein_compile_tests_together(faults
  barriers_test.cc env_server_test.cc lost_parent_test.cc run_folder_test.cc power_loss_test.cc rapid_reset_test.cc
  clock_test.cc)
skein_compile_tests_together(faults
  actors_test.cc stragglers_test.cc coordinator_state_test.cc standby_test.cc foreign_bytes_test.cc tls_abuse_test.cc
  greedy_actor_test.cc)

skein_compile_tests_together(fuzz
  allocation_watch.cc corpus_test.cc)

skein_compile_tests_together(browser
  browser.cc status_page_browser_test.cc)
