package client;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Collection;
import java.util.Collections;
import java.util.HashMap;
import java.util.Map;
import java.util.Properties;
import java.util.TreeSet;
import java.util.stream.Collectors;

import org.apache.kafka.clients.consumer.CommitFailedException;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.RetriableException;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

import report.Report;

/** A member of a group that tells what happens to it, until its standard input ends. */
final class Member implements ConsumerRebalanceListener {
    private final String topic;
    private final Properties properties = new Properties();
    private final TreeSet<Integer> owned = new TreeSet<>();
    private volatile boolean stop;

    Member(String bootstrap, String group, String topic) {
        this.topic = topic;
        properties.put("bootstrap.servers", bootstrap);
        properties.put("group.id", group);
        properties.put("key.deserializer", ByteArrayDeserializer.class.getName());
        properties.put("value.deserializer", ByteArrayDeserializer.class.getName());
        properties.put("enable.auto.commit", "false");
        properties.put("auto.offset.reset", "earliest");
        properties.put("session.timeout.ms", "6000");
        properties.put("heartbeat.interval.ms", "1000");
    }

    void run() {
        Thread watcher = new Thread(() -> {
            try {
                while (System.in.read() >= 0) {
                    continue;
                }
            } catch (IOException e) {
                // as good as the end
            }
            stop = true;
        });
        watcher.setDaemon(true);
        watcher.start();
        try (KafkaConsumer<byte[], byte[]> c = new KafkaConsumer<>(properties)) {
            c.subscribe(Collections.singleton(topic), this);
            while (!stop) {
                ConsumerRecords<byte[], byte[]> records = c.poll(Duration.ofMillis(200));
                Map<Integer, Long> next = new HashMap<>();
                for (ConsumerRecord<byte[], byte[]> r : records) {
                    Report.line("{\"event\":\"record\",\"partition\":" + r.partition() + ",\"offset\":" + r.offset()
                        + ",\"value\":" + Report.quote(new String(r.value(), StandardCharsets.UTF_8)) + "}");
                    next.put(r.partition(), r.offset() + 1);
                }
                if (next.isEmpty()) {
                    continue;
                }
                try {
                    c.commitSync();
                } catch (CommitFailedException | RetriableException e) {
                    continue; // a rebalance is under way: whoever gets the partitions reads these records again
                }
                next.forEach((p, o) -> Report.line("{\"event\":\"committed\",\"partition\":" + p + ",\"offset\":" + o + "}"));
            }
        }
    }

    private void tell() {
        Report.line("{\"event\":\"assigned\",\"partitions\":" + owned.stream().map(String::valueOf).collect(Collectors.joining(",", "[", "]")) + "}");
    }

    @Override
    public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
        partitions.forEach(p -> owned.add(p.partition()));
        tell();
    }

    @Override
    public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
        partitions.forEach(p -> owned.remove(p.partition()));
        tell();
    }
}
