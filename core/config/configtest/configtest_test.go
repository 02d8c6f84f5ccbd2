package configtest_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/barnabas-mq/barnabas/core/config"
	"github.com/barnabas-mq/barnabas/core/config/configtest"
)

type good struct {
	Wait   time.Duration   `yaml:"wait_time" doc:"d"`
	Size   config.ByteSize `yaml:"size" doc:"d"`
	Words  []string        `yaml:"words" doc:"d"`
	Maybe  *int            `yaml:"maybe" doc:"d"`
	Number string          `yaml:"number" doc:"d"`
	Inner  struct {
		On bool `yaml:"on" doc:"d"`
	} `yaml:"inner"`
}

type base struct {
	A int `yaml:"a" doc:"d"`
}

type refusing struct {
	A int `yaml:"a" doc:"d"`
}

func (r refusing) Validate() error { return errors.New("a is required") }

func TestCheckStruct(t *testing.T) {
	configtest.CheckStruct(t, good{Wait: time.Minute, Size: 3 << 20, Words: []string{"1", "true", "x: y"}, Number: "5"})
	configtest.CheckStruct(t, &good{})
	configtest.CheckStruct(t, struct{}{})
}

func TestFaultsAreFound(t *testing.T) {
	tests := []struct {
		name string
		v    any
		want string
	}{
		{"no tag", struct{ A int }{}, "A: has no yaml tag"},
		{"no doc", struct {
			A int `yaml:"a"`
		}{}, "A: has no doc tag"},
		{"camel case", struct {
			A int `yaml:"segmentSize" doc:"d"`
		}{}, "is not in snake_case"},
		{"twice", struct {
			A int `yaml:"a" doc:"d"`
			B int `yaml:"a" doc:"d"`
		}{}, "is used twice"},
		{"embedded", struct{ base }{}, "embedded"},
		{"inside", struct {
			In struct{ A int } `yaml:"in"`
		}{}, "In.A: has no yaml tag"},
		{"a channel", struct {
			A chan int `yaml:"a" doc:"d"`
		}{}, "cannot be configured"},
		{"a struct it refuses", refusing{}, "the defaults are refused"},
		{"a negative size", good{Size: -1}, "refused"},
		{"no struct", 5, "is not a struct"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			faults := configtest.Faults(tt.v)
			if assert.NotEmpty(t, faults) {
				assert.Contains(t, faults[0], tt.want)
			}
		})
	}
}
