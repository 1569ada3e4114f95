"""tidegate.policy.suffixes."""

from __future__ import annotations

import pytest

from tidegate.policy.suffixes import Suffixes

LIST = """
// ===BEGIN ICANN DOMAINS===
com
uk
co.uk
*.ck
!www.ck
公司.cn  this is a remark
// ===BEGIN PRIVATE DOMAINS===
github.io
s3.amazonaws.com
""".splitlines()


@pytest.mark.parametrize(
    ("name", "suffix", "domain", "wildcard"),
    [
        ("com", "com", "", ""),
        ("example.com", "com", "example.com", "example.com"),
        ("a.b.example.com", "com", "example.com", "example.com"),
        ("co.uk", "co.uk", "", ""),
        ("a.example.co.uk", "co.uk", "example.co.uk", "example.co.uk"),
        ("x.ck", "x.ck", "", ""),
        ("a.b.x.ck", "x.ck", "b.x.ck", "b.x.ck"),
        ("www.ck", "ck", "www.ck", "www.ck"),
        ("a.user.github.io", "github.io", "user.github.io", "user.github.io"),
        ("a.xn--55qx5d.cn", "xn--55qx5d.cn", "a.xn--55qx5d.cn", "a.xn--55qx5d.cn"),
        ("a.b.test", "test", "b.test", "b.test"),  # no rule: the last label
        ("localhost", "localhost", "", ""),
        ("sts.amazonaws.com", "com", "amazonaws.com", ""),  # others' names lie below it
    ],
)
def test_where_a_domain_ends(name: str, suffix: str, domain: str, wildcard: str) -> None:
    """JRN-7, POL-15: the suffix, what was registered below it, and whether one owner has all that is below that."""
    suffixes = Suffixes(LIST)
    assert suffixes.suffix_of(name) == suffix
    assert suffixes.domain_of(name) == domain
    assert suffixes.wildcard_domain(name) == wildcard
    assert suffixes.is_public(name) is (name == suffix)


def test_an_empty_list_is_none() -> None:
    """JRN-7: a file without a rule is no list."""
    assert not Suffixes(["// nothing", ""])
    assert Suffixes(LIST)
