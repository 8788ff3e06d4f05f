package chat

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/agnivade/levenshtein"
)

// command is one slash command. The table of commands is the only place that
// knows them: help, completion and both modes are made from it.
type command struct {
	name string
	// also is another name that people try.
	also string
	// args is how its arguments are written, about what it does.
	args, about string
	// key is the key that does the same on the screen.
	key string
	// complete says what its first argument is.
	complete argKind
	// asks says that it asks before it does something, unless --yes is its first argument.
	asks bool
	// waits says that its job lasts as long as a model answers: Ctrl-C ends it.
	waits bool
	// prepare checks the arguments and makes the job. It runs where the state may be
	// read, and must not wait for anything.
	prepare func(s *state, arg string) (job, error)
}

// argKind is what an argument names, for completion.
type argKind int

const (
	argNone argKind = iota
	argBranch
	argSession
	argModel
	argFile
	argCommand
	// argCount is a number, which has no completion, and then a model.
	argCount
)

var errNoSession = errors.New("there is no conversation yet: write a message, or /open one")

// commands returns the table, in the order of the help.
func commands() []command {
	return []command{
		{name: "retry", args: "[#n] [model]", about: "answer again, beside the old answer", complete: argModel, prepare: prepareRetry},
		{name: "candidates", args: "<n> [#n] [model]", about: "have n answers written side by side, beside the old one", complete: argCount, prepare: prepareCandidates},
		{name: "edit", args: "[#n] [text]", about: "write a message or an answer anew, beside the old one", prepare: prepareEdit},
		{name: "cancel", args: "[waiting|n]", about: "stop the answer that is being written, or take a waiting message out: the last, or the nth", key: "Ctrl-C", prepare: prepareCancel},
		{name: "attach", also: "attach-file", args: "<path>|branch <name>", about: "send a text or an image along with the next message; or bring the last answer of a branch in here", complete: argFile, prepare: prepareAttach},
		{name: "detach", about: "send nothing along after all", prepare: prepareDetach},
		{name: "exec", args: "<prompt>", about: "ask the model something beside the conversation, which does not go on with it", waits: true, prepare: prepareExec},
		{name: "spawn", args: "<prompt>", about: "send a message on a side branch of its own, and stay here", waits: true, prepare: prepareSpawn},
		{name: "copy", args: "[#n]", about: "copy an answer to the clipboard", prepare: prepareCopy},
		{name: "pin", args: "[#n]", about: "pin an answer or a message: compaction carries it on word for word", prepare: preparePin(true)},
		{name: "unpin", args: "[#n]", about: "take a pin away", prepare: preparePin(false)},
		{name: "redact", args: "[--yes] <#n>", about: "erase what a message says, for good; asks first, unless --yes says it", asks: true, prepare: prepareRedact},

		{name: "fork", args: "[#n] [name]", about: "go on from here, or from message n, on a branch of its own", prepare: prepareFork},
		{name: "checkout", args: "<branch|number|#n>", about: "go to a branch, by name or number of /branches, or to message n", complete: argBranch, prepare: prepareCheckout},
		{name: "branches", about: "list the branches", prepare: prepareBranches},
		{name: "graph", args: "[expand] [branch|number|#n]", about: "show the whole conversation with its branches, as seen from here or from there; expand shows what a summary stands for", complete: argBranch, prepare: prepareGraph},
		{name: "compare", args: "<a> [b]", about: "show what two branches or messages added since they parted; b is where you are", complete: argBranch, prepare: prepareCompare},
		{name: "prev", args: "[#n]", about: "go to the version before, of the last message that has several", key: "Alt-P", prepare: prepareSibling(-1)},
		{name: "next", args: "[#n]", about: "go to the version after", key: "Alt-N", prepare: prepareSibling(+1)},
		{name: "rewind", args: "[#n]", about: "go back to before a message; its text comes into the input", prepare: prepareRewind},
		{name: "name", args: "<name>", about: "name this branch", prepare: prepareName},
		{name: "delete", args: "[--yes] [branch|number]", about: "delete what no other branch shares; asks first, unless --yes says it", complete: argBranch, asks: true, prepare: prepareDelete},

		{name: "context", args: "[raw]", about: "show what the model reads, with tokens and reasons", prepare: prepareContext},
		{name: "compact", args: "[preview|cancel] [#n] [words]", about: "have a summary stand for the older messages, up to message n, keeping what the words say; nothing is deleted", prepare: prepareCompact},
		{name: "undo-compact", about: "take the summary back: the model reads the messages again", prepare: prepareUndoCompact},
		{name: "redo-compact", about: "take up the summary that was undone", prepare: prepareRedoCompact},
		{name: "summary", args: "[list]", about: "show the summary that stands here, or list all", prepare: prepareSummary},
		{name: "model", args: "[id]", about: "choose the model", complete: argModel, prepare: prepareModel},
		{name: "system", args: "[text]", about: "show or set the system prompt", prepare: prepareSystem},

		{name: "sessions", args: "[words]", about: "list the conversations", prepare: prepareSessions},
		{name: "new", args: "[title]", about: "begin another conversation", prepare: prepareNew},
		{name: "open", args: "<title|number|id>", about: "open a conversation", complete: argSession, prepare: prepareOpen},
		{name: "rename", args: "<title>", about: "give the conversation another title", prepare: prepareRename},
		{name: "search", args: "<words>", about: "find messages in all conversations", prepare: prepareSearch},
		{name: "show", args: "<number>", about: "go to a hit of /search", prepare: prepareShow},
		{name: "export", args: "[file]", about: "write the conversation to a file: .md this branch, .jsonl everything", complete: argFile, prepare: prepareExport},

		{name: "help", args: "[command]", about: "show this", key: "F1", complete: argCommand, prepare: prepareHelp},
		{name: "restart", about: "start the server again after it died", prepare: func(*state, string) (job, error) { return done(outcome{restart: true}), nil }},
		{name: "quit", also: "exit", about: "leave; everything is kept", key: "Ctrl-D", prepare: func(*state, string) (job, error) { return done(outcome{quit: true}), nil }},
	}
}

