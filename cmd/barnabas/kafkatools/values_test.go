package kafkatools

import (
	"bufio"
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"
)

func TestJavaDouble(t *testing.T) {
	for v, want := range map[float64]string{
		0: "0.0", 1: "1.0", 1024: "1024.0", 0.5: "0.5", 1e6: "1000000.0", 9999999: "9999999.0", 1e7: "1.0E7", 12345678: "1.2345678E7", -2.5: "-2.5", 0.0001: "1.0E-4", 0.001: "0.001",
	} {
		assert.Equal(t, want, javaDouble(v))
	}
}

func TestTimes(t *testing.T) {
	for text, want := range map[string]int64{
		"1970-01-01T00:00:01.500": 1500, "1970-01-01T00:00:01": 1000, "1970-01-01T00:00:01.000Z": 1000,
		"1970-01-01T01:00:00.000+0100": 0, "1970-01-01T01:00:00.000+01:00": 0, "1970-01-01T01:00:00.000+01": 0,
	} {
		got, err := parseDateTime(text)
		require.NoError(t, err, text)
		assert.Equal(t, want, got, text)
	}
	for _, text := range []string{"", "2020-01-01", "2020-13-01T00:00:00", "yesterdayT"} {
		_, err := parseDateTime(text)
		assert.Error(t, err, text)
	}
	for text, want := range map[string]time.Duration{
		"PT1H": time.Hour, "P1D": 24 * time.Hour, "P1DT2H3M4.5S": 26*time.Hour + 3*time.Minute + 4500*time.Millisecond, "pt1m": time.Minute, "-PT1M": -time.Minute, "PT-1M": -time.Minute,
	} {
		got, err := parseDuration(text)
		require.NoError(t, err, text)
		assert.Equal(t, want, got, text)
	}
	for _, text := range []string{"", "P", "PT", "1h", "P1W", "P1DT", "PT1H1H", "P99999999999999D"} {
		_, err := parseDuration(text)
		assert.Error(t, err, text)
	}
}

func TestCSV(t *testing.T) {
	assert.Equal(t, "topic", quoted("topic"))
	assert.Equal(t, `"a,b"`, quoted("a,b"))
	assert.Equal(t, `"a""b"`, quoted(`a"b`))
	assert.Equal(t, `"abcdefghijklmnopqrstuvwxyz"`, quoted("abcdefghijklmnopqrstuvwxyz"))
	file := filepath.Join(t.TempDir(), "plan.csv")
	write := func(text string) {
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	}
	write("t,0,5\n\"u\",1,6\n")
	plan, err := readPlan(file, []string{"g"})
	require.NoError(t, err)
	assert.Equal(t, map[string]map[topicPartition]int64{"g": {{"t", 0}: 5, {"u", 1}: 6}}, plan)
	write("g,t,0,5\nh,t,0,6\n")
	plan, err = readPlan(file, nil)
	require.NoError(t, err)
	assert.Equal(t, map[string]map[topicPartition]int64{"g": {{"t", 0}: 5}, "h": {{"t", 0}: 6}}, plan)
	for _, text := range []string{"t,0\n", "t,x,0\n", "t,0,x\n", "a,b,0,1,2\n", "\"\n"} {
		write(text)
		_, err := readPlan(file, []string{"g"})
		assert.Error(t, err, text)
	}
}

func TestConfigPairs(t *testing.T) {
	assert.Equal(t, []string{"a=1", "b=[x,y]", "c="}, splitConfigs("a=1,b=[x,y],c="))
	assert.Equal(t, []string{"a"}, splitConfigs("a"))
}

func TestSecurity(t *testing.T) {
	login := `org.apache.kafka.common.security.plain.PlainLoginModule required username="a\"b" password='x' password=secret;`
	assert.Equal(t, `a"b`, jaas(login, "username"))
	assert.Equal(t, "'x'", jaas(login, "password"))
	assert.Equal(t, "secret", jaas("M required password=secret;", "password"))
	assert.Empty(t, jaas(login, "user"))
	for want, values := range map[string]map[string]string{
		"security.protocol: want":          {"security.protocol": "TLS"},
		"sasl.jaas.config: want":           {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN"},
		"sasl.mechanism: want":             {"security.protocol": "SASL_PLAINTEXT", "sasl.jaas.config": `M required username="a" password="b";`},
		"ssl.truststore.type is JKS":       {"security.protocol": "SSL", "ssl.truststore.location": "/x.jks"},
		"there is no certificate in it":    {"security.protocol": "SSL", "ssl.truststore.certificates": "nonsense"},
		"ssl.keystore.location: open /no/": {"security.protocol": "SSL", "ssl.keystore.location": "/no/such", "ssl.keystore.type": "PEM"},
	} {
		_, err := security(&properties{values: values, used: map[string]bool{}})
		assert.ErrorContains(t, err, want)
	}
	for _, mechanism := range []string{"PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"} {
		options, err := security(&properties{used: map[string]bool{}, values: map[string]string{
			"security.protocol": "SASL_SSL", "sasl.mechanism": mechanism, "sasl.jaas.config": `M required username="a" password="b";`, "ssl.endpoint.identification.algorithm": "",
		}})
		require.NoError(t, err)
		assert.Len(t, options, 2)
	}
}

func TestDefaultFormatter(t *testing.T) {
	r := &kgo.Record{
		Topic: "t", Partition: 3, Offset: 7, LeaderEpoch: 2, Timestamp: time.UnixMilli(1234), Key: []byte("key"), Value: []byte("value"),
		Headers: []kgo.RecordHeader{{Key: "a", Value: []byte("1")}, {Key: "b"}},
	}
	long := &kgo.Record{Key: []byte{0, 0, 0, 5}, Value: []byte{0, 0, 0, 0, 0, 0, 1, 0}}
	for _, test := range []struct {
		r        *kgo.Record
		settings map[string]string
		want     string
	}{
		{r, nil, "value\n"},
		{r, map[string]string{"print.key": "true"}, "key\tvalue\n"},
		{r, map[string]string{"print.key": "true", "print.value": "false", "line.separator": ";"}, "key;"},
		{r, map[string]string{
			"print.key": "true", "print.timestamp": "true", "print.partition": "true", "print.offset": "true", "print.headers": "true", "print.epoch": "true", "print.delivery": "true",
			"key.separator": "|", "null.literal": "NIL",
		}, "CreateTime:1234|Partition:3|Offset:7|Delivery:NONE|Epoch:2|a:1,b:NIL|key|value\n"},
		{&kgo.Record{}, map[string]string{"print.key": "true", "print.headers": "true"}, "NO_HEADERS\tnull\tnull\n"},
		{long, map[string]string{"print.key": "true", "key.deserializer": deserializerStart + "IntegerDeserializer", "value.deserializer": deserializerStart + "LongDeserializer"}, "5\t256\n"},
	} {
		write, err := defaultFormatter(&properties{values: test.settings, used: map[string]bool{}})
		require.NoError(t, err)
		var b bytes.Buffer
		w := bufio.NewWriter(&b)
		require.NoError(t, write(w, test.r))
		require.NoError(t, w.Flush())
		assert.Equal(t, test.want, b.String())
	}
	write, err := defaultFormatter(&properties{values: map[string]string{"value.deserializer": deserializerStart + "LongDeserializer"}, used: map[string]bool{}})
	require.NoError(t, err)
	assert.ErrorContains(t, write(bufio.NewWriter(&bytes.Buffer{}), r), "LongDeserializer: want 8 bytes, not 5")
}
