package settings

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestFindPaths(t *testing.T) {
	home := []string{"HOME=/home/ada"}
	for _, tc := range []struct {
		name    string
		environ []string
		o       Overrides
		want    Paths
	}{
		{"a home alone", home, Overrides{},
			Paths{"/home/ada/.local/share/convls", "/home/ada/.config/convls/config.toml", "/home/ada/.local/state/convls", "/home/ada/.local/state/convls/convls.log"}},
		{"XDG", []string{"XDG_DATA_HOME=/d", "XDG_CONFIG_HOME=/c", "XDG_STATE_HOME=/s"}, Overrides{},
			Paths{"/d/convls", "/c/convls/config.toml", "/s/convls", "/s/convls/convls.log"}},
		{"an empty XDG variable is none", append([]string{"XDG_DATA_HOME="}, home...), Overrides{},
			Paths{"/home/ada/.local/share/convls", "/home/ada/.config/convls/config.toml", "/home/ada/.local/state/convls", "/home/ada/.local/state/convls/convls.log"}},
		{"variables", append([]string{"CONVLS_DATA_DIR=/data/", "CONVLS_CONFIG=/x/y.toml"}, home...), Overrides{},
			Paths{"/data", "/x/y.toml", "/home/ada/.local/state/convls", "/home/ada/.local/state/convls/convls-HASH.log"}},
		{"flags", append([]string{"CONVLS_DATA_DIR=/data", "CONVLS_CONFIG=/x/y.toml"}, home...), Overrides{new("/flag"), new("/flag.toml"), new("/var/log/x.log")},
			Paths{"/flag", "/flag.toml", "/home/ada/.local/state/convls", "/var/log/x.log"}},
		{"the usual folder, named", append([]string{"CONVLS_DATA_DIR=/home/ada/.local/share/convls/"}, home...), Overrides{},
			Paths{"/home/ada/.local/share/convls", "/home/ada/.config/convls/config.toml", "/home/ada/.local/state/convls", "/home/ada/.local/state/convls/convls.log"}},
		{"no home, but a folder", []string{"CONVLS_DATA_DIR=/srv/data"}, Overrides{},
			Paths{"/srv/data", "", "/srv/convls", "/srv/convls/convls-HASH.log"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := FindPaths(tc.environ, tc.o)
			if err != nil {
				t.Fatal(err)
			}
			got.LogFile = regexp.MustCompile(`convls-[0-9a-f]{8}\.log$`).ReplaceAllString(got.LogFile, "convls-HASH.log")
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestEveryStoreHasItsLog(t *testing.T) {
	seen := map[string]bool{}
	for _, dir := range []string{"/a", "/b", "/a/"} {
		p, err := FindPaths([]string{"HOME=/home/ada"}, Overrides{DataDir: &dir})
		if err != nil {
			t.Fatal(err)
		}
		seen[p.LogFile] = true
	}
	if len(seen) != 2 {
		t.Errorf("got %v", seen)
	}
}

func TestPathsRefused(t *testing.T) {
	home := "HOME=/home/ada"
	for _, tc := range []struct {
		name    string
		environ []string
		o       Overrides
		want    string
	}{
		{"a relative flag", []string{home}, Overrides{DataDir: new("data")}, `--data-dir is "data", which is relative: give an absolute path, for example /`},
		{"an empty flag", []string{home}, Overrides{DataDir: new("")}, "--data-dir is empty"},
		{"a tilde", []string{home}, Overrides{DataDir: new("~/data")}, `--data-dir is "~/data", which is relative: give an absolute path`},
		{"a relative variable", []string{home, "CONVLS_DATA_DIR=./data"}, Overrides{}, "CONVLS_DATA_DIR is"},
		{"an empty variable", []string{home, "CONVLS_DATA_DIR="}, Overrides{}, "CONVLS_DATA_DIR is empty"},
		{"a relative XDG variable", []string{home, "XDG_DATA_HOME=data"}, Overrides{}, "XDG_DATA_HOME is"},
		{"a relative state", []string{home, "XDG_STATE_HOME=state"}, Overrides{}, "XDG_STATE_HOME is"},
		{"a relative configuration", []string{home, "XDG_CONFIG_HOME=c"}, Overrides{}, "XDG_CONFIG_HOME is"},
		{"a relative file", []string{home, "CONVLS_CONFIG=c.toml"}, Overrides{}, "CONVLS_CONFIG is"},
		{"an empty file flag", []string{home}, Overrides{Config: new("")}, "--config is empty"},
		{"a relative log", []string{home}, Overrides{LogFile: new("x.log")}, "--log-file is"},
		{"a relative home", []string{"HOME=ada"}, Overrides{}, "HOME is"},
		{"nothing known", nil, Overrides{}, "neither HOME nor XDG_DATA_HOME is set; or name it with --data-dir or CONVLS_DATA_DIR"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := FindPaths(tc.environ, tc.o)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
}

// TestThisProcess checks that package xdg, which knows every system, is asked when
// the environment is this process's.
func TestThisProcess(t *testing.T) {
	t.Setenv("XDG_DATA_HOME", "")
	t.Setenv("CONVLS_DATA_DIR", "/unused")
	p, err := FindPaths([]string{"HOME=" + os.Getenv("HOME")}, Overrides{})
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasSuffix(p.DataDir, folder) || !filepath.IsAbs(p.DataDir) || strings.Contains(p.DataDir, "unused") {
		t.Errorf("got %s", p.DataDir)
	}
}
