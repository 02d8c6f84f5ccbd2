package acceptance

import (
	"reflect"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// fill makes a request that is full: one entry in every array, and a name in every text.
func fill(req kmsg.Request, name string) {
	fillValue(reflect.ValueOf(req).Elem(), name)
}

func fillValue(v reflect.Value, name string) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(name)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fillValue(v.Elem(), name)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fillValue(v.Index(0), name)
	case reflect.Struct:
		if d, ok := v.Addr().Interface().(interface{ Default() }); ok {
			d.Default()
		}
		for i := range v.NumField() {
			if f := v.Field(i); f.CanSet() && v.Type().Field(i).Name != "UnknownTags" && v.Type().Field(i).Name != "Version" {
				fillValue(f, name)
			}
		}
	}
}
