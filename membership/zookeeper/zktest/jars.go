package zktest

import (
	"bytes"
	"context"
	"crypto/sha256"
	_ "embed" // the pom and the log configuration
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

//go:embed zookeeper.pom.xml
var pom []byte // immutable

//go:embed logback.xml
var logback []byte // immutable

// Version is the release of ZooKeeper that the pom names: the one that Apache Kafka 3.9 comes with.
const Version = "3.8.4"

// Cache is the folder where what was fetched is kept: .cache beside the go.mod above the working directory, otherwise
// "barnabas" in the user's cache folder.
func Cache() (string, error) {
	dir, err := os.Getwd()
	for ; err == nil; dir = filepath.Dir(dir) {
		if _, missing := os.Stat(filepath.Join(dir, "go.mod")); missing == nil {
			return filepath.Join(dir, ".cache"), nil
		}
		if dir == filepath.Dir(dir) {
			break
		}
	}
	user, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("no folder to keep ZooKeeper's jars in: %w", err)
	}
	return filepath.Join(user, "barnabas"), nil
}

// Jars returns the folder of ZooKeeper's jars: lib in $ZOOKEEPER_HOME when that is set, otherwise what Maven fetches into cache,
// once. Several processes may do so at the same time.
func Jars(ctx context.Context, cache string) (string, error) {
	if home := os.Getenv("ZOOKEEPER_HOME"); home != "" {
		lib := filepath.Join(home, "lib")
		found, err := filepath.Glob(filepath.Join(lib, "zookeeper-[0-9]*.jar"))
		if err != nil || len(found) == 0 {
			return "", fmt.Errorf("ZOOKEEPER_HOME is %s, but %s has no ZooKeeper", home, lib)
		}
		return lib, nil
	}
	sum := sha256.Sum256(pom)
	dir := filepath.Join(cache, "jars", "zookeeper-"+Version+"-"+hex.EncodeToString(sum[:6]))
	lib := filepath.Join(dir, "lib")
	if _, err := os.Stat(lib); err == nil {
		return lib, nil
	}
	if _, err := exec.LookPath("mvn"); err != nil {
		return "", errors.New("mvn is missing, which fetches ZooKeeper: install Maven, or set ZOOKEEPER_HOME to a ZooKeeper release")
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return "", err
	}
	// Into a folder of its own first, so that what is there under the final name is always complete.
	filling, err := os.MkdirTemp(filepath.Dir(dir), "filling-*")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(filling)
	if err := errors.Join(os.Chmod(filling, 0o755), os.WriteFile(filepath.Join(filling, "pom.xml"), pom, 0o644)); err != nil {
		return "", err
	}
	cmd := exec.CommandContext(ctx, "mvn", "-q", "-B", "dependency:copy-dependencies", "-DoutputDirectory=lib")
	cmd.Dir = filling
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("fetch ZooKeeper: %w\n%s", err, bytes.TrimSpace(out))
	}
	if err := os.Rename(filling, dir); err != nil {
		if _, have := os.Stat(lib); have == nil { // another process was faster
			return lib, nil
		}
		return "", err
	}
	return lib, nil
}
