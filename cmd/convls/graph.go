package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/charmbracelet/x/term"
	"github.com/spf13/cobra"

	"convls/projection"
	"convls/projection/drawing"
	"convls/protocol"
	"convls/store"
)

// graphing is what convls graph is asked for.
type graphing struct {
	drawing.Options
	head, format, color, theme, output string
	expand                             []string
	limit                              int
	all, force                         bool
}

// maxGraphRows is how many rows a window has at most, as in convls/graph/get.
const maxGraphRows = 2_000

// graphCommand draws the graph of a session.
func graphCommand(f *flags) *cobra.Command {
	g := graphing{}
	cmd := &cobra.Command{
		Use:   "graph SESSION",
		Short: "Draw the graph of a session: branches, summaries, and what hangs off the chain",
		Long: "Draws the graph of a session in the terminal, a line a node, or as a picture. SESSION is an id, the beginning of one, or last.\n" +
			"It is the window around HEAD, as one sees it from there: what a summary stands for is folded into a capsule, ◎.",
		Example: "  convls graph last\n" +
			"  convls graph last --all --output graph.svg\n" +
			"  convls graph last --ids --expand SUMMARY",
		Args: arguments(1, 1, "which session? convls graph SESSION, by the id that convls sessions lists, or last"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := g.check(cmd); err != nil {
				return err
			}
			return withStore(cmd.Context(), *f, func(s *store.Store, _ protocol.Settings) error {
				view, err := g.view(cmd.Context(), s, args[0])
				if err != nil {
					return err
				}
				if view.Damage != "" {
					fmt.Fprintln(cmd.ErrOrStderr(), "convls: something could not be read and is left out:", view.Damage)
				}
				if g.output != "" {
					return g.write(view)
				}
				err = g.draw(cmd.OutOrStdout(), view)
				if err == nil && (view.Before != "" || view.After != "") {
					fmt.Fprintf(cmd.ErrOrStderr(), "%d of %s: --all draws all of them\n", len(view.Rows), count(view.TotalRows, "row", "rows"))
				}
				return err
			})
		},
	}
	set := cmd.Flags()
	set.StringVar(&g.head, "head", "", "whose folds are shown: a branch by name or number, a message as #n or by its id (default: HEAD)")
	set.StringArrayVar(&g.expand, "expand", nil, "the id of a summary whose messages are shown, or of a message whose calls are; can be given several times")
	set.BoolVar(&g.all, "all", false, "draw the whole graph")
	set.IntVar(&g.limit, "limit", 200, "how many rows to draw")
	set.IntVar(&g.MaxLanes, "lanes", drawing.DefaultMaxLanes, "how many lanes to draw side by side")
	set.IntVar(&g.Width, "width", 0, "how wide the drawing is, in columns, or pixels of an SVG (default: the terminal's width; 960)")
	set.BoolVar(&g.ASCII, "ascii", false, "draw with characters of ASCII")
	set.BoolVar(&g.IDs, "ids", false, "show the ids of the nodes")
	set.StringVar(&g.color, "color", "auto", "auto, always or never; auto: on a terminal, unless NO_COLOR is set")
	set.StringVar(&g.format, "format", "text", "text, svg, dot or json (default: what the name of --output ends in)")
	set.StringVar(&g.theme, "theme", "auto", "of an SVG: light, dark, or auto, which follows whoever looks at it")
	set.BoolVar(&g.force, "force", false, "replace a file that exists")
	set.StringVarP(&g.output, "output", "o", "", "a file to write (default: standard output)")
	return cmd
}

// check refuses what can not be meant, and fills in what follows from the rest.
func (g *graphing) check(cmd *cobra.Command) error {
	formats := []string{"text", "svg", "dot", "json"}
	if ext := strings.TrimPrefix(filepath.Ext(g.output), "."); g.output != "" && !cmd.Flags().Changed("format") {
		switch {
		case slices.Contains(formats, ext):
			g.format = ext
		case ext != "txt":
			return fmt.Errorf("what %s is to be does not follow from its name: give --format, or an ending .txt, .svg, .dot or .json", g.output)
		}
	}
	for _, c := range []struct {
		flag, value string
		from        []string
	}{{"format", g.format, formats}, {"color", g.color, []string{"auto", "always", "never"}}, {"theme", g.theme, []string{"auto", "light", "dark"}}} {
		if !slices.Contains(c.from, c.value) {
			return fmt.Errorf("--%s is one of %s, not %q", c.flag, strings.Join(c.from, ", "), c.value)
		}
	}
	switch {
	case g.limit < 1 || g.limit > maxGraphRows:
		return fmt.Errorf("--limit is 1 to %d, not %d: --all draws all rows", maxGraphRows, g.limit)
	case g.all && cmd.Flags().Changed("limit"):
		return errors.New("--all draws all rows: leave --limit out")
	case g.MaxLanes < 1:
		return fmt.Errorf("--lanes is 1 or more, not %d", g.MaxLanes)
	case g.Width < 0:
		return fmt.Errorf("--width is 0, which cuts nothing, or more, not %d", g.Width)
	}
	if _, err := os.Stat(g.output); g.output != "" && err == nil && !g.force {
		return fmt.Errorf("%s exists already: choose another name, or replace it with --force", g.output)
	}
	g.Theme = drawing.Theme(g.theme)
	g.Color = g.color == "always"
	if out, ok := cmd.OutOrStdout().(*os.File); ok && g.output == "" && g.format == "text" && term.IsTerminal(out.Fd()) {
		g.Color = g.Color || g.color == "auto" && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
		if width, _, err := term.GetSize(out.Fd()); err == nil && !cmd.Flags().Changed("width") {
			g.Width = width
		}
	}
	return nil
}

