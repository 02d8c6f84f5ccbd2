package peers

import (
	"context"
	"encoding/xml"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestStartTellsWhyABrokerEnded(t *testing.T) {
	_, err := Start(context.Background(), exec.Command("sh", "-c", "echo no space left; exit 5"), "127.0.0.1:1", "")
	require.ErrorContains(t, err, "it ended: exit status 5")
	require.ErrorContains(t, err, "no space left")
}

func TestStartGivesUpWithItsContext(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	cmd := exec.Command("sleep", "600")
	_, err := Start(ctx, cmd, "127.0.0.1:1", "")
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.ErrorContains(t, err, "no answer at 127.0.0.1:1")
	require.NotNil(t, cmd.ProcessState, "it still runs")
}

func TestThePomNamesTheVersion(t *testing.T) {
	var pom struct {
		Version string `xml:"properties>kafka.version"`
	}
	require.NoError(t, xml.Unmarshal(kafkaPom, &pom))
	require.Equal(t, KafkaVersion, pom.Version)
	require.NoError(t, xml.Unmarshal(kafka39Pom, &pom))
	require.Equal(t, Kafka39Version, pom.Version)
}

func TestJavaCommand(t *testing.T) {
	args := strings.Join(Java{Lib: "/lib", logConfig: "-Dlog=/log"}.Command("64M", "WARN", []string{"/classes"}, "a.Main", "--x"), " ")
	require.Contains(t, args, "-Xmx64M")
	require.Contains(t, args, " -Dlog=/log ")
	require.True(t, strings.HasSuffix(args, "-cp /classes:/lib/* a.Main --x"), args)
}

func TestFreePortIsFree(t *testing.T) {
	port, err := FreePort()
	require.NoError(t, err)
	require.Positive(t, port)
}
