"""What Schemathesis may not try on a machine that others use, too: topics with tens of thousands of partitions."""

import schemathesis

MOST = 100


@schemathesis.hook
def map_body(context, body):
    if isinstance(body, dict):
        count = body.get("partitions_count")
        if isinstance(count, (int, float)) and count > MOST:
            return {**body, "partitions_count": MOST}
    return body