// view reads the graph.
func (g *graphing) view(ctx context.Context, s *store.Store, session string) (*protocol.GraphView, error) {
	sess, err := findSession(ctx, s, session)
	if err != nil {
		return nil, err
	}
	r, err := sess.Reader()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	info, err := r.Info()
	if err != nil {
		return nil, err
	}
	g.Title = info.Title
	w := projection.GraphWindow{Expanded: g.expand, Limit: g.limit, CountCovers: g.format != "json"}
	if g.all {
		w.Limit = math.MaxInt32 // of a reader that stays as it is, one window can hold all
	}
	if w.Head, err = findHead(r, g.head); err != nil {
		return nil, err
	}
	for _, id := range g.expand {
		if _, err := r.Lookup(id); err != nil {
			return nil, err
		}
	}
	return projection.Graph(r, w)
}

// findSession returns the session that a word names: by its id, by a beginning that
// no other id has, or as the one that was used last.
func findSession(ctx context.Context, s *store.Store, word string) (*store.Session, error) {
	sess, err := s.Session(word)
	if protocol.CodeOf(err) != protocol.CodeUnknownSession {
		return sess, err
	}
	all, _, lerr := s.Sessions(ctx, store.Filter{})
	if lerr != nil {
		return nil, lerr
	}
	if word == "last" && len(all) > 0 {
		return s.Session(all[0].Info.ID)
	}
	all = slices.DeleteFunc(all, func(l store.Listed) bool {
		return !strings.HasPrefix(strings.ToLower(l.Info.ID), strings.ToLower(word))
	})
	switch {
	case word == "" || len(all) == 0:
		return nil, err
	case len(all) > 1:
		return nil, fmt.Errorf("%d sessions have an id that begins with %q: convls sessions lists them", len(all), word)
	}
	return s.Session(all[0].Info.ID)
}

// findHead returns the chain node that a word names, as in the chat: the end of a
// branch, by its name or by its number in /branches; a message of HEAD's branch as #n;
// or a node by its id. Nothing is named by "".
func findHead(r *store.Reader, word string) (store.Skeleton, error) {
	if word == "" {
		return store.Skeleton{}, nil
	}
	seq, err := r.Named(word)
	if err == nil {
		return r.Skeleton(seq)
	}
	if protocol.CodeOf(err) != protocol.CodeUnknownBranch {
		return store.Skeleton{}, err
	}
	if n, err := strconv.ParseUint(strings.TrimPrefix(word, "#"), 10, 32); err == nil {
		if strings.HasPrefix(word, "#") {
			return messageAt(r, n)
		}
		return branchAt(r, n)
	}
	s, err := r.LookupChain(word)
	if protocol.CodeOf(err) == protocol.CodeUnknownNode {
		return s, fmt.Errorf("there is no branch or message %q: give the name of a branch, its number in /branches of convls chat, a message of HEAD's branch like #4, or an id", word)
	}
	return s, err
}

// messageAt returns message n of HEAD's branch.
func messageAt(r *store.Reader, n uint64) (store.Skeleton, error) {
	head, err := r.Skeleton(r.State.Head)
	if err != nil {
		return head, err
	}
	if n > head.Depth {
		return head, fmt.Errorf("there is no message #%d on HEAD's branch: the last one is #%d", n, head.Depth)
	}
	return r.AncestorAt(head, n)
}

// branchAt returns the end of branch n, in the order in which the chat lists them.
func branchAt(r *store.Reader, n uint64) (store.Skeleton, error) {
	branches, err := projection.Branches(r)
	if err != nil {
		return store.Skeleton{}, err
	}
	if n < 1 || n > uint64(len(branches)) {
		return store.Skeleton{}, fmt.Errorf("there is no branch %d: the session has %s", n, count(int64(len(branches)), "branch", "branches"))
	}
	return r.LookupChain(branches[n-1].Tip)
}

func (g *graphing) draw(w io.Writer, view *protocol.GraphView) error {
	switch g.format {
	case "svg":
		return drawing.SVG(w, view, g.Options)
	case "dot":
		return drawing.DOT(w, view, g.Options)
	case "json":
		return drawing.JSON(w, view)
	}
	return drawing.Text(w, view, g.Options)
}

// write draws into a file. None is left that is not whole.
func (g *graphing) write(view *protocol.GraphView) error {
	file, err := os.Create(g.output)
	if err != nil {
		return fmt.Errorf("write the graph: %w", err)
	}
	if err := cmp.Or(g.draw(file, view), file.Close()); err != nil {
		return errors.Join(fmt.Errorf("write the graph: %w", err), os.Remove(g.output))
	}
	return nil
}
