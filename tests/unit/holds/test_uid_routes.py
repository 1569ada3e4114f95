"""The routing rule of the hold `uid`: made once, for both families."""

from __future__ import annotations

from tests.unit.holds.uid_apart import NEEDS_ROOT, fenced

pytestmark = NEEDS_ROOT


def test_a_user_has_a_route_to_everywhere_that_ends_here() -> None:
    """Made twice it is there once; only the range's users are led (HLD-3, HLD-6)."""
    code = """
    uid_routes.keep_at_home()
    uid_routes.keep_at_home()
    def source(address):
        with socket.socket(10 if ':' in address else 2, 2) as wire:
            wire.connect((address, 9))
            return wire.getsockname()[0]
    for uid in (29999, 30000, 39999, 40000):
        print(uid, as_user(uid, source, '1.2.3.4'), as_user(uid, source, '2001:db8::1'))
    """
    assert fenced(code).splitlines() == [
        "29999 ENETUNREACH ENETUNREACH",
        "30000 198.18.0.1 ::1",
        "39999 198.18.0.1 ::1",
        "40000 ENETUNREACH ENETUNREACH",
    ]


def test_what_is_gone_of_it_is_seen_and_what_others_do_is_not() -> None:
    """HLD-7: each part of it by itself; rules, routes and addresses of others change as they like."""
    code = """
    import subprocess
    def ip(*words):
        subprocess.run(['ip', *words], check=True)
    watch = uid_watch.TableWatch()
    watch.know(uid_watch.look())
    uid_routes.keep_at_home()
    print(watch.know_routes(), watch.altered())
    ip('rule', 'add', 'pref', '900', 'to', '10.0.0.0/8', 'lookup', '77')
    ip('route', 'add', 'local', '10.1.0.0/16', 'dev', 'lo', 'table', '77')
    ip('address', 'add', '10.9.9.9/32', 'dev', 'lo')
    ip('address', 'del', '10.9.9.9/32', 'dev', 'lo')
    ip('route', 'flush', 'table', '77')
    ip('rule', 'del', 'pref', '900')
    print(watch.altered())
    for words in (('rule', 'del', 'pref', '3128'), ('-6', 'rule', 'del', 'pref', '3128'),
                  ('route', 'flush', 'table', '3128'), ('-6', 'route', 'flush', 'table', '3128'),
                  ('address', 'del', '198.18.0.1/32', 'dev', 'lo')):
        ip(*words)
        gone = watch.altered()
        uid_routes.keep_at_home()
        print(gone, watch.know_routes(), watch.altered())
    print(sorted(uid_routes.look(1, 2)))
    """
    assert fenced(code).splitlines() == [
        "True False",
        "False",
        *["True True False"] * 5,
        "['address', 'route 10', 'route 2']",
    ]
