package acceptance

import (
	"net"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/cmd/dev/peers"
	"github.com/barnabas-mq/barnabas/cmd/dev/target"
)

// freePorts are n ports, all different.
func freePorts(t *testing.T, n int) (ports []string) {
	t.Helper()
	seen := map[int]bool{}
	for len(ports) < n {
		port, err := peers.FreePort()
		require.NoError(t, err)
		if !seen[port] {
			seen[port] = true
			ports = append(ports, strconv.Itoa(port))
		}
	}
	return ports
}

// brokers are the brokers that every request which names them names, with every version.
func (c *conn) brokers() (addrs []string) {
	c.t.Helper()
	for version := range int16(13) {
		resp := ask[*kmsg.MetadataResponse](c, version, kmsg.NewPtrMetadataRequest())
		require.NotEmpty(c.t, resp.Brokers, "Metadata v%d", version)
		for _, b := range resp.Brokers {
			addrs = append(addrs, net.JoinHostPort(b.Host, strconv.Itoa(int(b.Port))))
		}
	}
	c.coordinator("g")
	for version := range int16(5) {
		req := kmsg.NewPtrFindCoordinatorRequest()
		req.CoordinatorKey, req.CoordinatorKeys = "g", []string{"g"}
		resp := ask[*kmsg.FindCoordinatorResponse](c, version, req)
		host, port := resp.Host, resp.Port
		if version >= 4 {
			host, port = resp.Coordinators[0].Host, resp.Coordinators[0].Port
		}
		addrs = append(addrs, net.JoinHostPort(host, strconv.Itoa(int(port))))
	}
	for _, b := range ask[*kmsg.DescribeClusterResponse](c, 0, kmsg.NewPtrDescribeClusterRequest()).Brokers {
		addrs = append(addrs, net.JoinHostPort(b.Host, strconv.Itoa(int(b.Port))))
	}
	return addrs
}

// TestA29AdvertisedListeners: each listener tells its own address, which can be connected to, and what can't work is
// refused at the start.
//
// redpanda-data/redpanda#12395, redpanda#123, redpanda#3588, segmentio/kafka-go#923, tulios/kafkajs#1042
func TestA29AdvertisedListeners(t *testing.T) {
	t.Parallel()
	t.Run("all addresses", func(t *testing.T) {
		t.Parallel()
		for _, host := range []string{"0.0.0.0", "", "[::]"} {
			port := freePorts(t, 1)[0]
			n := beginAt(t, net.JoinHostPort("127.0.0.1", port), props{"listeners": "PLAINTEXT://" + host + ":" + port})
			for _, addr := range n.dial().brokers() {
				advertised, p, err := net.SplitHostPort(addr)
				require.NoError(t, err)
				assert.Equal(t, port, p)
				assert.NotContains(t, []string{"", "0.0.0.0", "::", "[::]"}, advertised, "listening at %q", host)
			}
		}
	})
	t.Run("two listeners", func(t *testing.T) {
		t.Parallel()
		ports := freePorts(t, 2)
		n := beginAt(t, "127.0.0.1:"+ports[0], props{
			"listeners":                      "INSIDE://127.0.0.1:" + ports[0] + ",OUTSIDE://127.0.0.1:" + ports[1],
			"advertised.listeners":           "OUTSIDE://broker.example.com:443,INSIDE://127.0.0.1:" + ports[0],
			"listener.security.protocol.map": "INSIDE:PLAINTEXT,OUTSIDE:PLAINTEXT",
		})
		for _, addr := range n.dial().brokers() {
			assert.Equal(t, "127.0.0.1:"+ports[0], addr)
		}
		for _, addr := range dialTo(t, "127.0.0.1:"+ports[1]).brokers() {
			assert.Equal(t, "broker.example.com:443", addr)
		}
	})
	t.Run("a listener that isn't advertised", func(t *testing.T) {
		t.Parallel()
		ports := freePorts(t, 2)
		n := beginAt(t, "127.0.0.1:"+ports[0], props{
			"listeners":                      "INSIDE://127.0.0.1:" + ports[0] + ",HIDDEN://127.0.0.1:" + ports[1],
			"advertised.listeners":           "INSIDE://127.0.0.1:" + ports[0],
			"listener.security.protocol.map": "INSIDE:PLAINTEXT,HIDDEN:PLAINTEXT",
		})
		n.dial().createTopic("t", 1, nil)
		hidden := dialTo(t, "127.0.0.1:"+ports[1])
		for version := int16(1); version <= 12; version++ {
			topic, name := kmsg.NewMetadataRequestTopic(), "t"
			topic.Topic = &name
			req := kmsg.NewPtrMetadataRequest()
			req.Topics = append(req.Topics, topic)
			got := ask[*kmsg.MetadataResponse](hidden, version, req).Topics[0]
			want := int16(72) // LISTENER_NOT_FOUND
			if version < 6 {
				want = 5
			}
			require.Len(t, got.Partitions, 1)
			assert.Equal(t, want, got.Partitions[0].ErrorCode, "v%d", version)
			assert.Equal(t, int32(-1), got.Partitions[0].Leader, "v%d", version)
		}
	})
	t.Run("refused", func(t *testing.T) {
		t.Parallel()
		for name, c := range map[string]struct {
			p    props
			says string
		}{
			"advertised 0.0.0.0":    {props{"advertised.listeners": "PLAINTEXT://0.0.0.0:9092"}, "advertised.listeners"},
			"advertised ::":         {props{"advertised.listeners": "PLAINTEXT://[::]:9092"}, "advertised.listeners"},
			"advertised port 0":     {props{"advertised.listeners": "PLAINTEXT://localhost:0"}, "advertised.listeners"},
			"advertised port 70000": {props{"advertised.listeners": "PLAINTEXT://localhost:70000"}, "advertised.listeners"},
			"advertised unknown":    {props{"advertised.listeners": "OTHER://localhost:9092", "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,OTHER:PLAINTEXT"}, "OTHER"},
			"unknown protocol":      {props{"listeners": "OTHER://127.0.0.1:0"}, "OTHER"},
			"two on one port":       {props{"listeners": "A://127.0.0.1:9092,B://127.0.0.1:9092", "listener.security.protocol.map": "A:PLAINTEXT,B:PLAINTEXT"}, "9092"},
			"one name twice":        {props{"listeners": "PLAINTEXT://127.0.0.1:9092,PLAINTEXT://127.0.0.1:9093"}, "PLAINTEXT"},
			"port 70000":            {props{"listeners": "PLAINTEXT://127.0.0.1:70000"}, "70000"},
			"no port":               {props{"listeners": "PLAINTEXT://127.0.0.1"}, "listeners"},
			"no listeners":          {props{"listeners": `""`}, "listeners"},
			"an address of no host": {props{"listeners": "PLAINTEXT://192.0.2.1:0"}, "192.0.2.1"},
		} {
			said := refused(t, target.Options{Dir: t.TempDir(), Properties: c.p})
			assert.Contains(t, said, c.says, name)
		}
	})
}

// beginAt starts a broker whose listeners the test names; addr is one of them.
func beginAt(t *testing.T, addr string, p props) *node {
	t.Helper()
	return beginWith(t, target.Options{Dir: t.TempDir(), Addr: addr, Properties: p})
}
