package model

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/zalando/go-keyring"

	"convls/protocol"
)

// KeySource finds the key of a provider. A key is for one base URL: a source must
// not give the key of one address for another. Keys are held in memory only and
// are never logged.
type KeySource interface {
	// Key returns the key, or "" if there is none. An error says why a key could not
	// be had, and holds none.
	Key(ctx context.Context, r KeyRequest) (string, error)
}

// KeyRequest says which key is wanted.
type KeyRequest struct {
	Provider string
	BaseURL  string
	Settings protocol.ProviderSettings
	// Rejected says that the key that was given last was refused: another one is
	// wanted, for example by asking anew.
	Rejected bool
	// Quiet says that nobody waits for what the key is for: no person is asked.
	Quiet bool
}

// DefaultKeyEnv returns the variable in which a provider's key is looked for if
// the setting api_key_env does not name one: OPENAI_API_KEY for openai.
func DefaultKeyEnv(provider string) string {
	name := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z':
			return r - 'a' + 'A'
		case r >= 'A' && r <= 'Z', r >= '0' && r <= '9':
			return r
		}
		return '_'
	}, provider)
	return name + "_API_KEY"
}

const (
	// KeyringService is the service under which keys are in the system's keyring.
	KeyringService = "convls"
	// keyCommandTimeout is how long a key command may take: a person may have to
	// unlock something.
	keyCommandTimeout = 60 * time.Second
	// keyringTimeout is how long the keyring may take: a locked one can ask a person
	// who is not there.
	keyringTimeout = 5 * time.Second
	// maxKey is the longest key, in bytes.
	maxKey = 16 << 10
)

// KeyringUser returns the user under which the key of a provider at an address is
// in the keyring.
func KeyringUser(provider, baseURL string) string { return provider + " " + baseURL }

// SystemKeys looks for keys where a person keeps them, in this order: the
// environment variable (api_key_env, else [DefaultKeyEnv]), the key command
// (api_key_cmd), the system's keyring (service convls, user as [KeyringUser]).
//
// The default variable belongs to the provider's own address: for a known
// provider behind another base_url its key is only taken if api_key_env names
// it, so that no setting can send OPENAI_API_KEY elsewhere unasked.
//
// The command is no shell line: it is split at spaces, with single and double
// quotes and backslashes as a shell has them, and run as it is, with the
// variables of [keyCommandEnv] only, and 60 s at most. The first line that it
// prints is the key, kept in memory until it is rejected.
type SystemKeys struct {
	env     func(string) string
	keyring func(service, user string) (string, error)

	mu      sync.Mutex
	printed map[string]*printedKey
}

// printedKey is what a key command printed.
type printedKey struct {
	mu  sync.Mutex
	key string
}

var _ KeySource = (*SystemKeys)(nil)

// NewSystemKeys makes a source over an environment, which is a client's and not
// necessarily this process's.
func NewSystemKeys(env func(string) string) *SystemKeys {
	return &SystemKeys{env: env, keyring: keyring.Get, printed: map[string]*printedKey{}}
}

// Key finds a key; see [SystemKeys].
func (k *SystemKeys) Key(ctx context.Context, r KeyRequest) (string, error) {
	if name := k.variable(r.Provider, r.BaseURL, r.Settings); name != "" && !r.Rejected {
		if key := strings.TrimSpace(k.env(name)); key != "" {
			return key, nil
		}
	}
	if line := r.Settings.APIKeyCmd; line != "" {
		return k.command(ctx, r.Provider, r.BaseURL, line, r.Rejected)
	}
	if Loopback(r.BaseURL) {
		return "", nil
	}
	return k.fromKeyring(ctx, r.Provider, r.BaseURL), nil
}

// variable returns the environment variable that may be used for an address.
func (k *SystemKeys) variable(provider, baseURL string, s protocol.ProviderSettings) string {
	if s.APIKeyEnv != "" {
		return s.APIKeyEnv
	}
	if known, ok := knownProviders(provider); ok && !sameHost(known.baseURL, baseURL) {
		return ""
	}
	return DefaultKeyEnv(provider)
}

// fromKeyring asks the keyring. Where there is none (no Secret Service on Linux)
// there is no key, and no error.
func (k *SystemKeys) fromKeyring(ctx context.Context, provider, baseURL string) string {
	if !hasKeyring(k.env) {
		return ""
	}
	ctx, cancel := context.WithTimeout(ctx, keyringTimeout)
	defer cancel()
	// The library knows no context: a keyring that hangs keeps its goroutine.
	found := make(chan string, 1)
	go func() {
		key, err := k.keyring(KeyringService, KeyringUser(provider, baseURL))
		if err != nil {
			key = ""
		}
		found <- key
	}()
	select {
	case key := <-found:
		return strings.TrimSpace(key)
	case <-ctx.Done():
		return ""
	}
}

