package client;

import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;

import org.apache.kafka.clients.admin.AdminClient;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.consumer.OffsetAndTimestamp;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.TopicExistsException;
import org.apache.kafka.common.errors.UnknownTopicOrPartitionException;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

import report.Report;

/** The checks that one client makes alone, and the reading of what others wrote. */
final class Checks {
    private static final long LIMIT_MS = 40_000;

    private final String bootstrap;
    private final String prefix;
    private final Corpus corpus;
    private final Report report;

    Checks(String bootstrap, String prefix, Corpus corpus, Report report) {
        this.bootstrap = bootstrap;
        this.prefix = prefix;
        this.corpus = corpus;
        this.report = report;
    }

    void run(String[] codecs) {
        String main = prefix + "-" + codecs[0];
        report.check("create", () -> create(codecs));
        report.check("delete", this::delete);
        for (String codec : codecs) {
            String topic = prefix + "-" + codec;
            boolean wrote = report.check("produce " + codec, () -> produce(topic, codec));
            report.check("consume from start " + codec, () -> {
                if (!wrote) {
                    throw new AssertionError("could not be written");
                }
                corpus.compare(0, corpus.size(), consume(topic, 0, corpus.size()), true);
            });
        }
        report.check("consume from end", this::consumeEnd);
        report.check("consume by timestamp", () -> consumeTime(main));
        report.check("commit and resume", () -> resume(main));
    }

    void read(String[] topics) {
        for (String t : topics) {
            String[] part = t.split(":");
            report.check("read " + part[1] + " from " + part[0], () -> corpus.compare(0, corpus.size(), consume(part[2], 0, corpus.size()), false));
        }
    }

    private Properties base() {
        Properties p = new Properties();
        p.put("bootstrap.servers", bootstrap);
        p.put("request.timeout.ms", "20000");
        return p;
    }

    private KafkaConsumer<byte[], byte[]> consumer(String group) {
        Properties p = base();
        p.put("key.deserializer", ByteArrayDeserializer.class.getName());
        p.put("value.deserializer", ByteArrayDeserializer.class.getName());
        p.put("enable.auto.commit", "false");
        p.put("auto.offset.reset", "earliest");
        p.put("max.poll.records", "50");
        if (group != null) {
            p.put("group.id", group);
        }
        return new KafkaConsumer<>(p);
    }

    private void createTopic(AdminClient admin, String name, int partitions) throws Exception {
        admin.createTopics(Collections.singleton(new NewTopic(name, partitions, (short) 1))).all().get();
    }

    private void create(String[] codecs) throws Exception {
        try (AdminClient admin = AdminClient.create(base()); KafkaConsumer<byte[], byte[]> c = consumer(null)) {
            String topic = prefix + "-created";
            createTopic(admin, topic, 3);
            int n = c.partitionsFor(topic).size();
            if (n != 3) {
                throw new AssertionError("metadata shows " + n + " partitions");
            }
            try {
                createTopic(admin, topic, 3);
                throw new AssertionError("creating the topic again is no error");
            } catch (ExecutionException e) {
                if (!(e.getCause() instanceof TopicExistsException)) {
                    throw e;
                }
            }
            createTopic(admin, prefix + "-end", 1);
            for (String codec : codecs) {
                createTopic(admin, prefix + "-" + codec, 1);
            }
        }
    }

    private void delete() throws Exception {
        try (AdminClient admin = AdminClient.create(base())) {
            String topic = prefix + "-deleted";
            createTopic(admin, topic, 1);
            admin.deleteTopics(Collections.singleton(topic)).all().get();
            try {
                admin.deleteTopics(Collections.singleton(topic)).all().get();
                throw new AssertionError("deleting the topic again is no error");
            } catch (ExecutionException e) {
                if (!(e.getCause() instanceof UnknownTopicOrPartitionException)) {
                    throw e;
                }
            }
        }
    }

    private KafkaProducer<byte[], byte[]> producer(String codec) {
        Properties p = base();
        p.put("key.serializer", ByteArraySerializer.class.getName());
        p.put("value.serializer", ByteArraySerializer.class.getName());
        p.put("compression.type", codec);
        p.put("acks", "all");
        p.put("enable.idempotence", "true");
        p.put("linger.ms", "5");
        p.put("delivery.timeout.ms", "30000");
        p.put("batch.size", "262144");
        return new KafkaProducer<>(p);
    }

