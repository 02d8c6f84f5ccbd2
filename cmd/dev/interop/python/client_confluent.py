"""The interop program for confluent-kafka, which is librdkafka."""

import confluent_kafka
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

import probe


def record(m):
    digest = dict(m.headers() or []).get(probe.HEADER)
    return (m.offset(), m.key(), m.value(), m.timestamp()[1], digest.decode() if digest else None)


class Client:
    def __init__(self, bootstrap):
        self.base = {"bootstrap.servers": bootstrap}
        self.version = f"{confluent_kafka.version()}/librdkafka {confluent_kafka.libversion()[0]}"

    def admin(self):
        return AdminClient(dict(self.base))

    def create_topic(self, topic, partitions):
        a = self.admin()  # held until the answers are there: without it they are cancelled
        for f in a.create_topics([NewTopic(topic, partitions, 1)]).values():
            f.result(30)

    def partitions(self, topic):
        return len(self.admin().list_topics(topic, timeout=30).topics[topic].partitions)

    def delete_topic(self, topic):
        a = self.admin()
        for f in a.delete_topics([topic]).values():
            f.result(30)

    def produce(self, topic, codec, texts):
        offsets = []

        def delivered(err, m):
            if err:
                raise KafkaException(err)
            offsets.append(m.offset())

        p = Producer({**self.base, "compression.codec": codec, "enable.idempotence": True, "linger.ms": 5})
        for t in texts:
            p.produce(
                topic, t.value, t.name, partition=0, on_delivery=delivered, timestamp=t.time, headers={probe.HEADER: t.sum}
            )
            p.poll(0)
        p.flush(probe.LIMIT)
        if offsets != list(range(len(texts))):
            raise AssertionError(f"{len(offsets)} of {len(texts)} delivered, first at {offsets[:1]}")

    def consumer(self, group="unused", **more):
        return Consumer({**self.base, "group.id": group, "enable.auto.commit": False, "auto.offset.reset": "earliest", **more})

    @staticmethod
    def poll(c):
        messages = c.consume(50, 0.5)
        for m in messages:
            if m.error():
                raise KafkaException(m.error())
        return [record(m) for m in messages]

    def consume(self, topic, offset, n):
        c = self.consumer()
        try:
            c.assign([TopicPartition(topic, 0, offset)])
            return probe.collect(lambda: self.poll(c), n)
        finally:
            c.close()

    def consume_end(self, topic):
        p = Producer(self.base)
        for i in range(3):
            p.produce(topic, f"old {i}", partition=0)
        p.flush(30)
        c = self.consumer()

        def poll():
            records = self.poll(c)
            if not records:
                p.produce(topic, "marker", partition=0)
                p.flush(30)
            return records

        try:
            c.assign([TopicPartition(topic, 0, confluent_kafka.OFFSET_END)])
            return probe.collect(poll, 1)[0]
        finally:
            c.close()

    def offset_at(self, topic, ms):
        c = self.consumer()
        try:
            offset = c.offsets_for_times([TopicPartition(topic, 0, ms)], timeout=30)[0].offset
        finally:
            c.close()
        return offset if offset >= 0 else None

    def group_read(self, group, topic, n):
        c = self.consumer(group)
        try:
            c.subscribe([topic])
            records = probe.collect(lambda: self.poll(c), n)
            c.commit(offsets=[TopicPartition(topic, 0, records[-1][0] + 1)], asynchronous=False)
            return records
        finally:
            c.close()

    def member(self, group, topic, ended):
        owned = set()

        def change(partitions, gain):
            for p in partitions:
                (owned.add if gain else owned.discard)(p.partition)
            probe.put(event="assigned", partitions=sorted(owned))

        def lose(_, partitions):
            change(partitions, False)

        c = self.consumer(group, **{"session.timeout.ms": 6000, "heartbeat.interval.ms": 1000})
        c.subscribe([topic], on_assign=lambda _, p: change(p, True), on_revoke=lose, on_lost=lose)
        while not ended.is_set():
            upto = {}
            for m in c.consume(50, 0.2):
                if m.error():
                    continue  # told again, or a rebalance's business
                probe.put(event="record", partition=m.partition(), offset=m.offset(), value=m.value().decode())
                upto[m.partition()] = m.offset() + 1
            if not upto:
                continue
            try:
                done = c.commit(offsets=[TopicPartition(topic, p, o) for p, o in upto.items()], asynchronous=False)
            except KafkaException:
                continue  # a rebalance is under way: the records are read again
            for t in done:
                if not t.error:
                    probe.put(event="committed", partition=t.partition, offset=t.offset)
        c.close()


probe.main(Client)
