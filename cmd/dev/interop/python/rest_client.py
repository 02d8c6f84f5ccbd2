"""Checks the HTTP gateway with a client of REST Proxy's version 2 that others wrote: nlp-kafka-rest-api.

It takes the flags and prints the lines that the programs of the Kafka clients do; --bootstrap is the gateway's URL. What the
client puts into requests is its own affair; these are its calls, as its README shows them. It is made for services that answer
what is produced to a topic in a second one, NAME-response. Here nobody stands in between: the answers are produced with it, too.
"""

import importlib.metadata
import tempfile
import time

import requests
from kafka_rest import Consumer, Producer

from probe import LIMIT, fails, flags, put

TEXTS = ["Kamo je otišao?", {"price": 1.0, "tags": ["a", None]}, 12345678901234567890, True, ["🦆"]]


def same(got, want):
    if got != want:
        raise AssertionError(f"{got!r} instead of {want!r}")


class Checks:
    def __init__(self, url):
        self.url = url

    def producer(self, topic):
        return Producer(kafka_rest_api_url=self.url, topic_id=topic + "-response")

    def consumer(self, topic, instance="one"):
        return Consumer(kafka_rest_api_url=self.url, topic_id=topic, consumer_group="readers-of-" + topic, instance=instance)

    def consume(self, topic, keys):
        """Reads the records with the keys: what was produced, by key."""
        with self.consumer(topic) as consumer:
            batches = consumer.consume_all(keys, interval_sec=0.1)
        return {r["key"]: r["value"]["payload"] for batch in batches for r in batch}

    def produce(self):
        producer = self.producer("texts")
        self.keys = producer.produce(TEXTS, "read")
        same(len(set(self.keys)), len(TEXTS))
        same(producer.produce(["last"], "read", keys=["mine"]), ["mine"])
        same(producer.key_history, self.keys + ["mine"])

    def read(self):
        want = {**dict(zip(self.keys, TEXTS)), "mine": "last"}
        same(self.consume("texts", list(want)), want)

    def resume(self):
        """What was consumed stays so for the group, and an instance that is gone is made anew under its name."""
        self.producer("texts").produce(["more"], "read", keys=["then"])
        self.consumer("texts").create().subscribe().delete()
        records, end = [], time.monotonic() + LIMIT
        with self.consumer("texts") as consumer:
            while not records and time.monotonic() < end:
                records = consumer.consume_earliest()
        same([(r["key"], r["value"]["payload"]) for r in records], [("then", "more")])

    def files(self):
        with tempfile.NamedTemporaryFile(suffix=".bin") as file:
            file.write(bytes(range(256)))
            file.flush()
            keys = self.producer("files").produce_files([file.name], "read")
        (got,) = self.consume("files", keys).values()
        same((len(got["bytes"]), got["type"]), (344, "application/octet-stream"))

    def refused(self):
        """What the gateway refuses reaches the caller."""
        fails(lambda: self.producer("no such name").produce(["x"], "read"))
        try:
            self.consumer("texts", "lost").consume_earliest()
        except requests.HTTPError as e:
            same((e.response.status_code, e.response.json()["error_code"]), (404, 40403))
            return
        raise AssertionError("an instance that isn't there answers")


def main():
    args = flags()
    checks = Checks(args["bootstrap"])
    version = importlib.metadata.version("nlp-kafka-rest-api")
    for name in ["produce", "read", "resume", "files", "refused"]:
        detail = {}
        try:
            getattr(checks, name)()
        except Exception as e:  # reported, and on to the next check
            detail = {"detail": repr(e)}
        put(client=args["client"], version=version, check=name, ok=not detail, **detail)


main()
