// Package quiet reads and writes a few bytes of a descriptor that doesn't block, without telling Go's scheduler.
//
// The scheduler is told of system calls because they may take long, and others shall run meanwhile. For that it wakes a thread that watches, when
// all were asleep: an eighth of what a broker needs for a single small request, and a third of what it needs to stay a member of an idle
// cluster. None of the calls made here takes long. The race detector learns from the usual calls what happens before what, so with it, and
// on systems other than Linux, these are the usual ones.
//
// What to do when nothing can be read or written is not its business: that is for the runtime's poller, through [syscall.RawConn].
package quiet
