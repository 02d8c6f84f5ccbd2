package kafkatools

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/barnabas-mq/barnabas/core/compression"
	"github.com/barnabas-mq/barnabas/core/record"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// outcome is what one command line did.
type outcome struct {
	code     int
	out, err string
}

// call runs a command line: the tool, and its arguments, separated by blanks.
func run(t *testing.T, input, line string) outcome {
	t.Helper()
	words := strings.Fields(line)
	tool, ok := Find(words[0])
	require.True(t, ok, words[0])
	var out, complaints bytes.Buffer
	w := World{In: strings.NewReader(input), Out: &out, Err: &complaints, Version: "1.2.3", Codecs: noCodecs}
	code := tool.Run(t.Context(), w, words[1:])
	return outcome{code, out.String(), complaints.String()}
}

// noCodecs are codecs that know no compression.
func noCodecs(context.Context) (record.Codecs, func() error, error) {
	set, err := compression.NewSet()
	return set, func() error { return nil }, err
}
