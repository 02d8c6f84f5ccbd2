"""Produces keys with librdkafka's own partitioner and tells what became of them: see placing.go of package interop.

placing.py BOOTSTRAP TOPIC... reads keys in hexadecimal, one a line.
"""

import sys

from confluent_kafka import KafkaError, KafkaException, Producer


def main(bootstrap, *topics):
    keys = [bytes.fromhex(line) for line in sys.stdin]
    producer = Producer({"bootstrap.servers": bootstrap, "batch.num.messages": 1})

    def tell(error, message):
        if error and error.code() != KafkaError.INVALID_RECORD:
            raise KafkaException(error)
        print(message.topic(), message.key().hex(), message.partition(), "false" if error else "true", sep="\t")

    for key in keys:
        for topic in topics:
            producer.produce(topic, b"", key, on_delivery=tell)
            producer.poll(0)
    if producer.flush(60) > 0:
        raise RuntimeError("not all records were answered")


main(*sys.argv[1:])
