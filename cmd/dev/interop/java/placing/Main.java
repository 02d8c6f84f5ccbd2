package placing;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;
import java.util.Map;
import java.util.concurrent.ExecutionException;

import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.InvalidRecordException;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * Produces keys with the Java client's own partitioner and tells what became of them: see placing.go of package interop.
 * Arguments are the address and the topics; keys come in hexadecimal, one a line.
 */
public final class Main {
    public static void main(String[] args) throws Exception {
        Map<String, Object> config = Map.of("bootstrap.servers", args[0], "linger.ms", "0",
            "key.serializer", ByteArraySerializer.class, "value.serializer", ByteArraySerializer.class);
        var in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.US_ASCII));
        try (var producer = new KafkaProducer<byte[], byte[]>(config)) {
            for (String key; (key = in.readLine()) != null; ) {
                for (int i = 1; i < args.length; i++) {
                    send(producer, args[i], key);
                }
            }
        }
    }

    private static void send(KafkaProducer<byte[], byte[]> producer, String topic, String key) throws Exception {
        int[] at = {-1};
        var sent = producer.send(new ProducerRecord<>(topic, HexFormat.of().parseHex(key), new byte[0]), (to, e) -> at[0] = to.partition());
        boolean kept = true;
        try {
            sent.get();
        } catch (ExecutionException e) {
            if (!(e.getCause() instanceof InvalidRecordException)) {
                throw e;
            }
            kept = false;
        }
        System.out.println(topic + "\t" + key + "\t" + at[0] + "\t" + kept);
    }
}
