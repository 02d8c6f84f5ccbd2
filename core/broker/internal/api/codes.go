package api

import (
	"reflect"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/core/broker/internal/meter"
)

// This file counts the error codes in responses. Each place in the handlers that sets one would have been another to forget; so
// the fields of the response are looked through instead, where kmsg's types have them.

// codePlaces says where error codes stand in a struct of one type.
type codePlaces struct {
	codes []int // the fields that are error codes
	below []codeField
}

// codeField is a field with structs in it that have error codes: one struct, or a slice of them.
type codeField struct {
	index  int
	list   bool
	places *codePlaces
}

// findCodes finds the places of error codes in a type of kmsg's; nil when there are none. Such types don't contain themselves.
func findCodes(t reflect.Type) *codePlaces {
	var found codePlaces
	for i := range t.NumField() {
		f := t.Field(i)
		switch {
		case f.Name == "ErrorCode" && f.Type.Kind() == reflect.Int16:
			found.codes = append(found.codes, i)
		case f.Type.Kind() == reflect.Struct:
			if p := findCodes(f.Type); p != nil {
				found.below = append(found.below, codeField{index: i, places: p})
			}
		case f.Type.Kind() == reflect.Slice && f.Type.Elem().Kind() == reflect.Struct:
			if p := findCodes(f.Type.Elem()); p != nil {
				found.below = append(found.below, codeField{index: i, list: true, places: p})
			}
		}
	}
	if len(found.codes) == 0 && len(found.below) == 0 {
		return nil
	}
	return &found
}

// each calls f with every error code in a struct.
func (p *codePlaces) each(v reflect.Value, f func(code int16)) {
	for _, i := range p.codes {
		f(int16(v.Field(i).Int()))
	}
	for _, b := range p.below {
		field := v.Field(b.index)
		if !b.list {
			b.places.each(field, f)
			continue
		}
		for i := range field.Len() {
			b.places.each(field.Index(i), f)
		}
	}
}

// countCodes counts the error codes in a response.
func (r *Request) countCodes(resp kmsg.Response) {
	if r.row == nil || r.row.codes == nil {
		return
	}
	kind := meter.Kind(r.Key())
	r.row.codes.each(reflect.ValueOf(resp).Elem(), func(code int16) { r.meter.Failed(kind, code) })
}
