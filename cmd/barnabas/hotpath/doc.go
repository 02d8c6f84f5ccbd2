// Package hotpath measures the requests that brokers get all day, Produce and Fetch, through the whole of a broker in this process
// and over each of the storages: benchmarks, and what each may allocate. It has tests only.
//
//	go test -run '^$' -bench . -benchmem ./cmd/barnabas/hotpath
//
// What isn't its business: loads of many connections and other brokers to compare with (package bench, and cmd/dev/compare), and
// single functions, which have benchmarks beside them.
package hotpath
