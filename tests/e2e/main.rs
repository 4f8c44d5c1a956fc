//! End-to-end tests on a real Kubernetes, Flux and Argo CD; see `docs/development.md`.
#![allow(clippy::expect_used, clippy::panic, clippy::print_stderr, clippy::print_stdout, reason = "a test program")]

use std::process::ExitCode;
use std::sync::{Arc, OnceLock};

use libtest_mimic::{Arguments, Trial};
use support::bench::{Bench, Options};
use support::tools::Tools;

#[path = "../support/support.rs"]
mod support;

mod admission;
mod agents;
mod argocd;
mod canary;
mod compare;
mod control_plane;
mod controller;
mod emitted;
mod failures_on_argo;
mod faults;
mod flux;
mod gaps;
mod git_to_argo;
mod git_to_flux;
mod image;
mod native_flux;
mod operate;
mod parent;
mod plugin;
mod pods;
mod processes;
mod rights;
mod rollouts_on_argo;
mod scale;
mod soak;
mod stage;
mod stand_in;
mod story;

/// Tests mostly wait for controllers.
const TESTS_AT_ONCE: usize = 6;

macro_rules! trials {
    ($bench:expr, $run:ident; $($name:path),+ $(,)?) => {
        vec![$({
            let bench = Arc::clone(&$bench);
            let name = stringify!($name).replace(' ', "");
            Trial::test(name.clone(), move || bench.started().$run(&name, $name))
        }),+]
    };
}

/// Started with the first test, so that `--list` starts nothing.
struct Lazy {
    tools: Tools,
    bench: OnceLock<Bench>,
}

impl Lazy {
    fn started(&self) -> &Bench {
        self.bench.get_or_init(|| Bench::start(self.tools.clone(), Options::default()))
    }
}

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match words.first().map(String::as_str) {
        Some(support::supervisor::ARGUMENT) => {
            support::supervisor::run();
            ExitCode::SUCCESS
        }
        Some("bench") => support::hand::main(&words[1..]),
        _ => run_tests(),
    }
}

