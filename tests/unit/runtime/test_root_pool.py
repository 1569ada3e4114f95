"""Root certificates, each once by what it is; nothing that stood in a file is lost."""

from __future__ import annotations

import textwrap
from base64 import b64decode, b64encode

import trustme

from tidegate.inspect import der
from tidegate.runtime.root_pool import RootPool

BEGIN, END = "-----BEGIN CERTIFICATE-----", "-----END CERTIFICATE-----"


def certificate() -> tuple[bytes, str]:
    """A root as DER, and as PEM."""
    made = trustme.CA().cert_pem.bytes().decode()
    body = made.split(BEGIN)[1].split(END)[0]
    return b64decode(body), made


def test_one_certificate_is_one_whatever_its_lines_are() -> None:
    """B110: other widths, line ends, white space and words around it; the first text stays."""
    data, text = certificate()
    wide = "\n".join([BEGIN, *textwrap.wrap(b64encode(data).decode(), 76), END])
    pool = RootPool(f"# words\n{text}subject=CN = x\n")
    for other in (wide, text.replace("\n", "\r\n"), text.replace("\n", " \n\t"), der.pem(data)):
        pool.add(other.encode())
    pool.add_der([data, data])
    assert pool.pem == text
    assert pool.certificates() == [data]


def test_white_space_around_lines_goes_and_nothing_else() -> None:
    """B109: a bundle with Windows' line ends, or indented, is read by every tool afterwards."""
    data, text = certificate()
    for other in (text.replace("\n", "\r\n"), textwrap.indent(text, "\t ")):
        assert RootPool(other).pem.split() == text.split()
        assert RootPool(other).certificates() == [data]
        assert not set(" \r\t") & set(RootPool(other).pem.replace(BEGIN, "").replace(END, ""))


def test_what_is_no_certificate_stays_in_the_text_only() -> None:
    """INS-2: whatever a block was worth to a tool, it still is; Java is given whole certificates alone."""
    data, text = certificate()
    broken = f"{BEGIN}\nMIIB\n=x=\n{END}\n{BEGIN}\nA\n{END}\n"
    pool = RootPool(broken + text)
    assert pool.pem == broken + text
    assert pool.certificates() == [data]


def test_a_block_without_an_end_is_none() -> None:
    """INS-2: a cut file loses what was cut, and what stands behind a lost end is found."""
    data, text = certificate()
    assert not RootPool(text[:200])
    assert RootPool(text[:200] + "\n" + text).certificates() == [data]
    assert not RootPool("")


def test_a_copy_is_added_to_alone() -> None:
    """INS-2: what a task trusts besides is not what destinations are verified against."""
    (first, text), (second, _) = certificate(), certificate()
    pool = RootPool(text)
    more = pool.copy()
    more.add_der([second])
    assert pool.certificates() == [first]
    assert more.certificates() == [first, second]
    assert more.pem == text + der.pem(second)


def test_the_same_text_again_adds_nothing_and_another_writing_of_it_neither() -> None:
    """B110: a folder of roots repeats a bundle to the letter; what is written otherwise is still one certificate."""
    pool = RootPool()
    text = b"-----BEGIN CERTIFICATE-----\nMAMCAQE=\n-----END CERTIFICATE-----\n"
    pool.add(text * 2)
    first = pool.pem
    made = pool.copy()
    made.add(text)
    made.add(text.replace(b"MAMC", b"MA\nMC"))
    assert made.pem == first
    made.add(text.replace(b"AQE=", b"AQI="))
    assert made.pem != first