    private void produce(String topic, String codec) throws Exception {
        List<Future<RecordMetadata>> sent = new ArrayList<>();
        try (KafkaProducer<byte[], byte[]> producer = producer(codec)) {
            for (Corpus.Text t : corpus.texts) {
                ProducerRecord<byte[], byte[]> r = new ProducerRecord<>(topic, 0, t.time, t.name.getBytes("UTF-8"), t.value);
                r.headers().add(Corpus.SUM, t.sum.getBytes("UTF-8"));
                sent.add(producer.send(r));
            }
            producer.flush();
            for (int i = 0; i < sent.size(); i++) {
                if (sent.get(i).get().offset() != i) {
                    throw new AssertionError("record " + i + " got offset " + sent.get(i).get().offset());
                }
            }
        }
    }

    /** Polls until n records are there, or time is up. */
    private static List<ConsumerRecord<byte[], byte[]>> poll(KafkaConsumer<byte[], byte[]> c, int n) {
        List<ConsumerRecord<byte[], byte[]>> records = new ArrayList<>();
        for (long end = System.currentTimeMillis() + LIMIT_MS; records.size() < n;) {
            if (System.currentTimeMillis() > end) {
                throw new AssertionError(records.size() + " of " + n + " records in time");
            }
            for (ConsumerRecord<byte[], byte[]> r : c.poll(Duration.ofMillis(500))) {
                records.add(r);
            }
        }
        return new ArrayList<>(records.subList(0, n));
    }

    private List<ConsumerRecord<byte[], byte[]>> consume(String topic, long from, int n) {
        try (KafkaConsumer<byte[], byte[]> c = consumer(null)) {
            TopicPartition tp = new TopicPartition(topic, 0);
            c.assign(Collections.singleton(tp));
            if (from == 0) {
                c.seekToBeginning(Collections.singleton(tp));
            } else {
                c.seek(tp, from);
            }
            return poll(c, n);
        }
    }

    private void consumeEnd() throws Exception {
        String topic = prefix + "-end";
        TopicPartition tp = new TopicPartition(topic, 0);
        try (KafkaProducer<byte[], byte[]> producer = producer("none"); KafkaConsumer<byte[], byte[]> c = consumer(null)) {
            for (int i = 1; i <= 3; i++) {
                producer.send(new ProducerRecord<>(topic, 0, null, ("old " + i).getBytes("UTF-8"))).get();
            }
            c.assign(Collections.singleton(tp));
            c.seekToEnd(Collections.singleton(tp));
            if (c.position(tp) != 3) {
                throw new AssertionError("the end is at " + c.position(tp));
            }
            producer.send(new ProducerRecord<>(topic, 0, null, "marker".getBytes("UTF-8"))).get();
            ConsumerRecord<byte[], byte[]> r = poll(c, 1).get(0);
            if (r.offset() != 3 || !new String(r.value(), "UTF-8").equals("marker")) {
                throw new AssertionError("got offset " + r.offset());
            }
        }
    }

    private void consumeTime(String topic) {
        TopicPartition tp = new TopicPartition(topic, 0);
        int middle = corpus.size() / 2;
        try (KafkaConsumer<byte[], byte[]> c = consumer(null)) {
            long[][] wanted = {
                {corpus.texts.get(0).time - 3_600_000, 0},
                {corpus.texts.get(middle).time, middle},
                {corpus.texts.get(corpus.size() - 1).time + 3_600_000, -1},
            };
            for (long[] w : wanted) {
                Map<TopicPartition, OffsetAndTimestamp> found = c.offsetsForTimes(Collections.singletonMap(tp, w[0]));
                long offset = found.get(tp) == null ? -1 : found.get(tp).offset();
                if (offset != w[1]) {
                    throw new AssertionError("timestamp " + w[0] + " is at offset " + offset + " instead of " + w[1]);
                }
            }
        }
        corpus.compare(middle, corpus.size(), consume(topic, middle, corpus.size() - middle), true);
    }

    private void resume(String topic) {
        TopicPartition tp = new TopicPartition(topic, 0);
        int half = corpus.size() / 2;
        int[][] parts = {{0, half}, {half, corpus.size()}};
        for (int[] part : parts) {
            try (KafkaConsumer<byte[], byte[]> c = consumer(prefix + "-resume")) {
                c.subscribe(Collections.singleton(topic));
                corpus.compare(part[0], part[1], poll(c, part[1] - part[0]), false);
                c.commitSync(Collections.singletonMap(tp, new OffsetAndMetadata(part[1], "half")));
            }
        }
    }
}
