package znodes

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"reflect"
	"slices"
)

// Step is the nodes after one step of the script.
type Step struct {
	Name  string `json:"name"`
	Nodes Tree   `json:"nodes"`
}

// Recording is what a cluster wrote.
type Recording struct {
	Of    string `json:"of"` // "kafka 3.9.1"
	Steps []Step `json:"steps"`
}

// Load reads a recording.
func Load(file string) (Recording, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return Recording{}, err
	}
	var r Recording
	if err := json.Unmarshal(b, &r); err != nil {
		return Recording{}, fmt.Errorf("%s: %w", file, err)
	}
	return r, nil
}

// Save writes a recording in a form whose changes can be read.
func (r Recording) Save(file string) error {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", " ")
	if err := e.Encode(r); err != nil {
		return err
	}
	return os.WriteFile(file, b.Bytes(), 0o644)
}

// Compare lists how a cluster's nodes differ from those that are wanted. A difference that stays from one step to the next is
// told once.
func Compare(want, got Recording) []string {
	var all []string
	told := map[string]bool{}
	for i, w := range want.Steps {
		if i >= len(got.Steps) || got.Steps[i].Name != w.Name {
			return append(all, fmt.Sprintf("step %q is missing", w.Name))
		}
		for _, d := range compareTrees(w.Nodes, got.Steps[i].Nodes) {
			if !told[d] {
				told[d] = true
				all = append(all, "after "+w.Name+": "+d)
			}
		}
	}
	for _, more := range got.Steps[min(len(want.Steps), len(got.Steps)):] {
		all = append(all, fmt.Sprintf("step %q is not wanted", more.Name))
	}
	return all
}

func compareTrees(want, got Tree) (all []string) {
	paths := maps.Clone(want)
	maps.Copy(paths, got)
	for _, path := range slices.Sorted(maps.Keys(paths)) {
		w, wanted := want[path]
		g, there := got[path]
		switch {
		case !there:
			all = append(all, path+" is missing")
		case !wanted:
			all = append(all, fmt.Sprintf("%s is not wanted; it has %s", path, g.Data))
		default:
			all = append(all, compareNodes(path, w, g)...)
		}
	}
	return all
}

func compareNodes(path string, want, got Node) (all []string) {
	if want.Null != got.Null && want.Data == got.Data {
		all = append(all, fmt.Sprintf("%s: no data at all: %v, want %v", path, got.Null, want.Null))
	}
	if want.Ephemeral != got.Ephemeral {
		all = append(all, fmt.Sprintf("%s: ephemeral: %v, want %v", path, got.Ephemeral, want.Ephemeral))
	}
	if want.Version != got.Version {
		all = append(all, fmt.Sprintf("%s: the node's version is %d, want %d", path, got.Version, want.Version))
	}
	if want.ACL != got.ACL {
		all = append(all, fmt.Sprintf("%s: access control: %s, want %s", path, got.ACL, want.ACL))
	}
	var w, g map[string]any
	if json.Unmarshal([]byte(want.Data), &w) != nil || json.Unmarshal([]byte(got.Data), &g) != nil {
		if want.Data != got.Data {
			all = append(all, fmt.Sprintf("%s: %q, want %q", path, got.Data, want.Data))
		}
		return all
	}
	fields := maps.Clone(w)
	maps.Copy(fields, g)
	for _, f := range slices.Sorted(maps.Keys(fields)) {
		wv, wanted := w[f]
		gv, there := g[f]
		switch {
		case !there:
			all = append(all, fmt.Sprintf("%s: field %s is missing; want %v", path, f, wv))
		case !wanted:
			all = append(all, fmt.Sprintf("%s: field %s is not wanted; it is %v", path, f, gv))
		case !reflect.DeepEqual(wv, gv):
			all = append(all, fmt.Sprintf("%s: field %s is %v, want %v", path, f, gv, wv))
		}
	}
	return all
}
