"""The address ranges that are not the public internet, from the registries that say so.

Sources, with their newest entry that is in here:

* IANA IPv4 Special-Purpose Address Registry, https://www.iana.org/assignments/iana-ipv4-special-registry
  (192.0.0.10/32, 2017-02, RFC 8155)
* IANA IPv6 Special-Purpose Address Registry, https://www.iana.org/assignments/iana-ipv6-special-registry
  (100:0:0:1::/64, 2025-04, RFC 9780)
* IANA IPv6 Address Space, https://www.iana.org/assignments/ipv6-address-space: only 2000::/3 is global unicast
* the documentation of the clouds for their metadata services

Rules of the file: data only. `PRIVATE` is "everything not globally reachable" (ADR-2); `NEVER` is what no rule opens
(ADR-1); `OWN` is loopback, the rest of "own" being known at run time only. More than one range may hold an address:
the strictest class counts. What the registries call globally reachable is public (AS112, AMT), except where it lies
inside a range that is not (192.0.0.9/32, 2001:1::1/128): refusing those fails closed.

What it does not do: it does not look inside IPv6 addresses that carry an IPv4 one (embedded).
"""

from __future__ import annotations

NEVER = (
    "0.0.0.0/32",  # "this host": Linux connects it to itself. RFC 1122 section 3.2.1.3
    "169.254.0.0/16",  # link-local, and the metadata service of nearly every cloud. RFC 3927
    "224.0.0.0/4",  # multicast. RFC 5771
    "255.255.255.255/32",  # limited broadcast. RFC 919
    "::/128",  # unspecified. RFC 4291
    "fe80::/10",  # link-local. RFC 4291
    "ff00::/8",  # multicast. RFC 4291
    # Metadata services outside the link-local ranges.
    "100.100.100.200/32",  # Alibaba Cloud
    "168.63.129.16/32",  # Azure platform address ("wire server")
    "192.0.0.192/32",  # Oracle Cloud, Classic
    "fd00:ec2::254/128",  # Amazon EC2
    "fd00:ec2::23/128",  # Amazon EKS Pod Identity, which hands out credentials
    "fd20:ce::254/128",  # Google Compute Engine, IPv6-only instances
    "fd00:c1::a9fe:a9fe/128",  # Oracle Cloud
    "fd00:42::42/128",  # Scaleway
)

OWN = (
    "127.0.0.0/8",  # loopback. RFC 1122
    "::1/128",  # loopback. RFC 4291
)

PRIVATE = (
    "0.0.0.0/8",  # "this network". RFC 791
    "10.0.0.0/8",  # private use. RFC 1918
    "100.64.0.0/10",  # shared, carrier-grade NAT. RFC 6598
    "172.16.0.0/12",  # private use. RFC 1918
    "192.0.0.0/24",  # IETF protocol assignments. RFC 6890
    "192.0.2.0/24",  # documentation. RFC 5737
    "192.88.99.0/24",  # 6to4 relay anycast, deprecated. RFC 7526
    "192.168.0.0/16",  # private use. RFC 1918
    "198.18.0.0/15",  # benchmarking. RFC 2544
    "198.51.100.0/24",  # documentation. RFC 5737
    "203.0.113.0/24",  # documentation. RFC 5737
    "240.0.0.0/4",  # reserved. RFC 1112
    # IPv6: everything outside 2000::/3, but for the well-known NAT64 prefix, which is judged by what is inside it.
    "::/3",
    "4000::/2",
    "8000::/1",
    "2001::/23",  # IETF protocol assignments, Teredo, benchmarking, ORCHID. RFC 2928, 4380, 5180, 7343
    "2001:db8::/32",  # documentation. RFC 3849
    "2002::/16",  # 6to4. RFC 3056
    "3fff::/20",  # documentation. RFC 9637
    "5f00::/16",  # segment routing SIDs. RFC 9602
)
