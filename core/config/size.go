package config

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// ByteSize is a number of bytes, written in YAML as a plain number or with a unit: "64MiB" (powers of 1024: KiB, MiB,
// GiB, TiB) or "64MB" (powers of 1000: kB or KB, MB, GB, TB). It is never negative.
type ByteSize int64

type unit struct {
	suffix string
	size   int64
}

// units lists the suffixes, the largest first of each family so that String finds the shortest form.
func units() []unit {
	return []unit{
		{"TiB", 1 << 40}, {"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10},
		{"TB", 1e12}, {"GB", 1e9}, {"MB", 1e6}, {"KB", 1e3}, {"kB", 1e3}, {"B", 1},
	}
}

// UnmarshalText reads the forms that [ByteSize] names.
func (b *ByteSize) UnmarshalText(text []byte) error {
	number, factor := string(text), int64(1)
	for _, u := range units() {
		if rest, ok := strings.CutSuffix(number, u.suffix); ok {
			number, factor = strings.TrimRight(rest, " "), u.size
			break
		}
	}
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil || n < 0 || strings.HasPrefix(number, "+") {
		return fmt.Errorf(`want a size such as "64MiB" or a number of bytes, not %q`, shorten(string(text)))
	}
	if n > math.MaxInt64/factor {
		return fmt.Errorf("the size %q does not fit into 63 bits", shorten(string(text)))
	}
	*b = ByteSize(n * factor)
	return nil
}

// MarshalText gives the form of [ByteSize.String]; UnmarshalText reads it back.
func (b ByteSize) MarshalText() ([]byte, error) { return []byte(b.String()), nil }

// String gives the size in the largest binary unit that divides it, such as "64MiB", else the number of bytes.
func (b ByteSize) String() string {
	for _, u := range units()[:4] {
		if b != 0 && int64(b)%u.size == 0 {
			return strconv.FormatInt(int64(b)/u.size, 10) + u.suffix
		}
	}
	return strconv.FormatInt(int64(b), 10)
}
