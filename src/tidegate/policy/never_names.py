"""Names that no rule opens: the metadata services of the clouds, which hand out credentials (ADR-1).

Their addresses are in addresses/table.py and are refused whatever name leads there; refusing the names as well saves a
look-up and says the real reason. Exact names only: no cloud serves metadata below them.
"""

from __future__ import annotations

NEVER_NAMES = frozenset(
    {
        "metadata",  # Google Compute Engine, short form inside a VM
        "metadata.google.internal",  # https://cloud.google.com/compute/docs/metadata/querying-metadata
        "metadata.goog",  # the same service's newer name
        "instance-data",  # Amazon EC2, resolved by its VPC resolver
        "instance-data.ec2.internal",  # https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/instancedata-data-retrieval.html
        "metadata.azure.internal",  # Azure, IMDS by name in some images
        "metadata.oraclecloud.com",  # Oracle Cloud, IMDS by name in VCN resolvers
        "metadata.tencentyun.com",  # https://www.tencentcloud.com/document/product/213/4934
        "metadata.platformequinix.com",  # Equinix Metal
        "metadata.packet.net",  # the same under its former name
        "api.metadata.cloud.ibm.com",  # https://cloud.ibm.com/docs/vpc?topic=vpc-imd-configure-service
        "rancher-metadata",  # Rancher, in its managed network
    },
)