// commandLine matches what is meant as a command: /usr/bin/env at the beginning
// of a message is none.
var commandLine = regexp.MustCompile(`^/([a-z][a-z-]*)(?:\s+|$)`)

// parseInput tells a command from a message. A message that begins with a slash
// and a word is written with two slashes.
func parseInput(text string) (name, arg string, isCommand bool) {
	if m := commandLine.FindStringSubmatch(text); m != nil {
		return m[1], strings.TrimSpace(text[len(m[0]):]), true
	}
	if strings.HasPrefix(text, "//") {
		text = text[1:]
	}
	return "", text, false
}

// lookup finds a command by its name or an unambiguous beginning of it.
func lookup(name string) (command, error) {
	all := commands()
	var begin []command
	for _, c := range all {
		if c.name == name || c.also == name {
			return c, nil
		}
		if strings.HasPrefix(c.name, name) {
			begin = append(begin, c)
		}
	}
	if len(begin) == 1 {
		return begin[0], nil
	}
	if len(begin) > 1 {
		names := make([]string, len(begin))
		for i, c := range begin {
			names[i] = "/" + c.name
		}
		return command{}, fmt.Errorf("/%s is not clear: %s", name, strings.Join(names, ", "))
	}
	near := slices.MinFunc(all, func(a, b command) int {
		return levenshtein.ComputeDistance(a.name, name) - levenshtein.ComputeDistance(b.name, name)
	})
	if levenshtein.ComputeDistance(near.name, name) <= 2 {
		return command{}, fmt.Errorf("there is no command /%s: did you mean /%s? (/help lists them; //%s sends it as a message)", name, near.name, name)
	}
	return command{}, fmt.Errorf("there is no command /%s: /help lists them; //%s sends it as a message", name, name)
}

// prepareInput makes the job of a line of input: a message, or a command.
func prepareInput(s *state, text string) (job, error) {
	name, arg, isCommand := parseInput(text)
	if !isCommand {
		return prepareSend(s, arg)
	}
	c, err := lookup(name)
	if err != nil {
		return nil, err
	}
	if word, rest := firstWord(arg); c.asks && word == "--yes" {
		do, err := c.prepare(s, rest)
		if err != nil {
			return nil, err
		}
		return confirmed(do), nil
	}
	return c.prepare(s, arg)
}

// waits reports whether a line of input is a command that lasts as long as a model
// answers.
func waits(text string) bool {
	name, _, isCommand := parseInput(text)
	if !isCommand {
		return false
	}
	c, err := lookup(name)
	return err == nil && c.waits
}

func prepareHelp(_ *state, arg string) (job, error) {
	if arg == "" {
		return done(outcome{page: &page{title: "Help", body: helpText(), markdown: true, plain: helpLines()}}), nil
	}
	c, err := lookup(strings.TrimPrefix(arg, "/"))
	if err != nil {
		return nil, err
	}
	text := "/" + c.name
	if c.args != "" {
		text += " " + c.args
	}
	return say(text + ": " + c.about), nil
}

// helpLines is the help where there is no screen: a line a command.
func helpLines() string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, c := range commands() {
		fmt.Fprintf(w, "/%s\t%s\n", strings.TrimRight(c.name+" "+c.args, " "), c.about)
	}
	_ = w.Flush() // into memory
	b.WriteString("\n#n is the number before a message, from 1. A message that begins with a slash is written with two: //text\n")
	return b.String()
}

// helpText is the help as Markdown.
func helpText() string {
	var b strings.Builder
	b.WriteString("Enter sends a message. Nothing is ever lost: a retry, an edit or a rewind leaves the old version on its own branch.\n\n")
	b.WriteString("| command | |\n| --- | --- |\n")
	for _, c := range commands() {
		name := "/" + c.name
		if c.args != "" {
			name += " " + strings.ReplaceAll(c.args, "|", `\|`)
		}
		about := c.about
		if c.key != "" {
			about += " (" + c.key + ")"
		}
		fmt.Fprintf(&b, "| `%s` | %s |\n", name, about)
	}
	b.WriteString("\n`#n` is the number before a message. `//text` sends a message that begins with a slash.\n\n")
	b.WriteString("| key | |\n| --- | --- |\n")
	for _, k := range keys() {
		fmt.Fprintf(&b, "| %s | %s |\n", k.key, k.about)
	}
	return b.String()
}

// keys are the keys of the screen, for the help.
func keys() []struct{ key, about string } {
	return []struct{ key, about string }{
		{"Enter", "send; choose"},
		{"Alt-Enter, Shift-Enter, Ctrl-J", "new line"},
		{"Tab", "complete a command, branch, title, model or file"},
		{"Up, Down", "earlier inputs, at the first and last line"},
		{"PgUp, PgDn, mouse wheel", "scroll (Shift and the mouse select text)"},
		{"Alt-P, Alt-N", "the version before and after, of the last message that has several"},
		{"Ctrl-C", "stop the answer; else clear the input; twice: leave"},
		{"Ctrl-R", "show or hide what the model thought"},
		{"Esc", "close; give up an edit"},
	}
}
