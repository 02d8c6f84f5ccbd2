"""The interop program for kafka-python."""

import kafka
from kafka import ConsumerRebalanceListener, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import KafkaAdminClient, NewTopic
from kafka.errors import KafkaError
from kafka.structs import OffsetAndMetadata

import probe


def record(r):
    digest = dict(r.headers or []).get(probe.HEADER)
    return (r.offset, r.key, r.value, r.timestamp, digest.decode() if digest else None)


class Client:
    version = kafka.__version__

    def __init__(self, bootstrap):
        self.bootstrap = bootstrap

    def admin(self, action):
        a = KafkaAdminClient(bootstrap_servers=self.bootstrap)
        try:
            return action(a)
        finally:
            a.close()

    def create_topic(self, topic, partitions):
        self.admin(lambda a: a.create_topics([NewTopic(topic, partitions, 1)]))

    def partitions(self, topic):
        return self.admin(lambda a: len(a.describe_topics([topic])[0]["partitions"]))

    def delete_topic(self, topic):
        self.admin(lambda a: a.delete_topics([topic]))

    def producer(self, codec="none"):
        return KafkaProducer(
            bootstrap_servers=self.bootstrap, acks="all", linger_ms=5, batch_size=256 << 10,
            compression_type=None if codec == "none" else codec,
        )

    def produce(self, topic, codec, texts):
        p = self.producer(codec)
        try:
            sent = [p.send(topic, t.value, t.name.encode(), [(probe.HEADER, t.sum.encode())], 0, t.time) for t in texts]
            p.flush(probe.LIMIT)
            for i, f in enumerate(sent):
                if f.get(0).offset != i:
                    raise AssertionError(f"record {i} got offset {f.get(0).offset}")
        finally:
            p.close()

    def consumer(self, group=None, **more):
        return KafkaConsumer(
            bootstrap_servers=self.bootstrap, group_id=group, enable_auto_commit=False, auto_offset_reset="earliest",
            max_poll_records=50, **more,
        )

    @staticmethod
    def poll(c):
        return [record(r) for records in c.poll(500).values() for r in records]

    def consume(self, topic, offset, n):
        c = self.consumer()
        try:
            tp = TopicPartition(topic, 0)
            c.assign([tp])
            if offset == 0:
                c.seek_to_beginning(tp)
            else:
                c.seek(tp, offset)
            return probe.collect(lambda: self.poll(c), n)
        finally:
            c.close()

    def consume_end(self, topic):
        tp = TopicPartition(topic, 0)
        p, c = self.producer(), self.consumer()
        try:
            for i in range(3):
                p.send(topic, f"old {i}".encode(), partition=0).get(30)
            c.assign([tp])
            c.seek_to_end(tp)
            if c.position(tp) != 3:
                raise AssertionError(f"the end is at {c.position(tp)}")
            p.send(topic, b"marker", partition=0).get(30)
            return probe.collect(lambda: self.poll(c), 1)[0]
        finally:
            p.close()
            c.close()

    def offset_at(self, topic, ms):
        tp = TopicPartition(topic, 0)
        c = self.consumer()
        try:
            found = c.offsets_for_times({tp: ms})[tp]
        finally:
            c.close()
        return found.offset if found else None

    def group_read(self, group, topic, n):
        c = self.consumer(group)
        try:
            c.subscribe([topic])
            records = probe.collect(lambda: self.poll(c), n)
            c.commit({TopicPartition(topic, 0): OffsetAndMetadata(records[-1][0] + 1, "half", -1)})
            return records
        finally:
            c.close()

    def member(self, group, topic, ended):
        owned = set()

        class Listener(ConsumerRebalanceListener):
            def on_partitions_assigned(self, partitions):
                owned.update(p.partition for p in partitions)
                probe.put(event="assigned", partitions=sorted(owned))

            def on_partitions_revoked(self, partitions):
                owned.difference_update(p.partition for p in partitions)
                probe.put(event="assigned", partitions=sorted(owned))

        c = self.consumer(group, session_timeout_ms=6000, heartbeat_interval_ms=1000)
        c.subscribe([topic], listener=Listener())
        while not ended.is_set():
            upto = {}
            for tp, records in c.poll(200).items():
                for r in records:
                    probe.put(event="record", partition=tp.partition, offset=r.offset, value=r.value.decode())
                    upto[tp] = r.offset + 1
            if not upto:
                continue
            try:
                c.commit({tp: OffsetAndMetadata(o, "", -1) for tp, o in upto.items()})
            except KafkaError:
                continue  # a rebalance is under way: the records are read again
            for tp, o in upto.items():
                probe.put(event="committed", partition=tp.partition, offset=o)
        c.close()


probe.main(Client)
