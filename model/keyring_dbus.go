//go:build !windows && !darwin

package model

import (
	"os"
	"path/filepath"
)

// hasKeyring reports whether there is a session bus to ask. Without one the
// library would try to start it.
func hasKeyring(env func(string) string) bool {
	if env("DBUS_SESSION_BUS_ADDRESS") != "" {
		return true
	}
	dir := env("XDG_RUNTIME_DIR")
	if dir == "" {
		return false
	}
	_, err := os.Stat(filepath.Join(dir, "bus"))
	return err == nil
}
