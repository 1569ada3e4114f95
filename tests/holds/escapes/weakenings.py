"""Which weakening each row of the table fails in: the table can see.

A weakening is a hold that lacks parts (the switches of weaken.py), a column of the table and a user. Where two layers
hold a row, both are taken out. A new row is named here, or in IMPOSSIBLE with the reason why no weakening can exist.
"""

from __future__ import annotations

from tidegate.doctor.escapes.table import CAPTURED, LANDLOCK, NETNS, OFFLINE, OPEN, UID


class Weakening:
    """Switches, where they are set, by whom, and the rows (by name, separated by spaces) that must fail then."""

    def __init__(self, switches: tuple[str, ...], hold: str, user: str, rows: str) -> None:
        self.switches = switches
        self.hold = hold
        self.user = user
        self.rows = tuple(rows.split())


WEAKENINGS = (
    Weakening(
        ("careless_gate",),
        NETNS,
        "ordinary",
        """
        a_denied_host a_denied_host_in_clear_text a_name_that_leads_inside_private
        a_name_that_leads_inside_loopback a_name_that_leads_inside_own a_name_that_leads_inside_metadata
        a_name_that_leads_inside_unspecified a_name_that_leads_inside_mixed
        a_name_that_leads_inside_families a_name_that_leads_inside_mapped
        a_name_that_leads_inside_compatible a_name_that_leads_inside_nat64
        a_name_that_leads_inside_sixtofour a_name_that_leads_inside_alias rebinding
        every_odd_spelling_of_this_machine every_odd_spelling_of_a_denied_host every_odd_spelling_of_a_port
        a_client_hello_for_another_host a_client_hello_in_pieces a_host_header_for_another_host_in_a_tunnel
        a_host_header_that_disagrees_with_the_url two_host_headers the_second_request_of_a_connection
        what_follows_a_refused_connect smuggled_by_both_lengths smuggled_by_two_lengths
        smuggled_by_an_odd_length smuggled_by_an_odd_coding smuggled_by_a_coding_in_disguise
        smuggled_by_a_space_before_the_colon smuggled_by_a_folded_header smuggled_by_a_bare_line_feed
        smuggled_by_a_bare_carriage_return smuggled_by_a_bad_chunk_size a_denied_host_by_socks
        datagrams_by_socks the_gates_other_side the_gate
        the_servers_port_by_the_gate the_servers_port_in_clear_text
        a_service_without_a_rule
        """,
    ),
    Weakening(
        ("careless_tools",),
        NETNS,
        "ordinary",
        """
        a_tool_that_was_not_given a_way_to_another_tool words_that_a_tool_does_not_take a_key_twice
        words_like_options_of_a_tool what_a_tool_is_run_with
        """,
    ),
    Weakening(("no_tools",), NETNS, "ordinary", "a_tool_of_its_own"),
    Weakening(
        ("forwarding_resolver",),
        CAPTURED,
        "ordinary",
        """
        labels_as_a_channel labels_of_every_kind labels_of_an_allowed_name
        """,
    ),
    Weakening(
        ("no_watcher",),
        CAPTURED,
        "ordinary",
        """
        late_unix_socket_at_home late_unix_socket_in_the_workspace late_unix_socket_of_another_network
        late_unix_socket_by_a_relative_path late_unix_socket_by_our_own_process_files
        late_unix_socket_by_a_descriptor late_unix_socket_by_a_symlink late_unix_socket_by_a_hard_link
        late_unix_socket_from_a_namespace_inside exchanging_the_address_while_it_is_judged
        exchanging_the_file_while_it_is_judged exchanging_the_descriptor_while_it_is_judged
        ending_who_answers_for_sockets
        """,
    ),
    Weakening(
        ("sockets_uncovered", "no_watcher"),
        CAPTURED,
        "ordinary",
        """
        every_socket_of_the_machine unix_socket_at_home unix_socket_in_the_workspace
        another_name_for_a_socket moving_the_cover_of_a_socket moving_the_folder_of_a_socket
        """,
    ),
    Weakening(
        ("machines_folders", "no_watcher"),
        CAPTURED,
        "ordinary",
        """
        own_folders nothing_of_the_machines_tmp a_unit_of_systemd service_docker service_podman
        service_containerd service_d_bus service_systemd service_ssh_agent service_gpg_agent service_wayland
        service_pulse_audio unix_socket_in_tmp unix_socket_in_run service_x11 service_resolved
        service_name_cache service_container_runtime service_virtual_machines service_databases
        """,
    ),
    Weakening(
        ("abstract_names_shared", "no_watcher"),
        OPEN,
        "ordinary",
        """
        abstract_unix_socket
        """,
    ),
    Weakening(
        ("no_families",),
        CAPTURED,
        "ordinary",
        """
        rules_of_netfilter rules_of_netfilter_with_every_capability ping_socket ping6_socket mptcp_socket
        mptcp_socket_by_ipv6 sctp_packets dccp_socket udplite_socket packet_socket vsock_socket xdp_socket
        netlink_audit_socket netlink_netfilter_socket netlink_uevent_socket netlink_generic_socket
        raw_socket_in_a_namespace_of_our_own unix_datagram_socket unix_raw_socket unix_datagram_pair
        sctp_socket smc_over_ip alg_socket bluetooth_socket can_socket rds_socket tipc_socket smc_socket
        key_socket socketpair_of_another_family
        """,
    ),
    Weakening(
        ("no_filter",),
        CAPTURED,
        "ordinary",
        """
        a_32_bit_call clone3 bpf perf_event_open userfaultfd keyctl add_key request_key kexec_load
        init_module finit_module delete_module control_group_namespace typing_into_the_terminal
        typing_with_the_upper_half_set pasting_on_the_console fast_open_by_connect fast_open_as_server
        fast_open_by_sendto fast_open_by_sendmsg fast_open_by_sendmmsg limiting_init copying_what_is_hidden
        leaving_the_mounts_behind io_uring io_uring_socket io_uring_connect an_x32_call an_x32_socket
        unknown_namespace_flag mount_namespace_of_a_part
        """,
    ),
    Weakening(
        ("no_listener",),
        CAPTURED,
        "ordinary",
        """
        a_listener_of_our_own_for_calls
        """,
    ),
    Weakening(
        ("nothing_hidden",),
        CAPTURED,
        "ordinary",
        """
        looking_below_a_mask looking_below_the_masks_by_overlay reading_what_is_hidden
        writing_what_is_hidden making_a_hidden_folder_that_was_not_there renaming_what_is_hidden
        renaming_above_what_is_hidden replacing_a_symlink_to_what_is_hidden exchanging_the_folder_above
        """,
    ),
    Weakening(
        ("nothing_hidden", "sockets_uncovered", "no_watcher"),
        CAPTURED,
        "ordinary",
        """
        the_servers_front_door the_servers_api the_servers_records an_answer_put_into_the_store
        """,
    ),
    Weakening(
        ("nothing_read_only",),
        CAPTURED,
        "ordinary",
        """
        writing_the_installation adding_to_the_installation writing_the_installation_by_descriptor
        renaming_the_installation changing_modes_of_the_installation removing_a_read_only_file
        replacing_a_read_only_file linking_a_read_only_file removing_from_a_namespace_inside
        """,
    ),
    Weakening(
        ("later_files_open",),
        CAPTURED,
        "ordinary",
        """
        writing_a_start_up_file making_a_start_up_file making_a_start_up_file_by_a_descriptor
        making_a_start_up_file_as_a_link making_a_start_up_file_of_another replacing_the_configuration_of_ssh
        a_key_that_may_log_in an_entry_of_autostart
        a_unit_of_the_person a_program_on_the_path making_a_folder_on_the_path settings_of_an_agent a_hook_of_git
        replacing_the_hooks_of_git replacing_the_configuration_of_git replacing_the_repository tasks_of_an_editor
        replacing_the_tasks_of_an_editor moving_a_folder_of_configuration
        making_a_home_writable_again
        """,
    ),
    Weakening(
        ("home_read_only",),
        CAPTURED,
        "ordinary",
        """
        what_is_no_start_up_file
        """,
    ),
    Weakening(
        ("ports_unmarked",),
        NETNS,
        "ordinary",
        """
        another_tasks_published_port another_tasks_published_port_by_address
        another_tasks_published_port_in_clear_text another_tasks_published_port_where_it_is_met
        its_own_published_port_by_the_gate
        """,
    ),
    Weakening(
        ("names_free",),
        CAPTURED,
        "ordinary",
        """
        renaming_home uncovering_a_socket
        """,
    ),
    Weakening(
        ("installation_hidden",),
        CAPTURED,
        "ordinary",
        """
        reading_the_installation
        """,
    ),
    Weakening(
        ("machines_name_files",),
        CAPTURED,
        "root",
        """
        writing_resolv_conf writing_hosts its_own_address_and_names
        """,
    ),
    Weakening(
        ("kernel_files_open",),
        CAPTURED,
        "root",
        """
        settings_of_the_network writing_core_pattern writing_ip_forward writing_mtrr writing_hugepages
        writing_loopback_uevent remounting_proc_sys a_fresh_proc a_fresh_sysfs every_setting_of_the_kernel
        every_file_of_sysfs every_other_file_of_proc writing_modprobe_path writing_sysrq
        writing_uevent_helper writing_control_group
        """,
    ),
    Weakening(
        ("machines_devices",),
        CAPTURED,
        "root",
        """
        device_kmsg device_kvm device_fuse device_vsock device_console device_tty1 device_loop0 device_vda
        device_net_tun device_userfaultfd device_mem device_sda
        """,
    ),
    Weakening(
        ("descriptor_inherited",),
        CAPTURED,
        "ordinary",
        """
        no_descriptor_of_the_machine
        """,
    ),
    Weakening(
        ("hosts_network",),
        NETNS,
        "ordinary",
        """
        other_proxy_settings tcp_to_the_machines_loopback tcp_to_the_unspecified_address
        tcp_to_the_machines_loopback_by_ipv6 tcp_to_a_mapped_address tcp_to_a_public_address
        tcp_to_a_public_address_by_ipv6 tcp_to_cloud_metadata tcp_to_other_ports
        tcp_to_the_machines_own_address tcp_to_a_private_address tcp_to_a_private_address_by_ipv6
        tcp_to_the_gateway udp_to_the_machines_loopback udp_to_a_resolver udp_to_a_resolver_by_ipv6
        udp_multicast udp_to_any_port udp_by_sendto the_servers_port
        """,
    ),
    Weakening(
        ("no_rules",),
        CAPTURED,
        "ordinary",
        """
        a_foreign_source_address
        """,
    ),
    Weakening(
        ("gate_lets_all_through",),
        CAPTURED,
        "ordinary",
        """
        a_denied_name_does_not_exist
        """,
    ),
    Weakening(
        ("open_to_others",),
        CAPTURED,
        "ordinary",
        """
        tracing_init reading_init taking_inits_descriptors
        """,
    ),
    Weakening(
        ("capabilities_kept",),
        CAPTURED,
        "ordinary",
        """
        reboot chroot mounting_at_all old_tables a_transparent_socket a_mark_on_the_packets
        standing_in_for_the_resolver no_rights
        """,
    ),
    Weakening(
        ("capabilities_kept",),
        CAPTURED,
        "root",
        """
        uncovering_resolv_conf unmounting_proc_sys looking_below_our_tmp credentials_of_another_process
        """,
    ),
    Weakening(
        ("no_filter", "capabilities_kept"),
        CAPTURED,
        "ordinary",
        """
        pivot_root raw_ipv4_socket raw_ipv6_socket old_packet_socket
        """,
    ),
    Weakening(
        ("no_filter", "capabilities_kept"),
        CAPTURED,
        "root",
        """
        becoming_somebody_else uncovering_a_home
        """,
    ),
    Weakening(
        ("no_filter", "capabilities_kept", "open_to_others"),
        CAPTURED,
        "root",
        """
        entering_inits_namespaces
        """,
    ),
    Weakening(
        ("privileges_gained", "capabilities_kept"),
        CAPTURED,
        "root",
        """
        a_set_user_id_helper
        """,
    ),
    Weakening(
        ("no_filter", "capabilities_kept", "machines_users"),
        OFFLINE,
        "root",
        """
        open_by_handle_at kernel_log settime swapon sethostname a_fresh_control_group_tree
        a_device_of_our_own
        """,
    ),
    Weakening(
        ("no_filter", "capabilities_kept", "machines_users", "machines_processes"),
        NETNS,
        "root",
        """
        files_of_an_outer_process tracing_an_outer_process reading_an_outer_process
        descriptors_of_an_outer_process signalling_an_outer_process entering_an_outer_process
        another_tasks_gate surviving_the_end_of_the_task
        """,
    ),
    Weakening(
        ("nothing",),
        CAPTURED,
        "root",
        """
        a_job_of_cron a_job_of_at
        """,
    ),
    Weakening(
        ("careless_gate",),
        CAPTURED,
        "ordinary",
        """
        the_gates_own_listener an_address_that_no_name_has a_source_address_of_loopback look_ups_fail_fast
        a_captured_connection_for_another_host a_captured_name_that_leads_inside
        """,
    ),
    Weakening(
        ("too_strict",),
        NETNS,
        "ordinary",
        """
        servers_on_loopback servers_on_loopback_by_ipv6 servers_on_every_address
        a_service_with_a_rule
        a_full_backlog_is_waited_for unix_sockets_in_namespaces_of_our_own interfaces namespaces_of_our_own
        renaming_beside_what_is_protected devices processes own_process_files
        """,
    ),
    Weakening(
        ("too_strict",),
        CAPTURED,
        "ordinary",
        """
        limits_of_our_own unix_sockets_of_our_own unix_sockets_in_every_manner
        """,
    ),
    Weakening(
        ("too_strict",),
        OPEN,
        "ordinary",
        """
        the_machines_network
        """,
    ),
    Weakening(
        ("not_captured",),
        CAPTURED,
        "ordinary",
        """
        standing_in_for_the_gate
        """,
    ),
    Weakening(
        ("capabilities_kept",),
        CAPTURED,
        "ordinary",
        """
        taking_the_default_route_away
        """,
    ),
    Weakening(
        ("capabilities_kept",),
        CAPTURED,
        "ordinary",
        """
        taking_the_own_address_away
        """,
    ),
    Weakening(
        ("capabilities_kept",),
        CAPTURED,
        "ordinary",
        """
        a_route_of_our_own
        """,
    ),
    Weakening(
        ("no_fence",),
        UID,
        "root",
        """
        the_gate_of_another_user a_service_of_this_machine_directly a_service_of_this_machine_from_a_server_port
        """,
    ),
    Weakening(("abstract_names_unjudged",), UID, "root", "an_abstract_name_of_this_machine"),
    Weakening(
        ("capabilities_kept",),
        UID,
        "root",
        """
        a_mark_of_our_own being_another_user_in_a_namespace
        """,
    ),
    Weakening(
        ("marks_for_files",),
        UID,
        "root",
        """
        a_program_with_the_owners_rights a_program_with_capabilities
        """,
    ),
    Weakening(("servers_unmarked",), UID, "root", "own_servers_on_the_shared_loopback"),
    Weakening(("no_account",), UID, "root", "a_name_and_a_home"),
    Weakening(
        ("not_confined",),
        LANDLOCK,
        "ordinary",
        """
        looking_into_who_holds tracing_who_holds settings_of_other_processes the_machines_tmp
        executing_from_memory a_link_by_a_descriptor writing_by_an_odd_descriptor
        exchanging_the_folder_while_it_is_judged
        """,
    ),
    Weakening(
        ("landlock_alone",),
        LANDLOCK,
        "ordinary",
        """
        a_server_without_bind a_name_among_the_abstract_ones the_gates_port_on_another_address
        the_gates_port_elsewhere exchanging_the_destination_while_it_is_judged
        exchanging_the_socket_while_it_is_judged taking_a_connection_apart a_child_that_shares_memory
        choosing_the_way_of_packets_by_ipv6 slowing_who_holds_down
        a_namespace_of_our_own memory_shared_by_system_v changing_what_is_protected_by_a_descriptor flags_of_a_file
        a_machines_socket_by_a_link_in_the_workspace
        """,
    ),
    Weakening(
        ("watcher_refuses",),
        LANDLOCK,
        "ordinary",
        """
        the_gate_by_every_manner a_service_by_the_proxy unix_sockets_by_path a_full_backlog_by_path
        folders_of_its_own changing_files_in_every_manner limits_of_its_own_processes
        """,
    ),
    Weakening(
        ("rights_kept",),
        LANDLOCK,
        "root",
        """
        no_rights_to_gain
        """,
    ),
)

_SENT = "without the scope a signal would end processes of the machine that the trial runs on"
IMPOSSIBLE = {
    "signals_to_who_holds": _SENT,
    "signals_by_way_of_a_file": _SENT,
    "ending_who_answers_by_path": _SENT,
    "a_set_user_id_program": "no_new_privs holds it, without which there is neither Landlock nor a filter",
    "choosing_the_way_of_packets": "the kernel itself wants a capability for it, where it is a new one",
    "connecting_twice": "the kernel itself connects a socket once",
    "sending_to_an_address": "the kernel itself takes no receiver for a stream; other sockets there are none",
    "other_terminals": "a machine may have none",
    "init_cannot_be_killed": "the kernel itself keeps PID 1 of a namespace from signals that come from inside it",
    "putting_another_resolv_conf_in_its_place": "the trial mounts a file of its own there, to spare the machine's",
}
