package archtest

import (
	"fmt"
	"slices"
	"strings"
)

// contracts are the folders of the five contracts.
func contracts() []string {
	return []string{"core/storage", "core/partitioner", "core/election", "core/compression", "core/offsets"}
}

// contractImports: contract packages import the standard library, core/plugin, core/config and core/record.
func contractImports(t *Tree) (faults []string, applied int) {
	for _, dir := range contracts() {
		found := false
		for _, f := range t.Files {
			if f.Dir != dir || f.Test {
				continue
			}
			found = true
			for _, imported := range f.Imports {
				house, ok := inHouse(imported)
				if isStandard(imported) || ok && (house == "core/plugin" || house == "core/config" || house == "core/record") {
					continue
				}
				faults = append(faults, fmt.Sprintf("%s imports %s", f.Path, imported))
			}
		}
		if found {
			applied++
		} else {
			faults = append(faults, fmt.Sprintf("the contract %s is gone: take it from this rule", dir))
		}
	}
	return faults, applied
}

// implementations are the folders that hold them.
func implementations() []string {
	return []string{"plugins", "storage-mmap", "storage-sendfile", "membership"}
}

// coreImports: core imports no implementation, no command, and none of the libraries that implementations are made of.
func coreImports(t *Tree) (faults []string, applied int) {
	foreign := []string{
		"github.com/spf13/viper", "github.com/spf13/cobra", "github.com/hashicorp/go-plugin", "github.com/hashicorp/memberlist",
		"github.com/hashicorp/raft", "github.com/go-zookeeper/zk", "github.com/klauspost/compress", "github.com/pierrec/lz4",
		"github.com/golang/snappy", "compress",
	}
	for _, f := range t.Files {
		if !below(f.Dir, "core") || f.Test {
			continue
		}
		applied++
		for _, imported := range f.Imports {
			house, ok := inHouse(imported)
			if ok && !below(house, "core") || below(imported, foreign...) {
				faults = append(faults, fmt.Sprintf("%s imports %s", f.Path, imported))
			}
		}
	}
	return faults, applied
}

// implementationImports: an implementation imports core, but not core/broker, and what lies beside or below it in its
// own folder; never another implementation. The kits may be used by all.
func implementationImports(t *Tree) (faults []string, applied int) {
	for _, f := range t.Files {
		if !below(f.Dir, implementations()...) || slices.Contains(composers(), f.Path) {
			continue
		}
		applied++
		for _, imported := range f.Imports {
			house, ok := inHouse(imported)
			switch {
			case !ok, below(house, "core") && !below(house, "core/broker"), below(house, kits()...), below(house, "plugins/remote"):
			case below(house, f.Dir), below(f.Dir, house) && strings.Contains(house, "/"):
			case below(house, implementationOf(f.Dir)):
			default:
				faults = append(faults, fmt.Sprintf("%s imports %s", f.Path, imported))
			}
		}
	}
	return faults, applied
}

// kits are what lies among the implementations without being one: what plug-ins and tests are made with.
func kits() []string { return []string{"plugins/sdk", "membership/zookeeper/zktest"} }

// implementationOf gives the folder of the implementation that a folder belongs to: plugins/compression/gzip/internal
// belongs to plugins/compression/gzip, membership/standalone to itself, storage-mmap/x to storage-mmap.
func implementationOf(dir string) string {
	depth := 1
	switch {
	case below(dir, "plugins"):
		depth = 3
	case below(dir, "membership"):
		depth = 2
	}
	parts := strings.Split(dir, "/")
	return strings.Join(parts[:min(depth, len(parts))], "/")
}

// composers are the files that name implementations: the program's, and that of brokers in tests, which is a kit of its own so
// that whoever tests a plug-in needn't compose a broker.
func composers() []string {
	return []string{"cmd/barnabas/components.go", "plugins/sdk/testbroker/testbroker.go"}
}

// namedByComposers: apart from tests and the implementations themselves, only the composers import implementations.
func namedByComposers(t *Tree) (faults []string, applied int) {
	used := map[string]bool{}
	for _, f := range t.Files {
		composes := slices.Contains(composers(), f.Path)
		if f.Test || below(f.Dir, implementations()...) && !composes {
			continue
		}
		for _, imported := range f.Imports {
			house, ok := inHouse(imported)
			if !ok || !below(house, implementations()...) || below(house, kits()...) {
				continue
			}
			if composes {
				applied++
				used[f.Path] = true
			} else {
				faults = append(faults, fmt.Sprintf("%s imports %s, which is for %s", f.Path, imported, strings.Join(composers(), " and ")))
			}
		}
	}
	for _, path := range composers() {
		if !used[path] {
			faults = append(faults, fmt.Sprintf("%s names no implementation any more: take it from this rule", path))
		}
	}
	return faults, applied
}

// brokerImports: wire, partition, group, txn, controller and replication don't know api; the coordinators and the
// controller don't know connections.
func brokerImports(t *Tree) (faults []string, applied int) {
	const rooms = "core/broker/internal/"
	for _, f := range t.Files {
		room, ok := strings.CutPrefix(f.Dir, rooms)
		if !ok || f.Test {
			continue
		}
		room, _, _ = strings.Cut(room, "/")
		var forbidden []string
		switch room {
		case "group", "txn", "controller":
			forbidden = []string{Module + "/" + rooms + "api", Module + "/" + rooms + "wire", "net"}
		case "wire", "partition", "replication":
			forbidden = []string{Module + "/" + rooms + "api"}
		default:
			continue
		}
		applied++
		for _, imported := range f.Imports {
			for _, no := range forbidden {
				if imported == no || no != "net" && below(imported, no) {
					faults = append(faults, fmt.Sprintf("%s imports %s", f.Path, imported))
				}
			}
		}
	}
	return faults, applied
}
