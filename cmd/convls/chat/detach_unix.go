//go:build unix

package chat

import (
	"os/exec"
	"syscall"
)

// detach puts the server into a process group of its own: Ctrl-C in the terminal
// is for the chat, which cancels the turn, and must not end the server.
func detach(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }
