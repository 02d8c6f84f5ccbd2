package acceptance

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// TestMain builds the program once, into a folder that the environment names to the tests.
func TestMain(m *testing.M) {
	code, err := withProgram(m.Run)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func withProgram(run func() int) (int, error) {
	dir, err := os.MkdirTemp("", "barnabas-acceptance-")
	if err != nil {
		return 0, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	out, err := exec.Command("go", "build", "-o", filepath.Join(dir, "barnabas"), "..").CombinedOutput()
	if err != nil {
		return 0, fmt.Errorf("build: %w\n%s", err, out)
	}
	if err := os.Setenv(folderVariable, dir); err != nil {
		return 0, err
	}
	return run(), nil
}

const folderVariable = "ACCEPTANCE_FOLDER"

// program is the path of the binary under test.
func program() string { return filepath.Join(os.Getenv(folderVariable), "barnabas") }
