"""Has librdkafka produce keys, with its default partitioner, and tells where they went.

partitions.py BOOTSTRAP N... reads keys in hexadecimal, one a line, creates a topic of N partitions for each N, and prints each
key with the partition of its record in each topic.
"""

import sys
import time

from confluent_kafka import KafkaException, Producer
from confluent_kafka.admin import AdminClient, NewTopic


def produce(bootstrap, topic, keys):
    at = [-1] * len(keys)

    def delivered(i):
        def f(err, m):
            if err:
                raise KafkaException(err)
            at[i] = m.partition()

        return f

    p = Producer({"bootstrap.servers": bootstrap, "partitioner": "consistent_random"})
    for i, key in enumerate(keys):
        p.produce(topic, b"", key, on_delivery=delivered(i))
        p.poll(0)
    if p.flush(30) > 0:
        raise RuntimeError("not all records were delivered")
    return at


def main(bootstrap, *counts):
    keys = [bytes.fromhex(line.strip()) for line in sys.stdin]
    admin = AdminClient({"bootstrap.servers": bootstrap})
    topics = [NewTopic(f"partitions-{time.time_ns()}-{n}", int(n), 1) for n in counts]
    for f in admin.create_topics(topics).values():
        f.result(30)
    columns = [produce(bootstrap, t.topic, keys) for t in topics]
    for i, key in enumerate(keys):
        print(key.hex(), *(c[i] for c in columns), sep="\t")


main(*sys.argv[1:])
