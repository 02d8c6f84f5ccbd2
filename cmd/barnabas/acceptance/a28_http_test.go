package acceptance

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/barnabas-mq/barnabas/cmd/dev/target"
)

// TestA28BadBodies: a caller's mistakes are told as such, and append nothing; what is right comes back byte for byte.
//
// confluentinc/kafka-rest#87, kafka-rest#112
func TestA28BadBodies(t *testing.T) {
	t.Parallel()
	ports := freePorts(t, 2)
	n := beginWith(t, target.Options{Dir: t.TempDir(), Addr: "127.0.0.1:" + ports[0], Sections: "gateway: {listen: '127.0.0.1:" + ports[1] + "', max_body: 64KiB}\n"})
	gateway := frontAt(t, "127.0.0.1:"+ports[1])
	client := n.dial()
	client.createTopic("t", 1, forever())
	const good = `{"records":[{"value":"YQ=="}]}`
	large := fmt.Sprintf(`{"records":[{"value":"%s"}]}`, strings.Repeat("YWFh", 64<<8))
	for _, tt := range []struct {
		media, body string
		status      int
	}{
		{mediaBinary, `{`, 400}, {mediaBinary, ``, 400}, {mediaBinary, `[]`, 422}, {mediaBinary, `{"records":null}`, 422}, {mediaBinary, `{"records":[]}`, 422},
		{mediaBinary, `{"records":[{"value":"no base64!"}]}`, 422}, {mediaBinary, `{"records":[{"value":"YQ=="},{"value":{"a":1}}]}`, 422},
		{mediaBinary, large, 413}, {mediaJSON, large, 413},
		{"", good, 415}, {"text/plain", good, 415}, {"application/json", good, 415}, {"application/vnd.kafka.avro.v2+json", good, 415}, {"application/vnd.kafka.binary.v3+json", good, 415},
	} {
		status, answer := gateway.post("/topics/t", tt.media, tt.body)
		assert.Equal(t, tt.status, status, "%s %.80s: %s", tt.media, tt.body, answer)
		var failure struct {
			Code    int    `json:"error_code"`
			Message string `json:"message"`
		}
		if assert.NoError(t, json.Unmarshal([]byte(answer), &failure), "%.80s: %s", tt.body, answer) {
			assert.NotEmpty(t, failure.Message)
			assert.True(t, strings.HasPrefix(fmt.Sprint(failure.Code), fmt.Sprint(status)), answer)
		}
	}
	require.Zero(t, client.end("t", 0), "nothing was appended")

	number := `{"a":1.0,"b":12345678901234567890}`
	for _, tt := range []struct{ media, value, want string }{
		{mediaBinary, `"/wD+"`, "\xff\x00\xfe"},
		{mediaJSON, number, number},
		{mediaJSON, `"/wD+"`, `"/wD+"`}, // a text, not bytes
	} {
		status, answer := gateway.post("/topics/t", tt.media, `{"records":[{"value":`+tt.value+`}]}`)
		assert.Equal(t, 200, status, answer)
		records := client.all("t", 0, 0)
		assert.Equal(t, tt.want, string(records[len(records)-1].Value))
	}
}
