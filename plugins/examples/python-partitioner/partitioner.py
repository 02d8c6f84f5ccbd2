"""Tenant is a plug-in of Barnabas in Python: a partitioner that keeps all records of a tenant together.

Keys are a tenant, a separator and the rest: "acme:order-17". The part before the separator alone chooses the partition, so
one consumer sees everything of a tenant in order. Records without a key take turns among the partitions that have a leader.
"""

import itertools
import zlib

from barnabas_plugin import Invalid, Option, serve


class Tenant:
    name = "tenant"
    version = "1.0.0"
    summary = "by the part of the key before a separator, so that a tenant's records stay together"
    options = [Option("separator", "text", ":", "what ends the tenant in a key; a key without it is a tenant as a whole")]
    keyed = True  # equal keys always meet, whatever else is in the batch

    def __init__(self, options):
        self.separator = options["separator"].encode()
        self.turns = itertools.count()  # next() on it is atomic: calls come from several threads

    @staticmethod
    def check(options):
        """Gives the faults of options that have the right types: pairs of the option's name and what is wrong."""
        if not options["separator"]:
            yield "separator", "must not be empty"

    def partition(self, topic, partitions, available, records):
        """Gives one partition for each record; a record is key, value and headers, each bytes or None."""
        if partitions < 1:
            raise Invalid(f"topic {topic!r} has no partitions")
        led = available or range(partitions)
        return [
            led[next(self.turns) % len(led)] if key is None
            else zlib.crc32(key.split(self.separator, 1)[0]) % partitions
            for key, _, _ in records
        ]


if __name__ == "__main__":
    serve(Tenant)
