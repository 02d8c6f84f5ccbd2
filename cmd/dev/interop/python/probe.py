"""What the Python client programs have in common: flags, corpus, report lines and the checks themselves.

A program gives `main` a client: an object with the methods that `Checks` and the roles below call. Records are
tuples (offset, key, value, milliseconds, sum of the header or None).
"""

import hashlib
import json
import sys
import threading
import time

HEADER = "sha256"
LIMIT = 40.0  # seconds a check may take


class Text:
    """One text of the corpus: a record's key, value, timestamp in milliseconds and hex SHA-256."""

    def __init__(self, line):
        ms, self.sum, _, self.name, path = line.rstrip("\n").split("\t")
        self.time = int(ms)
        with open(path, "rb") as f:
            self.value = f.read()
        if hashlib.sha256(self.value).hexdigest() != self.sum:
            raise ValueError(path + " has changed")


def load(manifest):
    with open(manifest, encoding="utf-8") as f:
        return [Text(line) for line in f]


def compare(texts, first, records, check_time):
    """Raises unless records are texts[first:], at the offsets of the same numbers."""
    if len(records) != len(texts) - first:
        raise AssertionError(f"{len(records)} records instead of {len(texts) - first}")
    for i, (offset, key, value, ms, digest) in enumerate(records, first):
        text = texts[i]
        if offset != i:
            raise AssertionError(f"record {i} has offset {offset}")
        if key != text.name.encode():
            raise AssertionError(f"offset {i}: key {key!r} instead of {text.name!r}")
        if value != text.value:
            raise AssertionError(f"offset {i}: value differs from {text.name}")
        if check_time and ms != text.time:
            raise AssertionError(f"offset {i}: timestamp {ms} instead of {text.time}")
        if digest is not None and digest != text.sum:
            raise AssertionError(f"offset {i}: header {HEADER} is {digest!r}")


def fails(action):
    """Raises unless action raises."""
    try:
        action()
    except Exception:  # whatever the library makes of the broker's error code
        return
    raise AssertionError("doing it again is no error")


def unwritten():
    raise AssertionError("could not be written")


def put(**fields):
    sys.stdout.write(json.dumps(fields) + "\n")
    sys.stdout.flush()


def collect(poll, n):
    """Calls poll, which returns a list of records, until there are n."""
    records, end = [], time.monotonic() + LIMIT
    while len(records) < n:
        if time.monotonic() > end:
            raise AssertionError(f"{len(records)} of {n} records in time")
        records += poll()
    return records[:n]


class Checks:
    def __init__(self, args, client):
        self.args, self.client = args, client
        self.texts = load(args["corpus"])

    def topic(self, name):
        return self.args["prefix"] + "-" + name

    def check(self, name, action):
        """Reports how action went and returns whether it went well."""
        detail = {}
        try:
            action()
        except Exception as e:  # reported, and on to the next check
            detail = {"detail": repr(e)}
        put(client=self.args["client"], version=self.client.version, check=name, ok=not detail, **detail)
        return not detail

    def run(self):
        codecs = self.args["codecs"].split(",")
        self.main = self.topic(codecs[0])
        self.check("create", lambda: self.create(codecs))
        self.check("delete", self.delete)
        for codec in codecs:
            topic = self.topic(codec)
            wrote = self.check("produce " + codec, lambda: self.client.produce(topic, codec, self.texts))
            self.check("consume from start " + codec, lambda: self.whole(topic, True) if wrote else unwritten())
        self.check("consume from end", self.consume_end)
        self.check("consume by timestamp", self.consume_time)
        self.check("commit and resume", self.resume)

    def read(self):
        for entry in self.args["topics"].split(","):
            client, codec, topic = entry.split(":")
            self.check(f"read {codec} from {client}", lambda: self.whole(topic, False))

    def whole(self, topic, check_time):
        compare(self.texts, 0, self.client.consume(topic, 0, len(self.texts)), check_time)

    def create(self, codecs):
        topic = self.topic("created")
        self.client.create_topic(topic, 3)
        n = self.client.partitions(topic)
        if n != 3:
            raise AssertionError(f"metadata shows {n} partitions")
        fails(lambda: self.client.create_topic(topic, 3))
        for name in ["end"] + codecs:
            self.client.create_topic(self.topic(name), 1)

    def delete(self):
        topic = self.topic("deleted")
        self.client.create_topic(topic, 1)
        self.client.delete_topic(topic)
        fails(lambda: self.client.delete_topic(topic))

    def consume_end(self):
        (offset, _, value, _, _) = self.client.consume_end(self.topic("end"))
        if offset < 3 or value != b"marker":
            raise AssertionError(f"got {value!r} at offset {offset}")

    def consume_time(self):
        middle = len(self.texts) // 2
        for ms, want in [
            (self.texts[0].time - 3_600_000, 0),
            (self.texts[middle].time, middle),
            (self.texts[-1].time + 3_600_000, None),
        ]:
            got = self.client.offset_at(self.main, ms)
            if got != want:
                raise AssertionError(f"timestamp {ms} is at offset {got} instead of {want}")
        compare(self.texts, middle, self.client.consume(self.main, middle, len(self.texts) - middle), True)

    def resume(self):
        half = len(self.texts) // 2
        group = self.topic("resume")
        compare(self.texts[:half], 0, self.client.group_read(group, self.main, half), False)
        compare(self.texts, half, self.client.group_read(group, self.main, len(self.texts) - half), False)


def stdin_ended():
    """An event that is set when standard input ends."""
    ended = threading.Event()

    def watch():
        sys.stdin.buffer.read()
        ended.set()

    threading.Thread(target=watch, daemon=True).start()
    return ended


def flags():
    """The program's flags, each with a value."""
    given = sys.argv[1:]
    return {name[2:]: value for name, value in zip(given[::2], given[1::2])}


def main(open_client):
    args = flags()
    client = open_client(args["bootstrap"])
    if args["role"] == "checks":
        Checks(args, client).run()
    elif args["role"] == "read":
        Checks(args, client).read()
    elif args["role"] == "member":
        client.member(args["group"], args["topic"], stdin_ended())
    else:
        sys.exit("unknown role " + args["role"])
