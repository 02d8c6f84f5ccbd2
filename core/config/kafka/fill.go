package kafka

import (
	"encoding"
	"math"
	"reflect"
	"strconv"
	"time"
)

// fill sets the fields of a struct that carry a `kafka` tag to the canonical values of the properties they name. A
// field of a type with a unit gets it from the end of the name: ".ms", ".minutes" and so on. What has no value stays
// as it is.
func fill(into any, get func(name string) (string, bool)) {
	v := reflect.ValueOf(into).Elem()
	for i := range v.NumField() {
		name := v.Type().Field(i).Tag.Get("kafka")
		if name == "" {
			continue
		}
		if value, ok := get(name); ok {
			setField(v.Field(i), name, value)
		}
	}
}

// setField stores one canonical value. Values were checked before, so nothing here can fail.
func setField(field reflect.Value, name, value string) {
	if u, ok := field.Addr().Interface().(encoding.TextUnmarshaler); ok {
		_ = u.UnmarshalText([]byte(value))
		return
	}
	if field.Type() == reflect.TypeFor[time.Duration]() {
		n, _ := strconv.ParseInt(value, 10, 64)
		field.SetInt(int64(saturate(n, unitOf(name))))
		return
	}
	switch field.Kind() {
	case reflect.Bool:
		field.SetBool(value == "true")
	case reflect.String:
		field.SetString(value)
	case reflect.Float64:
		f, _ := strconv.ParseFloat(value, 64)
		field.SetFloat(f)
	default:
		n, _ := strconv.ParseInt(value, 10, 64)
		field.SetInt(n)
	}
}

// unitOf reads the unit of a time from the end of a property's name.
func unitOf(name string) time.Duration {
	for suffix, unit := range map[string]time.Duration{".minutes": time.Minute, ".seconds": time.Second, ".hours": time.Hour} {
		if len(name) > len(suffix) && name[len(name)-len(suffix):] == suffix {
			return unit
		}
	}
	return time.Millisecond
}

// saturate multiplies without overflow: what is too long for a Duration (292 years) becomes the longest.
func saturate(n int64, unit time.Duration) time.Duration {
	switch {
	case n > math.MaxInt64/int64(unit):
		return math.MaxInt64
	case n < math.MinInt64/int64(unit):
		return math.MinInt64
	}
	return time.Duration(n) * unit
}
