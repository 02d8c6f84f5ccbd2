package client;

import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Paths;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.header.Header;

/** The texts to send, as the manifest names them: milliseconds, SHA-256, length, name and path, separated by tabs. */
final class Corpus {
    static final String SUM = "sha256";

    static final class Text {
        final long time;
        final String sum;
        final String name;
        final byte[] value;

        Text(long time, String sum, String name, byte[] value) {
            this.time = time;
            this.sum = sum;
            this.name = name;
            this.value = value;
        }
    }

    final List<Text> texts = new ArrayList<>();

    Corpus(String manifest) throws Exception {
        for (String line : Files.readAllLines(Paths.get(manifest))) {
            String[] col = line.split("\t");
            byte[] value = Files.readAllBytes(Paths.get(col[4]));
            if (value.length != Integer.parseInt(col[2])) {
                throw new IllegalStateException(col[4] + " has changed");
            }
            texts.add(new Text(Long.parseLong(col[0]), col[1], col[3], value));
        }
    }

    int size() {
        return texts.size();
    }

    /** Compares records with texts first, first+1, … up to last; their offsets are the same numbers. */
    void compare(int first, int last, List<ConsumerRecord<byte[], byte[]>> records, boolean checkTime) {
        if (records.size() != last - first) {
            throw new AssertionError(records.size() + " records instead of " + (last - first));
        }
        for (int i = first; i < last; i++) {
            Text t = texts.get(i);
            ConsumerRecord<byte[], byte[]> r = records.get(i - first);
            if (r.offset() != i) {
                throw new AssertionError("record " + i + " has offset " + r.offset());
            }
            if (r.key() == null || !t.name.equals(new String(r.key(), StandardCharsets.UTF_8))) {
                throw new AssertionError("offset " + i + ": wrong key, not " + t.name);
            }
            if (!Arrays.equals(t.value, r.value())) {
                throw new AssertionError("offset " + i + ": value differs from " + t.name);
            }
            if (checkTime && r.timestamp() != t.time) {
                throw new AssertionError("offset " + i + ": timestamp " + r.timestamp() + " instead of " + t.time);
            }
            Header h = r.headers().lastHeader(SUM);
            if (h != null && !t.sum.equals(new String(h.value(), StandardCharsets.UTF_8))) {
                throw new AssertionError("offset " + i + ": wrong header " + SUM);
            }
        }
    }
}
