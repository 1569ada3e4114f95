"""Names that no rule opens: the metadata services of the clouds, which hand out credentials (ADR-1).

Their addresses are in addresses/table.py and are refused whatever name leads there; refusing the names as well saves a
look-up and says the real reason. Exact names only: no cloud serves metadata below them.
"""

from __future__ import annotations

NEVER_NAMES = frozenset(
    {
        # Google: https://cloud.google.com/compute/docs/metadata/querying-metadata
        "metadata.google.internal",
        "metadata.goog",
        "metadata",  # the short form inside a VM
        # Amazon: what the resolver of a VPC answers for its instances
        "instance-data",
        "instance-data.ec2.internal",
        # Tencent: https://www.tencentcloud.com/document/product/213/4934
        "metadata.tencentyun.com",
        # IBM: https://cloud.ibm.com/docs/vpc?topic=vpc-imd-configure-service
        "api.metadata.cloud.ibm.com",
        # Equinix Metal, and its name as Packet
        "metadata.platformequinix.com",
        "metadata.packet.net",
        # Names that these clouds' networks, or an image's hosts file, may lead to the service
        "metadata.azure.com",
        "metadata.azure.internal",
        "metadata.digitalocean.com",
        "metadata.oraclecloud.com",
        "rancher-metadata",
    },
)
