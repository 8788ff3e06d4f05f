package settings

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	"github.com/adrg/xdg"
)

// folder is the name of this program's folder in the XDG directories.
const folder = "convls"

// Overrides are what the command line says of places; nil for what it does not
// say.
type Overrides struct {
	// DataDir is --data-dir.
	DataDir *string
	// Config is --config.
	Config *string
	// LogFile is --log-file.
	LogFile *string
}

// Paths are where things are. All are absolute, and none needs to exist.
type Paths struct {
	// DataDir is the store's folder: --data-dir, else CONVLS_DATA_DIR, else convls in
	// the XDG data directory.
	DataDir string
	// Config is the user's settings file: --config, else CONVLS_CONFIG, else
	// convls/config.toml in the XDG configuration directory. It is "" where no home is
	// known and nobody names the file.
	Config string
	// StateDir is convls in the XDG state directory.
	StateDir string
	// LogFile is --log-file, else in StateDir. Every store has one of its own, because
	// two processes that rotate one file lose entries.
	LogFile string
}

// FindPaths tells where things are, from an environment as os.Environ returns it
// and the command line. A place that is empty or relative is refused: it would be
// another one with each folder that an editor starts the server in.
func FindPaths(environ []string, o Overrides) (Paths, error) {
	env := environmentOf(environ)
	var p Paths
	standard, standardErr := env.directory("XDG_DATA_HOME", xdg.DataHome, ".local", "share")
	standard = filepath.Join(standard, folder)
	given, err := env.chosen("--data-dir", o.DataDir, variableDataDir)
	switch {
	case err != nil:
		return p, err
	case given != "":
		p.DataDir = filepath.Clean(given)
	case standardErr != nil:
		return p, fmt.Errorf("find the store's folder: %w; or name it with --data-dir or %s", standardErr, variableDataDir)
	default:
		p.DataDir = standard
	}
	if p.Config, err = env.config(o.Config); err != nil {
		return p, err
	}
	state, err := env.directory("XDG_STATE_HOME", xdg.StateHome, ".local", "state")
	if err != nil {
		// Where a store can be named and no home is known, the log goes beside it.
		if given == "" || env["XDG_STATE_HOME"] != "" {
			return p, fmt.Errorf("find the folder for logs: %w", err)
		}
		state, err = filepath.Dir(p.DataDir), nil
	}
	p.StateDir = filepath.Join(state, folder)
	name := "convls.log"
	if standardErr != nil || p.DataDir != standard {
		sum := sha256.Sum256([]byte(p.DataDir))
		name = "convls-" + hex.EncodeToString(sum[:4]) + ".log"
	}
	p.LogFile = filepath.Join(p.StateDir, name)
	if o.LogFile != nil {
		p.LogFile, err = absolute("--log-file", *o.LogFile)
	}
	return p, err
}

// config returns the path of the user's settings file; "" where no home is known
// and nobody named one.
func (e environment) config(override *string) (string, error) {
	given, err := e.chosen("--config", override, variableConfig)
	if err != nil || given != "" {
		return given, err
	}
	if e["XDG_CONFIG_HOME"] == "" && e.homeless() {
		return "", nil
	}
	return e.standardConfig()
}

// standardConfig returns where the settings file is if nobody says otherwise.
func (e environment) standardConfig() (string, error) {
	dir, err := e.directory("XDG_CONFIG_HOME", xdg.ConfigHome, ".config")
	if err != nil {
		return "", fmt.Errorf("find the settings file: %w", err)
	}
	return filepath.Join(dir, folder, "config.toml"), nil
}

// chosen returns the place that a flag, or else a variable, names; "" if neither
// does.
func (e environment) chosen(flag string, override *string, variable string) (string, error) {
	if override != nil {
		return absolute(flag, *override)
	}
	if value, ok := e[variable]; ok {
		return absolute(variable, value)
	}
	return "", nil
}

// absolute refuses a place that is empty or relative.
func absolute(source, path string) (string, error) {
	switch {
	case path == "":
		return "", fmt.Errorf("%s is empty: give an absolute path, or leave it out", source)
	case !filepath.IsAbs(path):
		hint := ""
		if dir, err := os.Getwd(); err == nil && path[0] != '~' {
			hint = ", for example " + filepath.Join(dir, path)
		}
		return "", fmt.Errorf("%s is %q, which is relative: give an absolute path%s", source, clip(path), hint)
	}
	return path, nil
}

// directory returns an XDG directory: what the variable says, else the place that
// the system has for it. Package xdg knows that place for every system, but reads
// the environment of this process, once, when it is loaded: for another
// environment the convention of Unix is followed, below that environment's HOME.
func (e environment) directory(variable, system string, unix ...string) (string, error) {
	if value := e[variable]; value != "" {
		return absolute(variable, value)
	}
	if e.homeless() {
		return "", fmt.Errorf("neither HOME nor %s is set", variable)
	}
	home := e["HOME"]
	if os.Getenv(variable) == "" && (home == "" || home == xdg.Home) {
		return absolute("the home folder", system)
	}
	return absolute("HOME", filepath.Join(append([]string{home}, unix...)...))
}

// homeless reports whether the environment names no home, where one is needed to
// know the user's directories.
func (e environment) homeless() bool {
	return e["HOME"] == "" && runtime.GOOS != "windows"
}
