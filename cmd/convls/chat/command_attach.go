package chat

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"mime"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"convls/protocol"
)

// maxAttached is how large a file may be that is sent along, in bytes.
const maxAttached = 4 << 20

func prepareAttach(s *state, arg string) (job, error) {
	if arg == "" {
		if len(s.attached) == 0 {
			return nil, errors.New("which file? /attach <path>")
		}
		names := make([]string, len(s.attached))
		for i, a := range s.attached {
			names[i] = a.name
		}
		return say("attached: " + strings.Join(names, ", ") + " (/detach takes them away)"), nil
	}
	if word, name := firstWord(arg); word == "branch" {
		return attachBranch(s, name)
	}
	path := expandHome(arg)
	bring, notBranch := attachBranch(s, arg)
	return func(ctx context.Context, c caller) (outcome, error) {
		a, err := attachFile(path)
		if errors.Is(err, fs.ErrNotExist) && notBranch == nil {
			return bring(ctx, c)
		}
		if err != nil {
			return outcome{}, err
		}
		return outcome{attach: &a, say: a.name + " goes with the next message"}, nil
	}, nil
}

// attachBranch brings the last answer of a branch in, as a node after HEAD.
func attachBranch(s *state, word string) (job, error) {
	if err := s.needSession(); err != nil {
		return nil, err
	}
	if word == "" {
		return nil, errors.New("which branch? /attach branch <name>, or its number in /branches")
	}
	b, err := s.branch(word)
	switch {
	case err != nil:
		return nil, err
	case b.IsHead:
		return nil, errors.New("that is the branch you are on: there is nothing to attach")
	}
	p := protocol.AttachParams{Mutation: s.mutationAt(), SessionID: s.session.SessionID, AnchorID: s.session.Head, SourceID: b.Tip}
	return s.look().after(func(ctx context.Context, c caller) (outcome, error) {
		n, err := call[protocol.NodeResult](ctx, c, protocol.MethodBranchAttach, p)
		if err != nil {
			return outcome{}, err
		}
		return outcome{say: fmt.Sprintf("#%d is what that branch came to: the model reads it from now on", n.Depth)}, nil
	}), nil
}

func prepareDetach(s *state, _ string) (job, error) {
	if len(s.attached) == 0 {
		return nil, errors.New("nothing is attached")
	}
	return done(outcome{detach: true, say: "nothing is attached any more"}), nil
}

// attachFile reads a file as a context item, or as an image.
func attachFile(path string) (attachment, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return attachment{}, fmt.Errorf("attach %s: %w", path, err)
	}
	info, err := os.Stat(abs)
	switch {
	case err != nil:
		return attachment{}, fmt.Errorf("attach: %w", err)
	case !info.Mode().IsRegular():
		return attachment{}, fmt.Errorf("%s is not a file", path)
	case info.Size() > maxAttached:
		return attachment{}, fmt.Errorf("%s has %s bytes: %s is the most that can be attached", path, thousands(info.Size()), thousands(maxAttached))
	}
	data, err := os.ReadFile(abs)
	if err != nil {
		return attachment{}, fmt.Errorf("attach: %w", err)
	}
	return attachData(filepath.Base(abs), fileURI(abs), data)
}

// attachData makes an attachment of what a file, or standard input, holds.
func attachData(name, uri string, data []byte) (attachment, error) {
	a := attachment{name: name}
	kind := http.DetectContentType(data)
	switch {
	case slices.Contains([]string{"image/png", "image/jpeg", "image/gif", "image/webp"}, kind):
		a.part = &protocol.Part{Type: protocol.PartImage, MIMEType: kind, Data: data, URI: uri}
	case len(data) == 0:
		return a, fmt.Errorf("%s is empty", name)
	case utf8.Valid(data):
		a.item = &protocol.ContextItem{Type: "file", URI: uri, Text: string(data)}
	default:
		if t := mime.TypeByExtension(filepath.Ext(name)); t != "" {
			kind = t
		}
		return a, fmt.Errorf("%s is neither UTF-8 text nor a PNG, JPEG, GIF or WebP image (%s)", name, kind)
	}
	return a, nil
}

func fileURI(path string) string {
	path = filepath.ToSlash(path)
	if !strings.HasPrefix(path, "/") {
		path = "/" + path // C:/x
	}
	return (&url.URL{Scheme: "file", Path: path}).String()
}

// expandHome replaces a leading ~ by the home directory.
func expandHome(path string) string {
	if path == "~" || strings.HasPrefix(path, "~/") {
		if home, err := os.UserHomeDir(); err == nil {
			return filepath.Join(home, path[1:])
		}
	}
	return path
}
