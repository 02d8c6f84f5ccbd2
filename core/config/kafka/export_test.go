package kafka_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/barnabas-mq/barnabas/core/config/kafka"
)

func TestFormatProperties(t *testing.T) {
	got := kafka.FormatProperties([]kafka.Property{
		{Name: "log.dirs", Value: "/a,/b"}, {Name: "listeners", Value: "PLAINTEXT://:9092"}, {Name: "broker.rack", Value: "  a = b: #c ä\t"},
		{Name: "# x=y:z", Value: `C:\data`}, {Name: "", Value: "x"}, {Name: "empty"},
	})
	assert.Equal(t, `log.dirs=/a,/b
listeners=PLAINTEXT://:9092
broker.rack=\ \ a = b: #c \u00e4\u0009
\u0023\ x\=y\:z=C:\\data
empty=
`, string(got))
}

func TestWhatIsFormattedIsReadBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var properties []kafka.Property
		for i := range rapid.IntRange(0, 4).Draw(t, "n") {
			properties = append(properties, kafka.Property{
				Name:  rapid.StringN(1, 8, -1).Draw(t, "name"),
				Value: rapid.StringN(0, 8, -1).Draw(t, "value"),
				Line:  i + 1,
			})
		}
		again, err := kafka.ParseProperties("s.properties", kafka.FormatProperties(properties))
		require.NoError(t, err)
		assert.Equal(t, properties, again)
	})
}
