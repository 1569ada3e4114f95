"""The column `landlock`: what its rows give, by name, where that is not what `netns` gives (HLD-2).

A task there has no files, processes and network of its own, so what is out of reach is refused instead of not being
there: EACCES for files, EPERM for processes and namespaces. Each row of `netns` is tried there, too, but for those of
NOT_THERE, which are about something that the hold does not have; what stands for them is in rows/shared_*.py.
"""

from __future__ import annotations

from tidegate.doctor.escapes.table import LANDLOCK, NETNS, TABLE

_EXPECTED = {
    # No datagrams at all, so the kind of their protocol does not matter.
    "EPERM": """
        ping_socket ping6_socket udplite_socket udp_to_the_machines_loopback udp_to_a_resolver
        udp_to_a_resolver_by_ipv6 udp_to_any_port udp_by_sendto udp_multicast
        unmounting_proc_sys looking_below_a_mask removing_from_a_namespace_inside uncovering_a_socket
        a_fresh_proc a_fresh_sysfs looking_below_our_tmp looking_below_the_masks_by_overlay
        tracing_an_outer_process reading_an_outer_process descriptors_of_an_outer_process
        signalling_an_outer_process init_cannot_be_killed late_unix_socket_from_a_namespace_inside
        unix_sockets_in_namespaces_of_our_own namespaces_of_our_own a_device_of_our_own
        """,
    "EACCES": """
        device_kmsg device_mem device_kvm device_fuse device_vsock device_console device_tty1 device_loop0 device_vda
        device_sda device_net_tun device_userfaultfd
        every_setting_of_the_kernel every_file_of_sysfs every_other_file_of_proc
        writing_a_start_up_file making_a_start_up_file making_a_start_up_file_by_a_descriptor
        making_a_start_up_file_as_a_link making_a_start_up_file_of_another replacing_the_configuration_of_ssh
        a_key_that_may_log_in moving_a_folder_of_configuration an_entry_of_autostart a_unit_of_the_person
        a_program_on_the_path making_a_folder_on_the_path settings_of_an_agent a_hook_of_git
        replacing_the_hooks_of_git replacing_the_configuration_of_git replacing_the_repository tasks_of_an_editor
        replacing_the_tasks_of_an_editor
        servers_on_loopback servers_on_loopback_by_ipv6 servers_on_every_address own_process_files
        late_unix_socket_by_a_symlink late_unix_socket_by_a_hard_link
        files_of_an_outer_process another_tasks_gate
        the_servers_records an_answer_put_into_the_store
        reading_what_is_hidden writing_what_is_hidden making_a_hidden_folder_that_was_not_there
        renaming_what_is_hidden renaming_above_what_is_hidden renaming_home replacing_a_symlink_to_what_is_hidden
        exchanging_the_folder_above copying_what_is_hidden writing_the_installation adding_to_the_installation
        writing_the_installation_by_descriptor renaming_the_installation changing_modes_of_the_installation
        removing_a_read_only_file replacing_a_read_only_file linking_a_read_only_file
        moving_the_cover_of_a_socket moving_the_folder_of_a_socket another_name_for_a_socket
        """,
    "ECONNREFUSED": "the_servers_front_door the_servers_api",
}
_ALSO = {
    "a_device_of_our_own": "EACCES",
    "another_name_for_a_socket": "ECONNREFUSED",
    "every_setting_of_the_kernel": "EROFS",
    "every_file_of_sysfs": "EROFS",
    "every_other_file_of_proc": "EROFS",
}
"""The last three say that they found nothing: the errno is their own."""

NOT_THERE = {
    "unix_sockets_of_our_own": "it binds an abstract name; unix_sockets_by_path",
    "unix_sockets_in_every_manner": "",
    "a_full_backlog_is_waited_for": "it binds an abstract name; a_full_backlog_by_path",
    "ending_who_answers_for_sockets": "it binds an abstract name; ending_who_answers_by_path",
    "own_folders": "/tmp and /dev/shm are the machine's; folders_of_its_own",
    "nothing_of_the_machines_tmp": "it is in sight, and refused; the_machines_tmp",
    "a_set_user_id_helper": "the file system stays as it is; a_set_user_id_program",
    "limits_of_our_own": "PID 1 is the machine's; limits_of_its_own_processes",
    "no_rights": "an ordinary user cannot empty the bounding set; no_rights_to_gain",
    "its_own_published_port_by_the_gate": "nothing is published",
    "a_service_with_a_rule": "it is met by the proxy only; a_service_by_the_proxy",
}


def fill() -> None:
    """Give the rows of the table their answers in this column."""
    expected = {name: answer for answer, names in _EXPECTED.items() for name in names.split()}
    for name, row in TABLE.items():
        if NETNS in row.holds and not NOT_THERE.get(name):
            row.holds = (*row.holds, LANDLOCK)
            answers = (expected[name],) if name in expected else row.expected[NETNS]
            also = "ENOENT" if name.startswith("device_") else _ALSO.get(name)
            row.expected[LANDLOCK] = (*answers, also) if also else answers
