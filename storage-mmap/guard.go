package storagemmap

import (
	"runtime"
	"runtime/debug"
	"unsafe"

	"github.com/barnabas-mq/barnabas/core/storage"
)

// guardedCopy copies src to dst, one of which is mapped memory, and returns storage.ErrFault when a page of it isn't there
// any more: somebody shortened the file, or the device failed. How much was copied by then is unknown. Without the guard
// such an access ends the process with SIGBUS.
func guardedCopy(dst, src []byte) (err error) {
	defer func(before bool) {
		debug.SetPanicOnFault(before)
		caught := recover()
		if caught == nil {
			return
		}
		if fault, ok := caught.(interface {
			runtime.Error
			Addr() uintptr
		}); ok && (within(dst, fault.Addr()) || within(src, fault.Addr())) {
			err = storage.ErrFault
			return
		}
		panic(caught)
	}(debug.SetPanicOnFault(true))
	copy(dst, src)
	return nil
}

// within says whether the address lies in b. The copy of the runtime may touch whole words around it.
func within(b []byte, address uintptr) bool {
	start := uintptr(unsafe.Pointer(unsafe.SliceData(b)))
	return address+64 >= start && address < start+uintptr(len(b))+64
}