func (k *SystemKeys) command(ctx context.Context, provider, baseURL, line string, rejected bool) (string, error) {
	id := provider + "\x00" + baseURL + "\x00" + line
	k.mu.Lock()
	p := k.printed[id]
	if p == nil {
		p = &printedKey{}
		k.printed[id] = p
	}
	k.mu.Unlock()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.key != "" && !rejected {
		return p.key, nil
	}
	p.key = ""
	key, err := k.run(ctx, provider, line)
	if err != nil {
		return "", fmt.Errorf("providers.%s.api_key_cmd: %w", provider, err)
	}
	p.key = key
	return key, nil
}

// keyCommandEnv are the variables that a key command gets: those that password
// managers and agents need to find their user and their sockets.
var keyCommandEnv = []string{
	"PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_ALL", "TERM", "DISPLAY", "WAYLAND_DISPLAY", "TMPDIR",
	"XDG_RUNTIME_DIR", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME", "DBUS_SESSION_BUS_ADDRESS", "SSH_AUTH_SOCK",
	"GNUPGHOME", "GPG_TTY", "GPG_AGENT_INFO", "PASSWORD_STORE_DIR", "OP_SESSION", "OP_ACCOUNT", "BW_SESSION", "VAULT_ADDR", "VAULT_TOKEN",
	"SYSTEMROOT", "SYSTEMDRIVE", "USERPROFILE", "USERNAME", "APPDATA", "LOCALAPPDATA", "PROGRAMDATA", "PATHEXT", "TEMP", "TMP", "COMSPEC",
}

func (k *SystemKeys) run(ctx context.Context, provider, line string) (string, error) {
	args, err := splitCommand(line)
	if err != nil {
		return "", err
	}
	path, err := k.lookPath(args[0])
	if err != nil {
		return "", fmt.Errorf("%q is not found", args[0])
	}
	ctx, cancel := context.WithTimeout(ctx, keyCommandTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, args[1:]...)
	cmd.Env = []string{"CONVLS_PROVIDER=" + provider}
	for _, name := range keyCommandEnv {
		if v := k.env(name); v != "" {
			cmd.Env = append(cmd.Env, name+"="+v)
		}
	}
	// A child that holds the pipe must not hold us.
	cmd.WaitDelay = time.Second
	out, err := cmd.Output()
	if ctx.Err() == context.DeadlineExceeded {
		return "", fmt.Errorf("the command did not end within %s", keyCommandTimeout)
	}
	if err != nil {
		// What it printed may hold the key, so only its state is told.
		if exit, ok := errors.AsType[*exec.ExitError](err); ok {
			return "", fmt.Errorf("the command failed: %s", exit.ProcessState)
		}
		return "", fmt.Errorf("the command can not be run")
	}
	key, _, _ := strings.Cut(strings.TrimLeft(string(out[:min(len(out), maxKey)]), "\r\n"), "\n")
	if key = strings.TrimSpace(key); key == "" {
		return "", fmt.Errorf("the command printed nothing")
	}
	return key, nil
}

// lookPath finds a program on the client's path, not on this process's.
func (k *SystemKeys) lookPath(name string) (string, error) {
	if strings.ContainsAny(name, `/\`) {
		return exec.LookPath(name)
	}
	for _, dir := range filepath.SplitList(k.env("PATH")) {
		if !filepath.IsAbs(dir) {
			continue // never a program of the present folder
		}
		if path, err := exec.LookPath(filepath.Join(dir, name)); err == nil {
			return path, nil
		}
	}
	return "", exec.ErrNotFound
}

// splitCommand splits a command line into words, with quotes and backslashes as a
// POSIX shell has them, and nothing else that a shell does.
func splitCommand(line string) ([]string, error) {
	var args []string
	var word strings.Builder
	inWord := false
	var quote rune
	escaped := false
	for _, r := range line {
		switch {
		case escaped:
			if quote == '"' && r != '"' && r != '\\' {
				word.WriteByte('\\')
			}
			word.WriteRune(r)
			escaped = false
		case r == '\\' && quote != '\'':
			escaped, inWord = true, true
		case quote != 0:
			if r == quote {
				quote = 0
			} else {
				word.WriteRune(r)
			}
		case r == '"' || r == '\'':
			quote, inWord = r, true
		case r == ' ' || r == '\t' || r == '\n':
			if inWord {
				args = append(args, word.String())
				word.Reset()
				inWord = false
			}
		default:
			word.WriteRune(r)
			inWord = true
		}
	}
	if quote != 0 || escaped {
		return nil, errors.New("a quote is not closed")
	}
	if inWord {
		args = append(args, word.String())
	}
	if len(args) == 0 || args[0] == "" {
		return nil, errors.New("the command is empty")
	}
	return args, nil
}