fn run_tests() -> ExitCode {
    let mut arguments = Arguments::from_args();
    arguments.test_threads.get_or_insert(TESTS_AT_ONCE);
    let tools = match Tools::find() {
        Ok(tools) => tools,
        Err(message) if !arguments.list => {
            eprintln!("{message}");
            return ExitCode::FAILURE;
        }
        Err(_) => Tools::default(),
    };
    let bench = Arc::new(Lazy { tools, bench: OnceLock::new() });
    // Those that take long, or that measure: `make soak`, `compare`, `scale`.
    let long = trials![bench, run_long;
        git_to_flux::a_package_goes_from_git_to_its_workloads_and_away,
        canary::a_late_crash_costs_one_node_in_strict_and_many_without,
        canary::argo_cd_keeps_the_budget_that_a_strict_rollout_has,
        canary::argo_cd_without_a_policy_keeps_the_live_one,
        canary::a_canary_that_never_becomes_ready_fails_at_its_deadline,
        canary::a_chart_that_states_on_delete_is_rolled_out,
        canary::a_dead_node_that_counts_fails_the_rollout,
        canary::a_failure_in_compat_freezes_where_that_is_asked_for,
        canary::a_late_crash_without_a_policy_costs_one_node,
        canary::a_write_that_admission_refuses_is_told,
        canary::a_write_that_comes_back_changed_is_a_mismatch,
        canary::an_orphaned_package_leaves_nothing_frozen,
        canary::a_daemon_set_that_is_deleted_by_hand_comes_back,
        canary::a_manifest_that_is_applied_again_in_the_middle,
        canary::a_new_version_in_the_middle_begins_anew,
        canary::a_node_that_dies_with_its_canary_fails_the_rollout,
        canary::a_policy_for_another_account_stops_everything,
        canary::a_surge_is_kept_and_costs_no_node,
        canary::an_image_that_cannot_be_had_costs_one_node,
        canary::edits_by_hand_are_undone_or_rolled_out_behind_a_canary,
        canary::no_node_and_one_node,
        canary::nodes_that_are_dead_cordoned_joining_and_leaving,
        canary::without_a_policy_the_release_itself_arrives_with_one,
        gaps::the_next_one_follows_at_once_on_argo_cd,
        gaps::the_next_one_follows_at_once_on_flux,
        faults::a_long_absence_and_a_forgotten_history_change_nothing,
        failures_on_argo::argo_cd_may_stand_still_for_a_minute,
        soak::ten_minutes_without_events_write_nothing_but_the_lease,
        compare::a_chain_and_a_wide_commit_side_by_side,
        scale::a_thousand_packages_cost_little,
        scale::nodes::a_thousand_nodes_are_rolled_out_behind_a_canary,
    ];
    let long = long.into_iter().map(|trial| trial.with_ignored_flag(true));
    let trials = trials![bench, run;
        canary::strict_goes_from_none_to_ten_percent_and_back_to_one,
        canary::compat_goes_from_one_to_ten_percent_and_back_to_one,
        canary::a_crashing_init_container_costs_one_node_and_is_mended_there,
        canary::a_failed_canary_is_rolled_back_behind_a_canary,
        canary::a_controller_killed_in_each_phase_comes_to_the_same_end,
        canary::a_policy_that_is_removed_during_the_soak_is_told,
        // What takes longest first.
        stand_in::writes_what_the_real_controller_wrote,
        emitted::argo_cd_sees_no_difference_after_the_first_sync,
        native_flux::releases_move_in_order_with_one_commit,
        faults::a_controller_killed_after_each_write_comes_to_the_same_end,
        faults::of_two_controllers_one_acts_and_the_other_takes_over,
        faults::writes_that_fail_or_whose_answers_are_lost_change_nothing,
        faults::lost_watches_and_an_absent_api_server_change_nothing,
        rights::the_controller_works_with_exactly_its_role,
        image::one_static_binary_does_everything_in_an_empty_root,
        operate::a_failed_upgrade_is_explained_and_taken_back_by_hand,
        operate::a_running_release_is_taken_over_from_git,
        controller::a_chain_moves_in_order_and_is_uninstalled_in_reverse,
        native_flux::plain_depends_on_lets_dependents_go_first,
        failures_on_argo::a_controller_killed_after_each_write_comes_to_the_same_end,
        failures_on_argo::a_failed_safe_upgrade_is_rolled_back,
        failures_on_argo::a_chart_that_is_published_late_is_taken,
        failures_on_argo::a_failed_upgrade_is_left_and_mended_forward,
        git_to_argo::a_package_goes_from_git_to_its_workloads_and_away,
        git_to_flux::a_package_is_moved_and_renamed_without_touching_workloads,
        rollouts_on_argo::an_application_is_taken_over_as_it_runs,
        rollouts_on_argo::a_chain_moves_in_order_and_is_uninstalled_in_reverse,
        plugin::native_applications_move_in_waves_and_are_pruned_in_reverse,
        plugin::mistakes_are_told_and_prune_nothing,
        plugin::package_is_as_healthy_as_its_status_says,
        emitted::api_server_takes_everything_we_emit,
        argocd::application_syncs_from_a_repository,
        argocd::application_syncs_a_chart,
        flux::kustomization_applies_from_our_git_server,
        flux::chart_is_fetched_with_the_digest_we_published,
        flux::chart_published_later_is_found_when_asked,
        pods::readiness_comes_after_the_asked_time,
        pods::deployment_becomes_ready,
        pods::pod_that_never_becomes_ready_runs,
        pods::crashing_pod_counts_its_restarts,
        pods::image_pull_error_is_told,
        pods::failing_init_container_holds_the_pod,
        pods::job_completes,
        pods::failing_job_fails,
        pods::dead_node_takes_its_pods_down_and_back,
        admission::bad_packages_are_refused_alike_online_and_offline,
        admission::what_is_fixed_cannot_be_changed,
        control_plane::kubernetes_is_the_version_we_build,
        control_plane::nodes_are_ready_and_schedulable,
        control_plane::a_recorder_sees_every_write_in_order,
        control_plane::nodes_stay_ready_without_a_heartbeat,
        processes::end_of_a_program_is_noticed_with_its_last_lines,
        processes::end_of_a_required_program_is_everybodys_failure,
        processes::taken_port_is_replaced,
        processes::everything_listens_on_loopback_only,
        processes::nothing_is_left_after_the_end,
        processes::what_comes_after_the_end_leaves_nothing,
        processes::nothing_is_left_when_the_bench_is_killed,
    ];
    let measures: [(&str, fn()); 4] = [
        (
            "the_logs_of_the_last_failed_runs_are_kept",
            support::kept::measure::the_logs_of_the_last_failed_runs_are_kept,
        ),
        (
            "a_budget_that_was_larger_once_admits_nothing_later",
            story::measure::a_budget_that_was_larger_once_admits_nothing_later,
        ),
        ("only_the_chosen_pod_goes_while_frozen", story::measure::only_the_chosen_pod_goes_while_frozen),
        (
            "a_node_that_the_bench_loses_is_told_from_one_that_a_test_kills",
            story::measure::a_node_that_the_bench_loses_is_told_from_one_that_a_test_kills,
        ),
    ];
    let measures = measures.map(|(name, run)| {
        Trial::test(format!("story::{name}"), move || {
            run();
            Ok(())
        })
    });
    let trials = trials.into_iter().chain(long).chain(measures).collect();
    let conclusion = libtest_mimic::run(&arguments, trials);
    if let Some(bench) = bench.bench.get() {
        bench.stop(conclusion.has_failed());
    }
    conclusion.exit_code()
}
