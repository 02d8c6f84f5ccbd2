package storagemmap

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/barnabas-mq/barnabas/core/config"
	"github.com/barnabas-mq/barnabas/core/config/configtest"
	"github.com/barnabas-mq/barnabas/core/plugin"
	"github.com/barnabas-mq/barnabas/core/storage"
)

func TestOptions(t *testing.T) {
	configtest.CheckStruct(t, DefaultOptions())
	for text, fault := range map[string]string{
		"{mmap: {copy_below: 0, min_growth: 4KiB, max_growth: 4KiB}}": "",
		"{mmap: {copy_below: -1}}":                                    "copy_below",
		"{mmap: {min_growth: 100}}":                                   "min_growth",
		"{mmap: {min_growth: 2MiB, max_growth: 1MiB}}":                "max_growth",
		"{mmap: {max_growth: 2GiB}}":                                  "max_growth",
		"{mmap: {max_maps: -1}}":                                      "max_maps",
		"{mmap: {growth: 2MiB}}":                                      "growth",
	} {
		err := choose(t, "storage: "+text)
		if fault == "" {
			require.NoError(t, err, text)
		} else {
			require.ErrorContains(t, err, fault, text)
		}
	}
}

// TestReadme holds that every YAML example of the README is valid.
func TestReadme(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	require.NoError(t, err)
	blocks := strings.Split(string(readme), "```yaml\n")[1:]
	require.NotEmpty(t, blocks)
	for _, block := range blocks {
		text, _, _ := strings.Cut(block, "```")
		require.NoError(t, choose(t, text), text)
	}
	for _, field := range config.Fields(DefaultOptions()) {
		require.Contains(t, string(readme), "| `"+field.Name+"` | "+field.Default+" |")
	}
}

// choose builds the storage that the YAML text asks for.
func choose(t *testing.T, text string) error {
	t.Helper()
	registry, err := plugin.NewRegistry("storage", NewFactory())
	require.NoError(t, err)
	root, err := config.Parse("test.yaml", []byte(text))
	require.NoError(t, err)
	section, _ := root.Sub("storage")
	choice, err := registry.Choose(section)
	if err != nil {
		return err
	}
	_, err = choice.New(storage.Settings{})
	return err
}
