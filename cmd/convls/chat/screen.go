package chat

import (
	"context"
	"errors"
	"fmt"

	"charm.land/bubbles/v2/spinner"
	"charm.land/bubbles/v2/textarea"
	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/colorprofile"
)

// screen is the Bubble Tea model. Only Update changes it; what takes time runs as
// a tea.Cmd and comes back as a message.
type screen struct {
	state
	ctx  context.Context
	o    Options
	dial dialer
	// link is the connection; down says why there is none.
	link *link
	down string

	width, height int
	theme         theme
	painter       *painter
	transcript    scroll
	begin         map[string]int // the line at which a row begins

	input   textarea.Model
	history *history
	popup   popup
	notes   []note
	overlay overlay
	ask     *question

	// running is the input that is being carried out, waiting are those after it.
	running *entry
	waiting []entry
	// refreshing: a snapshot is on its way; again: it will be old when it comes.
	refreshing, again bool
	catching          map[string]bool // nodes that are being read
	loadingOlder      bool
	cancelling        map[string]bool
	spinner           spinner.Model
	spinning          bool
	thoughts          bool
	leaving           bool // Ctrl-C was pressed, and the next one leaves
	// held is what was in the input when it had to make room for /restart. It comes
	// back with the server.
	held *draft
}

// entry is something that was entered. A typed text comes back into the input if
// it is refused.
type entry struct {
	text  string
	typed bool
	job   job
	// stop ends it, if it lasts as long as a model answers; else it is nil.
	stop context.CancelFunc
}

// runScreen connects before it takes the terminal over, so that what keeps the
// server from starting is told as any command would tell it.
func runScreen(ctx context.Context, o Options, dial dialer, more ...tea.ProgramOption) error {
	l, err := dial(ctx)
	if err != nil {
		return errors.New(explain(err))
	}
	m := newScreen(ctx, o, dial, l)
	defer func() { _ = m.link.end() }()
	out, err := o.begin()(ctx, l)
	if err != nil {
		return errors.New(explain(err))
	}
	m.apply(out)
	for _, path := range o.Attach {
		a, err := attachFile(expandHome(path))
		if err != nil {
			return err
		}
		m.attached = append(m.attached, a)
	}
	options := []tea.ProgramOption{tea.WithContext(ctx), tea.WithInput(o.Stdin), tea.WithOutput(o.Stdout), tea.WithoutSignalHandler()}
	if o.NoColor {
		options = append(options, tea.WithColorProfile(colorprofile.ASCII))
	}
	_, err = tea.NewProgram(m, append(options, more...)...).Run()
	if ctx.Err() != nil {
		return nil // the terminal was closed, or somebody ended the program
	}
	if err != nil {
		return fmt.Errorf("the screen: %w", err)
	}
	if m.exists() {
		fmt.Fprintf(o.Stdout, "To go on: %s chat --session %s\n", "convls", m.session.SessionID)
	}
	return nil
}

func newScreen(ctx context.Context, o Options, dial dialer, l *link) *screen {
	m := &screen{ctx: ctx, o: o, dial: dial, link: l, width: 80, height: 24, catching: map[string]bool{}, cancelling: map[string]bool{}}
	m.workspace, m.clientID = o.Workspace, l.clientID
	m.transcript.follow = true
	m.spinner = spinner.New(spinner.WithSpinner(spinner.MiniDot))
	m.input = newInput()
	h, err := loadHistory(o.HistoryFile)
	m.history = h
	if err != nil {
		m.fail(err)
	}
	if o.Warning != "" {
		m.notes = append(m.notes, note{text: o.Warning, error: true})
	}
	m.setTheme(true)
	return m
}

// newInput makes the input line, which grows as it is filled.
func newInput() textarea.Model {
	in := textarea.New()
	in.ShowLineNumbers = false
	in.Placeholder = "Write a message; /help lists commands"
	in.CharLimit = 0
	in.DynamicHeight = true
	in.MinHeight, in.MaxHeight, in.MaxContentHeight = 1, 8, 9_000
	in.KeyMap.InsertNewline.SetKeys("alt+enter", "shift+enter", "ctrl+j")
	in.SetPromptFunc(3, func(p textarea.PromptInfo) string {
		if p.LineNumber == 0 {
			return " › "
		}
		return "   "
	})
	in.SetVirtualCursor(false)
	in.Focus()
	return in
}

// setTheme takes the terminal's background into account.
func (m *screen) setTheme(dark bool) {
	m.theme = newTheme(dark, m.o.NoColor)
	styles := textarea.DefaultStyles(dark)
	styles.Focused.CursorLine = styles.Focused.Text
	styles.Focused.Prompt = m.theme.selected
	styles.Focused.Placeholder = m.theme.muted
	styles.Cursor.Color = m.theme.cursor
	styles.Cursor.Blink = true
	m.input.SetStyles(styles)
	m.spinner.Style = m.theme.muted
	m.layout()
}

// Init starts to listen and asks the terminal for its background.
func (m *screen) Init() tea.Cmd {
	cmds := []tea.Cmd{tea.RequestBackgroundColor, listen(m.link), m.background(prepareModels), m.background(prepareSessionNames)}
	for id := range m.streams {
		cmds = append(cmds, m.catchUp(id))
	}
	if m.o.Message != "" {
		notes := m.notes // what is told at the start is not told of this entry
		cmds = append(cmds, m.enter(entry{text: m.o.Message, typed: true}))
		m.notes = append(notes, m.notes...)
	}
	return tea.Batch(append(cmds, m.spin())...)
}

// spin keeps the spinner going while an answer is written.
func (m *screen) spin() tea.Cmd {
	if m.spinning || len(m.writing()) == 0 || m.down != "" {
		return nil
	}
	m.spinning = true
	return m.spinner.Tick
}

func (m *screen) tell(format string, args ...any) {
	m.notes = []note{{text: fmt.Sprintf(format, args...)}}
}

func (m *screen) fail(err error) { m.notes = []note{{text: explain(err), error: true}} }
