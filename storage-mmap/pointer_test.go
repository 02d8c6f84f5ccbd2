package storagemmap

import "unsafe"

func pointer(b *byte) uintptr { return uintptr(unsafe.Pointer(b)) }
