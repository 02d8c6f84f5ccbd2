package gateway_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestReadme does what README.md shows, in order: each curl, and where JSON follows, that is its answer.
func TestReadme(t *testing.T) {
	b := start(t, &byKey{})
	text, err := os.ReadFile("README.md")
	require.NoError(t, err)
	cluster := strings.TrimPrefix(b.cluster(), "/v3/clusters/")
	last, done := answer{}, 0
	for _, block := range regexp.MustCompile("(?ms)^```(sh|json)\n(.*?)^```").FindAllStringSubmatch(string(text), -1) {
		if block[1] == "json" {
			assert.JSONEq(t, block[2], last.body)
			continue
		}
		commands := strings.ReplaceAll(block[2], "\\\n", " ")
		for command := range strings.Lines(commands) {
			command = strings.ReplaceAll(command, "http://127.0.0.1:8082", b.base)
			last = b.curl(strings.ReplaceAll(command, "$CLUSTER", cluster))
			assert.Contains(t, []int{200, 204}, last.status, "%s%s", command, last.body)
			done++
		}
	}
	assert.Equal(t, 9, done)
	assert.Contains(t, last.body, `"lag":2`)
}

// curl does what a curl command would, of those that README.md uses.
func (b *bench) curl(command string) answer {
	b.t.Helper()
	var words []string
	for _, m := range regexp.MustCompile(`'([^']*)'|(\S+)`).FindAllStringSubmatch(command, -1) {
		words = append(words, m[1]+m[2])
	}
	require.Equal(b.t, "curl", words[0])
	method, url, body, header := "GET", "", "", map[string]string{}
	for i := 1; i < len(words); i++ {
		switch words[i] {
		case "-X":
			i++
			method = words[i]
		case "-H":
			i++
			name, value, ok := strings.Cut(words[i], ": ")
			require.True(b.t, ok)
			header[name] = value
		case "-d":
			i++
			body = words[i]
		default:
			require.True(b.t, strings.HasPrefix(words[i], "http://"), words[i])
			url = words[i]
		}
	}
	return b.send(method, url, header, strings.NewReader(body))
}
