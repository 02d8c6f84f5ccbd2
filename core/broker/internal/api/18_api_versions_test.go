package api

import (
	"encoding/hex"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

func TestApiVersions(t *testing.T) {
	table := Handlers(everything())
	s := serve(t, table)
	for v := int16(0); v <= 4; v++ {
		req := kmsg.NewPtrApiVersionsRequest()
		req.ClientSoftwareName, req.ClientSoftwareVersion = "test", "1.0-rc.1"
		resp := call[*kmsg.ApiVersionsResponse](connect(t, s), v, req)
		require.Zero(t, resp.ErrorCode)
		require.Len(t, resp.ApiKeys, len(table.Ranges()))
		for i, r := range table.Ranges() {
			require.Equal(t, kmsg.ApiVersionsResponseApiKey{ApiKey: r.Key, MinVersion: r.Min, MaxVersion: r.Max}, resp.ApiKeys[i])
		}
		require.Empty(t, resp.SupportedFeatures)
		epoch := int64(-1) // has no place below 3
		if v >= 3 {
			epoch = 0
		}
		require.Equal(t, epoch, resp.FinalizedFeaturesEpoch)
	}
}

func TestApiVersionsOfUnknownVersion(t *testing.T) {
	s := serve(t, Handlers(everything()))
	for _, version := range []string{"0005", "0063", "7fff", "ffff"} {
		c := connect(t, s)
		request, err := hex.DecodeString("00000011" + "0012" + version + "00000007" + "000178" + "00" + "0261" + "0262" + "00")
		require.NoError(t, err)
		c.write(request)
		require.Equal(t, strings.ReplaceAll("00000007 0023 00000001 0012 0000 0004", " ", ""), hex.EncodeToString(c.payload()))
		resp := call[*kmsg.ApiVersionsResponse](c, 0, kmsg.NewPtrApiVersionsRequest())
		require.Zero(t, resp.ErrorCode)
	}
}

func TestApiVersionsSoftware(t *testing.T) {
	s := serve(t, Handlers(everything()))
	for _, tc := range []struct {
		name, version string
		ok            bool
	}{
		{"test", "1.0", true}, {"a-b.c", "1.0-rc.1", true}, {"", "1", false}, {"test", "", false}, {"-test", "1", false},
		{"test.", "1", false}, {"te st", "1", false}, {"te_st", "1", false}, {"têst", "1", false}, {"a", ".", false},
	} {
		req := kmsg.NewPtrApiVersionsRequest()
		req.ClientSoftwareName, req.ClientSoftwareVersion = tc.name, tc.version
		resp := call[*kmsg.ApiVersionsResponse](connect(t, s), 3, req)
		if tc.ok {
			require.Zero(t, resp.ErrorCode)
		} else {
			require.Equal(t, kerr.InvalidRequest.Code, resp.ErrorCode)
			require.Empty(t, resp.ApiKeys)
		}
	}
}

func TestMalformedBodiesCloseTheConnection(t *testing.T) {
	s := serve(t, Handlers(everything()))
	for name, body := range map[string][]byte{"none": {}, "cut off": {9, 'a'}} {
		t.Run(name, func(t *testing.T) {
			c := connect(t, s)
			c.write(c.frame(18, 3, true, body))
			c.expectClosed()
		})
	}
	for _, tc := range []struct {
		key, version int16
		flexible     bool
		body         []byte
		closed       bool
	}{
		{2, 1, false, []byte{0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0}, false},
		{2, 1, false, []byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, true},
		{2, 6, true, []byte{0xff, 0xff, 0xff, 0xff, 0, 1, 0}, false},
		{2, 6, true, []byte{0xff, 0xff, 0xff, 0xff, 0, 0, 0}, true},
		{21, 2, true, []byte{1, 0, 0, 0, 0, 0}, false},
		{21, 2, true, []byte{0, 0, 0, 0, 0, 0}, true},
		{21, 2, true, []byte{1, 0, 0, 0, 0, 1, 5, 1, 9}, false}, // an unknown tag
	} {
		c := connect(t, s)
		c.write(c.frame(tc.key, tc.version, tc.flexible, tc.body))
		if tc.closed {
			c.expectClosed()
		} else {
			c.payload()
		}
	}
	c := connect(t, s)
	c.write(c.frame(18, 3, true, []byte{2, 'a', 2, 'b', 0, 1, 2, 3}))
	require.NotEmpty(t, c.payload(), "bytes behind the body are ignored")
}
